"""No hidden constant: what enters an answer has a source, or is told with its key."""

import ast
import re
from pathlib import Path

import pytest

from gpuplan.design.rules import RULES, assumed
from gpuplan.domain.scenario.build import BuildRules
from gpuplan.inputs.schema.build import BuildSpec
from gpuplan.inputs.schema.reference import scenario_schema

SRC = Path(__file__).resolve().parents[2] / "src" / "gpuplan"
ROOMS = [
    *sorted((SRC / "design").glob("*.py")),
    *sorted((SRC / "cost").glob("*.py")),
    *sorted((SRC / "studies" / "system_check").glob("*.py")),
    *sorted((SRC / "studies" / "whole_design").glob("*.py")),
    SRC / "studies" / "power" / "node_draw.py",
    SRC / "studies" / "power" / "carbon.py",
]
SOURCE = re.compile(r"\[[A-Za-z][\w:-]+(?:, [A-Za-z][\w:-]+)*\]")
TELLERS = ("Assumption(", "assume(", "_note(", "_assumed(", "assumed(")
# Figures that are no claim about the world: definitions, grids to choose from, rounding, searches.
PLAIN = {
    "BYTES_16": "definition", "TERMS_S": "definition",
    "STALE_DAYS": "each price says its day", "OLD_DAYS": "each price says its day",
    "NEAR_NODES": "search", "THINNING_RATIO": "search", "MOST_SPARES": "search",
    "SLOWEST": "search", "FASTEST": "search", "N_HALVINGS": "search",
    "LINES_GBIT": "rates that are sold", "FASTER_GBIT": "rates that are sold",
    "WRITE_RATES": "grid, shown whole", "CAP_STEP_W": "grid, shown whole",
    "REPORTED_FRAC": "display", "LOSS_REPORTED_FRAC": "display",
    "IN_RACK_M": "shown as the cable's length",
    "KINDS": "told by _kind_note", "TIERS": "sizes of units, in their names",
    "SHARES": "grid of a chart", "HOURS": "definition", "FEWER": "search", "WHOLE_NODE": "search",
    "UNSEEN_U": "search: too tall errs on the safe side", "BOARDS": "machines that are sold",
    "MOST_DRIVES": "drives and shelves are listed as parts",
}  # fmt: skip


def constants():
    for path in ROOMS:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            if not any(
                isinstance(part, ast.Constant) and type(part.value) in (int, float)
                for part in ast.walk(node.value)
            ):
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            for name in names:
                if name.isupper():
                    yield path, node, name


def comment_of(path, node):
    """The lines of a constant with the comment right above."""
    lines = path.read_text(encoding="utf-8").splitlines()
    first = node.lineno - 1
    while first > 0 and (lines[first - 1].startswith("#") or lines[first - 1].isupper()):
        first -= 1
    # A comment may speak for several constants that follow it without a gap.
    while first > 0 and re.match(r"[A-Z_, ]+(:.*)? = ", lines[first - 1]):
        first -= 1
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    return "\n".join(lines[first : node.end_lineno])


def tellers_of(name):
    for path in ROOMS:
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                body = ast.get_source_segment(text, node) or ""
                if re.search(rf"\b{name}\b", body) and any(word in body for word in TELLERS):
                    yield f"{path.name}:{node.name}"


@pytest.mark.parametrize(
    ("path", "node", "name"),
    [pytest.param(*found, id=f"{found[0].stem}-{found[2]}") for found in constants()],
)
def test_constant_has_a_source_or_is_told(path, node, name):
    is_sourced = SOURCE.search(comment_of(path, node)) is not None
    assert is_sourced or name in PLAIN or list(tellers_of(name)), (
        f"{path.name}: {name} enters answers unseen: cite a source, tell it as an assumption, or "
        "make it a rule of domain/scenario/build.py"
    )


def test_every_rule_has_a_key_and_every_key_a_rule():
    keys = {
        f"{section}.{name}"
        for section, field in BuildSpec.model_fields.items()
        for name in field.default_factory().__class__.model_fields
    }
    # Told by the board that it is, and by the finding that it is not known.
    assert keys - set(RULES) == {"footprint.accelerator_kg", "footprint.hourly_g_per_kwh"}
    assert set(RULES) <= keys


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule_is_told_until_it_is_given(name):
    (note,) = assumed(BuildRules(), name)
    assert note.change == f"build.{name}"
    assert note.value
    assert not assumed(BuildRules(given=frozenset({name})), name)


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule_is_told_by_some_answer(name):
    """A rule that no room tells is a hidden constant again."""
    section = name.split(".")[0]
    texts = [p.read_text(encoding="utf-8") for p in ROOMS if p.name != "rules.py"]
    groups = {"prices": ("STORAGE_PRICES", "NETWORK_PRICES"), "room": ("UPS", "CABLES")}
    told = any(f'"{name}"' in text for text in texts)
    rules = (SRC / "design" / "rules.py").read_text(encoding="utf-8")
    for group in groups.get(section, ()):
        found = re.search(rf"^{group} = (.*?)(?=^\S)", rules, flags=re.M | re.S)
        is_in = found is not None and (f'"{name}"' in found[1] or name.startswith("room.ups_"))
        told = told or (is_in and any(f"*{group}" in text for text in texts))
    assert told


def changes():
    for path in ROOMS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _called(node) in ("assume", "_assume"):
                for part in ast.walk(node.args[3]) if len(node.args) > 3 else ():
                    text = part.value if isinstance(part, ast.Constant) else None
                    if isinstance(text, str) and "." in text:
                        yield path.name, text


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def keys_of(schema, root, prefix=""):
    """Every dotted key of the file format; lists are passed through."""
    for variant in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found = variant
        while "$ref" in found:
            found = root["$defs"][found["$ref"].split("/")[-1]]
        if "items" in found:
            yield from keys_of(found["items"], root, prefix)
        for name, part in found.get("properties", {}).items():
            if prefix.count(".") < 5:
                yield prefix + name
                yield from keys_of(part, root, f"{prefix}{name}.")
        if found is not variant:
            yield from (
                key for option in found.get("anyOf", ()) for key in keys_of(option, root, prefix)
            )


KEYS = set(keys_of(scenario_schema(), scenario_schema()))


@pytest.mark.parametrize(("where", "change"), sorted(set(changes())))
def test_key_that_changes_it_exists(where, change):
    plain = re.sub(r"\[[^\]]*\]", "", change).strip(".")
    for key in re.split(r" and | or |, ", plain):
        is_key = "." in key and " " not in key
        assert not is_key or key in KEYS, f"{where}: {change} is no key of the file format"
