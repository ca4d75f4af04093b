"""The golden cases: commands as a user types them, and the documents that they print.

Every case runs in this process on a fixed day. What a machine changes (seconds it took) is taken
out; everything else is compared, numbers within a hundredth of a millionth.
"""

import datetime
import json
import math
import os
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from fakes.telemetry import Scene
from gpuplan.errors import PlannerError
from shared_data import ROOT

FOLDER = Path(__file__).parent / "documents"
EXAMPLES = sorted(
    path for path in (ROOT / "examples").glob("*.yaml") if path.name != "questions.yaml"
)
TODAY = datetime.date(2026, 11, 16)
VOLATILE = {"wall_s", "requests_per_wall_s", "cpu_s", "package_version", "catalog_sha256"}
TOLERANCE = 1e-8
MOST_COLUMNS = 300  # larger programs are compared in figures
N_PROGRAMS = 4

SIMULATED = {
    "replica": "--model Llama-3.1-8B --on H100 --rate 12 --input-tokens 800 --output-tokens 200"
    " --requests 2000",
    "two-replicas-tp2": "--model Llama-3.3-70B --on 2xH100 --precision fp8 --replicas 2 --rate 3"
    " --input-tokens 2200 --output-tokens 350 --requests 1000 --slo-ttft-ms 2000",
    "closed-loop": "--model Qwen3-32B --on 2xH200 --users 64 --input-tokens 1000"
    " --output-tokens 300 --requests 600",
    "autoscaled": "--model Llama-3.1-8B --on H100 --rate 40 --input-tokens 600"
    " --output-tokens 200 --duration 20m --fleet examples/fleets/autoscaled-and-spot.yaml",
    "disaggregated": "--model Llama-3.1-8B --on H100 --rate 20 --input-tokens 2000"
    " --output-tokens 200 --duration 5m"
    " --fleet examples/fleets/disaggregated.yaml",
}
COMMANDS = {
    "fit/llama-70b-on-2xh100": "fit Llama-3.3-70B --on 2xH100 --precision fp8 --concurrency 32",
    "fit/deepseek-v3-on-8xh200": "fit deepseek-v3 --on 8xH200 --concurrency 64",
    "fit-training/llama-8b-qlora": "fit-training Llama-3.1-8B --on A10G --task qlora",
    "predict/llama-70b": "predict Llama-3.3-70B --on 2xH100 --precision fp8 --concurrency 32",
    "predict/rate": "predict Llama-3.1-8B --on L40S --rate 2 --input-tokens 800"
    " --output-tokens 150",
    "predict-training/llama-70b": "predict-training Llama-3.1-70B --on H100 --devices 64"
    " --tp 4 --pp 4",
    "predict-network/resnet50": "predict-network resnet50 --on A100 --batch 256",
    "roofline/llama-8b": "roofline Llama-3.1-8B --on H100",
    "scale/llama-8b-100gbit": "scale Llama-3.1-8B --on H100 --node-gbit 100",
}


def telemetry() -> dict[str, str]:
    """Recordings of three clusters that all show 98 %, and the table of the first lesson."""
    serving = Scene()
    tiny_kernels, spin_wait = Scene(), Scene()
    rising = np.linspace(0.0, 120.0, serving.n_samples)
    for gpu in range(4):
        serving.device(gpu, gpu_util=0.98, sm=0.86, tensor=0.4, dram=0.7, power_w=644.0)
        tiny_kernels.device(gpu, gpu_util=0.98, sm=0.34, tensor=0.05, dram=0.18, power_w=294.0)
        spin_wait.device(
            gpu, gpu_util=0.98, sm=0.9, tensor=0.08, dram=0.2, power_w=350.0, link=0.95 * 450e9
        )
    labels = {"model_name": "m", "instance": "n1:8000"}
    for name, values in (
        ("vllm:num_requests_waiting", rising),
        ("vllm:kv_cache_usage_perc", np.full(serving.n_samples, 0.99)),
    ):
        serving._add(name, values, labels)
    table = "Time (min),GPU Utilization (%)\n0,20\n1,50\n2,90\n3,85\n4,95\n"
    scenes = {"serving": serving, "tiny-kernels": tiny_kernels, "spin-wait": spin_wait}
    texts = {
        name: json.dumps(
            {"status": "success", "data": {"resultType": "matrix", "result": scene.result}}
        )
        for name, scene in scenes.items()
    }
    return {"seed-table.csv": table, **{f"{name}.json": text for name, text in texts.items()}}


