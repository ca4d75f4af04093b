"""House inspection: what the source is made of, beside the limits that it is held to.

    python tools/house.py              print every figure
    python tools/house.py --lower      write figures that improved as the new limits

The limits stand in `tests/contract/house_limits.toml`; a test fails when a figure gets worse.
"""

import argparse
import ast
import re
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gpuplan"
TESTS = ROOT / "tests"
LIMITS = TESTS / "contract" / "house_limits.toml"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LONG, TOO_LONG, SMALL_FILE, LARGE_FILE = 30, 60, 30, 400
# Names that are reached by other ways than by their name in the source.
ENTRY_POINTS = ("src/gpuplan/__init__.py", "src/gpuplan/api", "src/gpuplan/cli")
USERS = ("tools", "benchmarks")  # beside the source itself
# The shelf and the ground hold nouns, which every room's tests use; they are no rooms.
NOT_ROOMS = {
    "domain",
    "units",
    "errors",
    "lazy",
    "csv_rows",
    "files",
    "kernel_cache",
    "stages",
    "__init__",
    "__main__",
}
TESTED_ELSEWHERE = {"kernels": "simulation"}


class Module(NamedTuple):
    """One source file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Dotted, below the package."""
        return ".".join(self.path.relative_to(SOURCE).with_suffix("").parts)


def modules() -> list[Module]:
    """Every source file, in order."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path, text, ast.parse(text)))
    return found


def figures(found: list[Module]) -> dict[str, float]:
    """Every figure that is held to a limit; smaller is better."""
    lengths = [length for _, length in function_lengths(found)]
    return {
        "source_lines": source_lines(found),
        "files_under_30_lines": sum(is_small(m) for m in found),
        "files_over_400_lines": sum(code_lines(m) > LARGE_FILE for m in found),
        **pipeline_figures([m for m in found if m.name.startswith("pipeline")]),
        "function_median": statistics.median(lengths),
        "function_p90": statistics.quantiles(lengths, n=10)[-1],
        "function_max": max(lengths),
        "functions_over_30": sum(length > LONG for length in lengths),
        "functions_over_60": sum(length > TOO_LONG for length in lengths),
        "import_cycles": len(import_cycles(found)),
        "twin_class_names": len(twin_names(found)),
        "fmt_skip": sum(m.text.count("fmt: skip") for m in found),
        "unused_functions": len(unused_names(found)),
        "families_by_prefix": len(prefix_families(found)),
    }


def source_lines(found: list[Module]) -> int:
    """Lines of all files: what a reader has to know; tables of data are not among them."""
    return sum(len(m.text.splitlines()) for m in found)


def pipeline_figures(found: list[Module]) -> dict[str, float]:
    """Size of the hall, and what it should not hold: constants, arithmetic, prose."""
    nodes = [node for m in found for node in ast.walk(m.tree)]
    return {
        "pipeline_lines": sum(len(m.text.splitlines()) for m in found),
        "pipeline_files": len(found),
        "pipeline_constants": sum(map(is_figure, nodes)),
        "pipeline_arithmetic": sum(map(is_arithmetic, nodes)),
        "pipeline_prose": sum(isinstance(node, ast.JoinedStr) for node in nodes),
    }


def is_figure(node: ast.AST) -> bool:
    """Whether it is a number that means something: not 0 or 1, which count and index."""
    return (
        isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in (0, 1)
    )


def is_arithmetic(node: ast.AST) -> bool:
    """Whether two values are reckoned with each other; joined types and sets are not."""
    operators = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.Sub, ast.Add, ast.MatMult)
    return isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, operators)


def doc_lines(node: ast.AST) -> int:
    """Lines of the docstring."""
    if not isinstance(node, DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def code_lines(module: Module) -> int:
    """Lines of the file without docstrings."""
    return len(module.text.splitlines()) - sum(map(doc_lines, ast.walk(module.tree)))


def is_small(module: Module) -> bool:
    """Whether the file is too small to be one; packages' own pages are not counted."""
    return module.path.name not in ("__init__.py", "__main__.py", "units.py") and (
        len(module.text.splitlines()) < SMALL_FILE
    )


def function_lengths(found: list[Module]) -> list[tuple[str, int]]:
    """Lines of every function without its docstring."""
    return [
        (f"{m.name}:{node.name}", (node.end_lineno or 0) - node.lineno + 1 - doc_lines(node))
        for m in found
        for node in ast.walk(m.tree)
        if isinstance(node, FUNCTION)
    ]


def imports_of(module: Module, known: set[str]) -> set[str]:
    """Modules of the package that it imports when it is loaded."""
    found: set[str] = set()
    for node in module.tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpuplan."):
            base = (node.module or "").removeprefix("gpuplan.")
            parts = {f"{base}.{alias.name}" for alias in node.names} | {base}
            found |= {name for name in parts if name in known}
    return found - {module.name}


def import_cycles(found: list[Module]) -> list[str]:
    """Modules that reach themselves through what they import."""
    known = {m.name for m in found}
    edges = {m.name: imports_of(m, known) for m in found}

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        todo = [name]
        while todo:
            new = edges[todo.pop()] - seen
            seen |= new
            todo.extend(new)
        return seen

    return [name for name in sorted(known) if name in reached(name)]


def twin_names(found: list[Module]) -> list[str]:
    """Nouns of the shelf that share a name."""
    counts = Counter(
        node.name
        for m in found
        if m.name.startswith("domain")
        for node in m.tree.body
        if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, n in counts.items() if n > 1)


