"""`gpuplan sweep`: one verb over every combination of its options, on cores or on Ray."""

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from gpuplan.cli.command import OUTPUT, Form
from gpuplan.cli.options import ANALYSIS, arg, option
from gpuplan.cli.output import emit, remark
from gpuplan.errors import InputError, PlannerError, one

if TYPE_CHECKING:
    from gpuplan.execution.sweep import SweepCase

EXECUTION = "Execution"
VERBS = ("plan", "simulate", "predict", "predict-training", "fit")
KEYS = {"verb", "arguments", "options", "axes", "columns"}
ENGINES = ("local", "ray")
PROGRAM = {".py", ".csv", ".toml", ".json", ".jsonl", ".yaml", ".txt"}
MAX_CASES = 1_000_000
LONG = 19  # digits that no whole number of ours has
UNSTEADY = ("wall_s", "requests_per_wall_s")  # of the run, not of the result
DEFAULT_COLUMNS = {
    "simulate": ("n_completed", "ttft_s.p95", "tpot_s.p95", "e2e_s.p95", "output_tokens_per_s"),
    "plan": ("feasible", "plan.cost_usd_per_month.value", "plan.power_w.value"),
    "predict": (),
    "predict-training": (),
    "fit": ("fits", "max_concurrency", "headroom_bytes"),
}


class SweepOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    file: Annotated[Path, arg("Sweep file (YAML): verb, options, axes, columns.")]
    engine: str = option(
        EXECUTION, "Engine that computes the cases: local or ray.", default="local"
    )
    address: str | None = option(
        EXECUTION, "Address of a Ray cluster, e.g. ray://head:10001 or auto."
    )
    workers: int | None = option(
        EXECUTION, "Worker processes; all cores by default.", min=1, max=100_000
    )
    store: Path | None = option(
        EXECUTION, "Folder of finished results; FILE.results by default.", "--store"
    )
    chart: Path | None = option(OUTPUT, "Charts of every column to write (HTML or PNG).", "--chart")
    dry_run: bool = option(
        ANALYSIS, "Count the cases; compute nothing.", "--dry-run", default=False
    )


class Sweep(NamedTuple):
    """A sweep file, read."""

    verb: str
    arguments: tuple[str, ...]
    options: Mapping[str, Any]
    axes: Mapping[str, tuple[Any, ...]]
    columns: tuple[str, ...]
    folder: Path


def sweep(options: SweepOptions, form: Form) -> None:
    """Run one verb over every combination of its options; finished cases are never repeated."""
    from gpuplan.cli.output import check_writable
    from gpuplan.cli.simulate.files import n_cores, progress
    from gpuplan.execution.store import ResultStore
    from gpuplan.execution.sweep import Engine
    from gpuplan.execution.sweep import sweep as run

    if options.engine not in ENGINES:
        what = f"unknown value {options.engine!r}"
        raise one(InputError, "sweep", "--engine", what, "use local or ray")
    check_writable(options.chart)
    request = read_sweep(options.file)
    cases = list(cases_of(request))
    if options.dry_run:
        remark(f"{len(cases):,} cases of gpuplan {request.verb}")
        return
    store = ResultStore(options.store or options.file.with_suffix(".results"))
    engine = Engine(options.engine, options.workers or n_cores(), options.address)
    with progress(len(cases), "cases") as progressed:
        n_new = run(compute_case, cases, store=store, engine=engine, progressed=progressed)
    remark(f"{n_new:,} of {len(cases):,} cases computed, the others were finished before")
    _show(request, cases, store, options, form)


def read_sweep(path: Path) -> Sweep:
    """The file, checked; raises InputError."""
    from gpuplan.inputs.documents.yaml_reader import read_yaml

    document = read_yaml(path).data
    if not isinstance(document, dict):
        raise one(InputError, str(path), "sweep", "is no mapping", "write verb: and axes:")
    unknown, verb = sorted(map(str, set(document) - KEYS)), document.get("verb")
    if unknown:
        fix = f"use {', '.join(sorted(KEYS))}"
        raise one(InputError, str(path), unknown[0], "is no key of a sweep", fix)
    if verb not in VERBS:
        fix = f"use one of {', '.join(VERBS)}"
        raise one(InputError, str(path), "verb", f"got {verb!r}", fix)
    axes, given = document.get("axes"), document.get("options") or {}
    if not isinstance(axes, dict) or not axes or not isinstance(given, dict):
        fix = "write axes: {seed: 0..9, rate: [2, 4]}"
        raise one(InputError, str(path), "axes", "is no mapping of lists", fix)
    columns = document.get("columns") or list(DEFAULT_COLUMNS[verb])
    if not isinstance(columns, list) or not all(isinstance(each, str) for each in columns):
        fix = "write columns: [ttft_s.p95]"
        raise one(InputError, str(path), "columns", "is no list of names", fix)
    arguments = document.get("arguments") or []
    return Sweep(
        verb=verb,
        arguments=tuple(map(str, arguments if isinstance(arguments, list) else [arguments])),
        options=given,
        axes={str(name): _values(path, str(name), found) for name, found in axes.items()},
        columns=tuple(columns),
        folder=path.parent,
    )