def documents(scratch: Path, only: str = "") -> Iterator[tuple[str, Any]]:
    """Every case by name, with what its command prints."""
    for name in case_names():
        if only in name:
            yield name, document(name, scratch)


def case_names() -> list[str]:
    """All cases."""
    planned = [f"{verb}/{path.stem}" for path in EXAMPLES for verb in ("plan", "program", "design")]
    checked = [f"check/{path.stem}" for path in EXAMPLES if "\nowned:" in path.read_text()]
    diagnosed = [f"diagnose/{Path(name).stem}" for name in telemetry()]
    return [*planned, *checked, *diagnosed, *(f"simulate/{name}" for name in SIMULATED), *COMMANDS]


def document(name: str, scratch: Path) -> Any:
    """What the case prints; `scratch` keeps plans that other cases start from."""
    verb, case = name.split("/")
    if verb in ("plan", "program", "design"):
        plan, program = _planned(case, scratch)
        if verb != "design":
            return plan if verb == "plan" else program
        return _printed(f"design {shlex.quote(str(scratch / f'{case}.yaml'))}")
    if verb == "check":
        return _printed(f"check examples/{case}.yaml")
    if verb == "diagnose":
        [source] = [(n, text) for n, text in telemetry().items() if Path(n).stem == case]
        (scratch / source[0]).write_text(source[1])
        return _printed(f"diagnose {shlex.quote(str(scratch / source[0]))}", hide=scratch)
    command = f"simulate {SIMULATED[case]} --seed 0" if verb == "simulate" else COMMANDS[name]
    return _printed(command)


def _planned(case: str, scratch: Path) -> tuple[Any, Any]:
    """The plan of an example with the program that chose it; made once in a scratch folder."""
    kept = scratch / f"{case}.both.json"
    if not kept.exists():
        programs: list[Any] = []
        with _recorded(programs):
            out = shlex.quote(str(scratch / f"{case}.yaml"))
            day = TODAY.isoformat()
            command = f"plan examples/{case}.yaml --samples 40 --as-of {day} --out {out}"
            plan = _printed(command)
        kept.write_text(json.dumps([plan, programs]))
    plan, programs = json.loads(kept.read_text())
    return plan, programs


@contextmanager
def _recorded(programs: list[Any]) -> Iterator[None]:
    """The first problems that the selection is given, as the programs that would be solved whole.

    They choose the plan; those that follow price single fleets at other loads.
    """
    from gpuplan.selection import choose  # noqa: PLC0415
    from gpuplan.selection.program.model import model  # noqa: PLC0415
    from gpuplan.selection.program.tables import tables  # noqa: PLC0415

    original = choose.check

    def recording(problem: Any) -> None:
        original(problem)
        if len(programs) < N_PROGRAMS:
            found = program_document(model(tables(problem)).program)
            programs.extend([found] if found not in programs else [])

    choose.check = recording
    try:
        yield
    finally:
        choose.check = original


def program_document(program: Any) -> dict[str, Any]:
    """A mixed-integer program: in LP form where a reader can follow it, else in figures."""
    size = {
        "n_columns": int(program.n_columns),
        "n_rows": int(program.n_rows),
        "n_nonzeros": len(program.value),
        "n_integers": int(program.is_integer.sum()),
        "cost_sum": float(program.cost.sum()),
        "coefficient_sum": float(np.abs(program.value).sum()),
    }
    return {**size, "lp": lp_lines(program)} if program.n_columns <= MOST_COLUMNS else size


