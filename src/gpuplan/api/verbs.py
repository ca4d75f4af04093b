"""Verbs with the defaults that people expect; each loads its rooms when it is called."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.requests.requests import TrainingRun
from gpuplan.errors import InputError, one
from gpuplan.units import GB, HOUR, MINUTE

if TYPE_CHECKING:
    from gpuplan.domain.calibration.validation import ValidationReport
    from gpuplan.domain.hardware.catalog import Catalog
    from gpuplan.domain.plan.answer import Answer
    from gpuplan.domain.scenario.scenario import Scenario
    from gpuplan.domain.system.check import SystemCheck
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest, Diagnosis
    from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow

Target = str | Path | Mapping[str, Any]
# Columns of a training table, with what is usual; None: the framework's usual.
TRAINING_COLUMNS: dict[str, object] = {
    "seq_len": 4096,
    "global_batch": 128,
    "micro_batch": 1,
    "tp": 1,
    "pp": 1,
    "vp": None,
    "cp": 1,
    "ep": 1,
    "sharding": None,
    "recompute": None,
    "precision": "bf16",
    "framework": None,
    "task": "pretrain",
    "fabric": None,
    "devices_per_node": None,
    "lora_rank": 16,
    "lora_targets": "all",
}


def plan(scenario: "Target | PlanRequest", **options: Any) -> "Answer":
    """What to get, how many, from where, at what cost, and why not the others.

    The scenario is a file, a line of words, a mapping with the keys of a scenario file, or a whole
    request. Options are fields of `PlanRequest`: seed, n_samples, changes, overlays, today …
    """
    from gpuplan.pipeline.plan import plan as verb

    if isinstance(scenario, PlanRequest):
        return verb(replace(scenario, **options))
    if isinstance(scenario, Mapping):
        name = str(scenario.get("name", "the scenario"))
        options = {"target": name, "tree": scenario, **options}
    else:
        options = {"target": str(scenario), **options}
    return verb(PlanRequest(**{"today": date.today(), **options}))


def scenario(tree: Mapping[str, Any] | None = None, **keys: Any) -> "Scenario":
    """A scenario built in Python: the keys of a scenario file, checked like one."""
    from gpuplan.inputs.scenario.read import scenario_from_dict

    whole = {**(tree or {}), **keys}
    return scenario_from_dict(whole, name=str(whole.get("name", "the scenario")))


def diff(old: Path, new: Path) -> "tuple[Answer, Answer]":
    """Two plan files as values."""
    from gpuplan.inputs.plan_file import read_plan

    return read_plan(old), read_plan(new)


def check(path: Path | str, changes: tuple[str, ...] = ()) -> "SystemCheck":
    """What a described system lacks, in order, and what would balance it.

    Changes such as "site.software.cuda=13.0" are set before it is judged.
    """
    from gpuplan.pipeline.check import check as verb

    return verb(Path(path), changes=changes, month=date.today().isoformat()[:7])


def catalog(*, overlays: Sequence[Path] = ()) -> "Catalog":
    """Accelerators, servers, networks and storage, every number with its source."""
    from gpuplan.catalog.load import read_catalog
    from gpuplan.studies.naming import with_overlays

    return with_overlays(read_catalog(), overlays)


def training_run(
    model: str,
    on: str,
    *,
    devices: int | None = None,
    tokens: float | None = None,
    mtbf_h: float | None = None,
    restart_min: float = 15.0,
    checkpoint_gb_per_s: float | None = None,
    **columns: object,
) -> TrainingRun:
    """A training run to predict, from keywords.

    Columns are those of a training table: seq_len, global_batch, micro_batch, tp, pp, vp, cp, ep,
    sharding, recompute, precision, framework, task, fabric, devices_per_node, lora_rank.
    """
    unknown = columns.keys() - TRAINING_COLUMNS.keys()
    if unknown:
        known = ", ".join(TRAINING_COLUMNS)
        raise one(InputError, "training_run", ", ".join(sorted(unknown)), "unknown", f"use {known}")
    first = {"id": "asked", "model": model, "accelerator": on, "n_accelerators": devices}
    given = {**first, **TRAINING_COLUMNS, **columns}
    return TrainingRun(
        columns=tuple((name, "" if v is None else str(v)) for name, v in given.items()),
        n_tokens=tokens,
        mtbf_s=None if mtbf_h is None else mtbf_h * HOUR,
        restart_s=restart_min * MINUTE,
        checkpoint_bytes_per_s=None if checkpoint_gb_per_s is None else checkpoint_gb_per_s * GB,
    )


def validate(
    path: Path | None = None,
    *,
    kind: str = "llm_inference",
    cross: bool = False,
    columns: Sequence[str] = (),
) -> "ValidationReport":
    """Predictions against a measured table, or against the package's own of this kind.

    `columns` name what a table calls otherwise: "gpu=accelerator", "seq_len:=2048".
    """
    from gpuplan.studies.validation.report import validate_file, validate_package

    if path is None:
        return validate_package(kind, cross=cross)
    return validate_file(path, cross=cross, columns=columns)


def diagnose(
    source: "Path | str | ServerAccess",
    request: "DiagnoseRequest | None" = None,
    *,
    window: "TimeWindow | None" = None,
) -> "Diagnosis":
    """What telemetry says: bands, peaks, causes with evidence, waste, and what helps."""
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
    from gpuplan.pipeline.diagnose import diagnose_file, diagnose_server

    query = request or DiagnoseRequest()
    if isinstance(source, Path | str):
        return diagnose_file(Path(source), query)
    if window is None:
        raise one(InputError, "diagnose", "window", "missing", "say from when to when")
    return diagnose_server(source, window, query)