def unused_names(found: list[Module]) -> list[str]:
    """Functions and classes that nothing names but tests, or nothing at all."""
    users = [path for folder in USERS for path in (ROOT / folder).rglob("*.py")]
    texts = [m.text for m in found] + [path.read_text(encoding="utf-8") for path in users]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    unused = []
    for m in found:
        if str(m.path.relative_to(ROOT)).startswith(ENTRY_POINTS):
            continue
        for node in m.tree.body:
            if not isinstance(node, FUNCTION | ast.ClassDef) or is_registered(node):
                continue
            if words[node.name] == 1:
                unused.append(f"{m.name}:{node.name}")
    return unused


def is_registered(node: ast.stmt) -> bool:
    """Whether a decorator takes it: an overload of the compiler, a route."""
    decorators = getattr(node, "decorator_list", [])
    names = {ast.unparse(d).split("(")[0].split(".")[-1] for d in decorators}
    return bool(names - {"dataclass", "cache", "lru_cache", "njit", "contextmanager", "inlined"})


def prefix_families(found: list[Module]) -> list[str]:
    """Three files of a folder that share their first word: a package that wants to exist."""
    folders: dict[Path, Counter[str]] = defaultdict(Counter)
    for m in found:
        folders[m.path.parent][m.path.stem.split("_")[0]] += 1
    return sorted(
        f"{folder.relative_to(SOURCE)}/{prefix}_*"
        for folder, counts in folders.items()
        for prefix, n in counts.items()
        if n >= 3 and prefix
    )


def room_of(parts: tuple[str, ...]) -> str | None:
    """The room, or the study, that a path below the package belongs to."""
    if not parts or parts[0].removesuffix(".py") in NOT_ROOMS:
        return None
    is_study = parts[0] == "studies" and len(parts) > 2
    return "/".join(parts[:2]) if is_study else parts[0].removesuffix(".py")


def test_shares(found: list[Module]) -> dict[str, float]:
    """Lines of tests over lines of code, room by room."""
    code: Counter[str] = Counter()
    for m in found:
        room = room_of(m.path.relative_to(SOURCE).parts)
        if room:
            code[room] += len(m.text.splitlines())
    tests: Counter[str] = Counter()
    for path in TESTS.rglob("*.py"):
        room = tested_room(path, set(code))
        if room:
            tests[room] += len(path.read_text(encoding="utf-8").splitlines())
    return {room: tests[room] / n for room, n in sorted(code.items()) if room != "studies"}


def tested_room(path: Path, rooms: set[str]) -> str | None:
    """The room that a test belongs to: by its folder, else by what it imports most."""
    parts = path.relative_to(TESTS).parts
    if parts[0] == "unit":
        return room_of(parts[1:])
    if parts[0] in TESTED_ELSEWHERE:
        return TESTED_ELSEWHERE[parts[0]]
    counts: Counter[str] = Counter()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gpuplan."):
            room = room_of((*(node.module or "").split(".")[1:], "x.py"))
            counts.update([room] if room in rooms else [])
    return counts.most_common(1)[0][0] if counts else None


def read_limits() -> dict[str, float]:
    """The limits in force."""
    return tomllib.loads(LIMITS.read_text(encoding="utf-8"))["limits"]


def worse(now: dict[str, float], limits: dict[str, float]) -> Iterator[str]:
    """Figures past their limit, one line each."""
    for name, value in now.items():
        if value > limits[name] + 1e-9:
            yield f"{name}: {value:g}, limit {limits[name]:g}"


def details(found: list[Module]) -> Iterator[str]:
    """Where the figures come from: the places to look at first."""
    long = sorted(function_lengths(found), key=lambda pair: -pair[1])
    yield "longest functions: " + ", ".join(f"{name} {n}" for name, n in long[:5])
    for title, names in (
        ("unused", unused_names(found)),
        ("twins", twin_names(found)),
        ("cycles", import_cycles(found)),
        ("families", prefix_families(found)),
        ("small files", [m.name for m in found if is_small(m)]),
    ):
        yield f"{title}: {', '.join(names) or 'none'}"


def write_limits(limits: dict[str, float]) -> None:
    """The file of limits, written whole."""
    lines = ["# Figures of tools/house.py may fall, never rise: `python tools/house.py --lower`."]
    lines += ["[limits]", *(f"{name} = {value:g}" for name, value in limits.items()), ""]
    LIMITS.write_text("\n".join(lines), encoding="utf-8")


def main() -> int:
    """Print the inspection; with --lower also write improved limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lower", action="store_true")
    asked = parser.parse_args()
    found = modules()
    now = figures(found)
    old = read_limits() if LIMITS.exists() else dict(now)
    print(f"{source_lines(found):,} lines in {len(found)} files\n")
    print(f"{'figure':28}{'now':>10}{'limit':>10}")
    for name, value in now.items():
        print(f"{name:28}{value:>10g}{old.get(name, value):>10g}")
    print("\ntests over code:")
    print("  " + ", ".join(f"{room} {share:.2f}" for room, share in test_shares(found).items()))
    print("\n" + "\n".join(details(found)))
    if asked.lower:
        write_limits({name: min(value, old.get(name, value)) for name, value in now.items()})
    return 1 if list(worse(now, {**now, **old})) else 0


if __name__ == "__main__":
    sys.exit(main())