def lp_lines(program: Any) -> list[str]:
    """The program in the LP format: objective, a line for each row, bounds, whole numbers."""
    columns = range(program.n_columns)
    ends = [*program.starts[1:], len(program.value)]
    rows = [
        _row(program, row, slice(start, end))
        for row, (start, end) in enumerate(zip(program.starts, ends, strict=True))
    ]
    uppers = [f"x{i} <= {program.upper[i]:.9g}" for i in columns if np.isfinite(program.upper[i])]
    whole = " ".join(f"x{i}" for i in columns if program.is_integer[i])
    cost = _sum_text(program.cost, np.arange(program.n_columns))
    return ["minimize", cost, "subject to", *rows, "bounds", *uppers, "general", whole, "end"]


def _row(program: Any, row: int, part: slice) -> str:
    low, high = program.row_lower[row], program.row_upper[row]
    text = _sum_text(program.value[part], program.index[part])
    if low == high:
        return f"r{row}: {text} = {low:.9g}"
    left = f"{low:.9g} <= " if np.isfinite(low) else ""
    return f"r{row}: {left}{text}" + (f" <= {high:.9g}" if np.isfinite(high) else "")


def _sum_text(values: Any, columns: Any) -> str:
    terms = zip(values, columns, strict=True)
    return " ".join(f"{value:+.9g} x{column}" for value, column in terms if value) or "0"


def _printed(command: str, hide: Path | None = None) -> Any:
    """What the command prints as JSON, with its exit code."""
    from gpuplan.cli.app import app  # noqa: PLC0415

    with _fixed_day(), warnings.catch_warnings():
        done = CliRunner().invoke(app, [*shlex.split(command), "--json"])
    error = done.exception if isinstance(done.exception, PlannerError) else None
    if done.exception and not error and not isinstance(done.exception, SystemExit):
        raise done.exception
    text = done.stdout if hide is None else done.stdout.replace(str(hide), "SCRATCH")
    printed = json.loads(text) if text.strip() else None
    code = error.exit_code if error else done.exit_code
    return {"command": _shown(command), "exit_code": code, "document": _steady(printed)}


def _shown(command: str) -> str:
    """The command without the folder that it ran in."""
    words = shlex.split(command)
    return "gpuplan " + " ".join(Path(w).name if w.startswith("/") else w for w in words)


@contextmanager
def _fixed_day() -> Iterator[None]:
    """Every `date.today()` and the folder of examples, the same everywhere."""

    class Fixed(datetime.date):
        @classmethod
        def today(cls) -> datetime.date:
            return TODAY

    before, folder = datetime.date, Path.cwd()
    datetime.date = Fixed  # type: ignore[misc]
    os.chdir(ROOT)
    try:
        yield
    finally:
        datetime.date = before  # type: ignore[misc]
        os.chdir(folder)


def _steady(value: Any) -> Any:
    """The document without what a machine, a release or a catalog's row changes by itself."""
    if isinstance(value, dict):
        # A run's own time is a result; that of the program is not.
        is_run = "total_usd" in value and "mfu_frac" in value
        dropped = VOLATILE - {"wall_s"} if is_run else VOLATILE
        return {key: _steady(part) for key, part in value.items() if key not in dropped}
    if isinstance(value, list):
        return [_steady(part) for part in value]
    return value


def differences(now: Any, golden: Any, at: str = "") -> Iterator[str]:
    """Where two documents differ, numbers within the tolerance."""
    if isinstance(now, dict) and isinstance(golden, dict):
        for key in sorted({*now, *golden}):
            if key not in now or key not in golden:
                yield f"{at}.{key}: {'missing now' if key not in now else 'new'}"
            else:
                yield from differences(now[key], golden[key], f"{at}.{key}")
    elif isinstance(now, list) and isinstance(golden, list):
        if len(now) != len(golden):
            yield f"{at}: {len(now)} parts, were {len(golden)}"
        for i, (new, old) in enumerate(zip(now, golden, strict=False)):
            yield from differences(new, old, f"{at}[{i}]")
    elif _are_numbers(now, golden):
        if not math.isclose(now, golden, rel_tol=TOLERANCE, abs_tol=1e-9):
            yield f"{at}: {now!r}, was {golden!r}"
    elif now != golden:
        yield f"{at}: {now!r}, was {golden!r}"


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
