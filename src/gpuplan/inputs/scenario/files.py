"""Files that a scenario names: found beside it, or reported missing."""

from pathlib import Path
from typing import Any

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.documents.problems import Finding
from gpuplan.inputs.schema.kinds import plain_of
from gpuplan.inputs.schema.scenario import ScenarioSpec
from gpuplan.inputs.schema.workload import OnlineSpec, PlainWorkload


def with_files(spec: ScenarioSpec, folder: Path | None) -> tuple[ScenarioSpec, list[Finding]]:
    """The scenario with paths from the folder of its file, and the files that are not there."""
    findings: list[Finding] = []
    works = [
        _workload(plain_of(work), ("workloads", i), folder, findings=findings)
        for i, work in enumerate(spec.workloads)
    ]
    return spec.model_copy(update={"workloads": works}), findings


def is_path(model_name: str) -> bool:
    """Whether the name of a model means a file or folder; all else is left to the catalog."""
    return model_name.startswith(("./", "../", "/", "~")) or model_name.endswith(".json")


def _workload(
    work: PlainWorkload, path: KeyPath, folder: Path | None, *, findings: list[Finding]
) -> PlainWorkload:
    changed: dict[str, Any] = {}
    model = work.model
    if model is not None and model.name is not None and is_path(model.name):
        found = _found(model.name, (*path, "model"), folder, findings=findings)
        changed["model"] = model.model_copy(update={"name": found})
    if isinstance(work, OnlineSpec) and work.demand.trace is not None:
        at = (*path, "demand", "trace")
        found = _found(work.demand.trace, at, folder, findings=findings)
        changed["demand"] = work.demand.model_copy(update={"trace": found})
    return work.model_copy(update=changed) if changed else work


def _found(name: str, path: KeyPath, folder: Path | None, *, findings: list[Finding]) -> str:
    if folder is None:
        fix = "name a model of the catalog, or give rates instead of a trace"
        findings.append(Finding(path, f"{name!r} is a file, which cannot be named here", fix))
        return name
    try:
        full = folder / Path(name).expanduser()
        exists = full.exists()
    except (OSError, RuntimeError, ValueError):
        exists = False
    if not exists:
        findings.append(Finding(path, f"{name!r} is not there", f"put it into {folder or '.'}"))
        return name
    return str(full)