def _values(path: Path, name: str, found: Any) -> tuple[Any, ...]:
    """A list, or whole numbers from one to another: 0..9."""
    low, _, high = found.partition("..") if isinstance(found, str) else ("", "", "")
    is_short = max(len(low), len(high)) < LONG
    if is_short and low.isdecimal() and high.isdecimal() and 0 <= int(high) - int(low) < MAX_CASES:
        return tuple(range(int(low), int(high) + 1))
    if not isinstance(found, list) or not found:
        raise one(InputError, str(path), f"axes.{name}", f"got {found!r}", "write a list, or 0..9")
    return tuple(found)


def cases_of(request: Sweep) -> "Iterator[SweepCase]":
    """Every combination, in the order of the axes, under the digest of what it depends on."""
    from gpuplan.execution.store import digest_of
    from gpuplan.execution.sweep import SweepCase

    n = 1
    for values in request.axes.values():
        n *= len(values)
    if n > MAX_CASES:
        fix = f"at most {MAX_CASES:,}: split the sweep"
        raise one(InputError, "sweep", "axes", f"{n:,} cases", fix)
    program = _program_digest()
    digests: dict[str, str] = {}
    for chosen_values in product(*request.axes.values()):
        given = {**request.options, **dict(zip(request.axes, chosen_values, strict=True))}
        arguments = [*request.arguments, *_flags(given)]
        case = {
            "verb": request.verb,
            "arguments": arguments,
            "folder": str(request.folder.resolve()),
        }
        files = {a: _file_digest(request.folder / a, digests) for a in arguments if a}
        known = {name: digest for name, digest in files.items() if digest}
        key = {"program": program, "verb": request.verb, "arguments": arguments, "files": known}
        yield SweepCase(digest=digest_of(key), case=case)


def _program_digest() -> str:
    """Of all code and facts: another version of either gives other results."""
    from hashlib import sha256

    root, found = Path(__file__).parents[1], sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in PROGRAM and "__pycache__" not in path.parts:
            found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def _flags(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        flag = "--" + str(name).replace("_", "-")
        if name == "argument":
            yield str(value)
        elif value is True:
            yield flag
        elif isinstance(value, list):
            yield from (part for each in value for part in (flag, str(each)))
        elif value is not False and value is not None:  # a 0 is a value
            yield from (flag, str(value))


def _file_digest(path: Path, known: dict[str, str]) -> str:
    """Of a file that a case reads: its name alone would not tell when it changes."""
    from hashlib import file_digest

    name = str(path)
    if name not in known:
        known[name] = ""
        with contextlib.suppress(OSError, ValueError):
            if path.is_file():  # a device never ends
                with path.open("rb") as file:
                    known[name] = file_digest(file, "sha256").hexdigest()
    return known[name]


def compute_case(case: Mapping[str, Any]) -> dict[str, Any]:
    """What the verb prints as JSON, or its refusal; in this process, whatever process that is."""
    from gpuplan.cli.app import app

    out, before = io.StringIO(), Path.cwd()
    try:
        os.chdir(case["folder"])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            app([case["verb"], *case["arguments"], "--json"], standalone_mode=False)
    except PlannerError as error:
        return {"error": str(error), "exit_code": error.exit_code}
    except Exception as error:
        if not hasattr(error, "format_message"):  # a misspelt option is told, all else is ours
            raise
        return {"error": error.format_message(), "exit_code": 2}
    finally:
        os.chdir(before)
    try:
        document = json.loads(out.getvalue())
    except ValueError:  # an option such as --help prints something else
        return {"error": "its options print no JSON document", "exit_code": 2}
    return {key: value for key, value in document.items() if key not in UNSTEADY}


def _show(
    request: Sweep, cases: "list[SweepCase]", store: Any, options: SweepOptions, form: Form
) -> None:
    from gpuplan.cli.simulate.files import show_charts
    from gpuplan.report.sweep import sweep_charts, sweep_sheet, value_at

    def columns_of(result: Mapping[str, Any]) -> dict[str, Any]:
        """Only what is shown is held of each result: memory stays small."""
        error = {"error": result["error"]} if "error" in result else {}
        return {column: value_at(result, column) for column in request.columns} | error

    values = product(*request.axes.values())
    found = [
        (chosen_, columns_of(store.read(case.digest)))
        for chosen_, case in zip(values, cases, strict=True)
    ]
    sheet = sweep_sheet(request.verb, tuple(request.axes), request.columns, found)
    emit(sheet, form)
    if options.chart is not None:
        charts = sweep_charts(tuple(request.axes), request.columns, found)
        show_charts([str(options.chart)], charts, sheet.head, is_beside=form is not Form.TABLE)
