"""scenario.yaml → Scenario: read, check everything, convert once, note what is assumed.

Files that a scenario names: found beside it, or reported missing.

Changing keys of a document before it is read, in: "growth.per_month_frac=0.1".
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import InputError, Problem, one, printable
from gpuplan.inputs.documents.document import Document, KeyPath, document_from_dict, show_path
from gpuplan.inputs.documents.problems import Finding, refuse, validated
from gpuplan.inputs.documents.scalars import shorten
from gpuplan.inputs.documents.yaml_reader import read_yaml, read_yaml_text
from gpuplan.inputs.scenario.assumptions import Assumptions, with_plain_kinds
from gpuplan.inputs.scenario.check import cross_findings, kind_findings
from gpuplan.inputs.scenario.terms import policy, prices
from gpuplan.inputs.scenario.workloads import workload
from gpuplan.inputs.schema.kinds import plain_of
from gpuplan.inputs.schema.nouns import noun_of
from gpuplan.inputs.schema.scenario import ScenarioSpec
from gpuplan.inputs.schema.workload import OnlineSpec, PlainWorkload

_STEP = re.compile(r"([A-Za-z_][\w-]*)|\[(\d{1,4})\]")
MAX_PATH_PARTS = 20


PLAN_KIND = "gpuplan-plan"


def read_scenario(path: Path, *, changes: Sequence[str] = (), option: str = "--set") -> Scenario:
    """The scenario of a file with these keys changed; raises InputError with every problem."""
    document = with_changes(scenario_document(path), changes, option=option)
    return scenario_of(document, folder=path.parent)


def scenario_from_dict(
    tree: Mapping[str, Any], *, name: str = "scenario", folder: Path | None = None
) -> Scenario:
    """The scenario of the keys of scenario.yaml built in Python, checked like the file."""
    return scenario_of(document_from_dict(tree, name=name), folder=folder)


def scenario_document(path: Path) -> Document:
    """What a scenario file says before it is checked; of a plan file, what it was made for."""
    document = read_yaml(path)
    data = document.data
    if isinstance(data, dict) and data.get("kind") == PLAN_KIND:
        retained = data.get("provenance")
        if isinstance(retained, dict) and "scenario" in retained:
            document = document.part(("provenance", "scenario"))
    if isinstance(data, dict) and "nodes" in data and "workloads" not in data:
        fix = "give its jobs too: --jobs TRACE.csv; a scenario has workloads"
        raise one(InputError, str(path), "nodes", "is a key of a cluster file", fix)
    return document


def scenario_of(document: Document, *, folder: Path | None) -> Scenario:
    """The scenario that a document describes."""
    written = validated(ScenarioSpec, document)
    refuse(document, kind_findings(written))
    spec, missing = with_files(with_plain_kinds(written), folder)
    refuse(document, [*cross_findings(spec), *missing])
    return _scenario(written, spec, _fingerprint(document.data))


def _scenario(written: ScenarioSpec, spec: ScenarioSpec, sha256: str) -> Scenario:
    assumptions = Assumptions()
    assumptions.add_defaults(written)
    works = [
        workload(plain_of(w), ("workloads", i), assumptions) for i, w in enumerate(spec.workloads)
    ]
    return noun_of(
        spec,
        Scenario,
        workloads=tuple(works),
        policy=policy(spec, assumptions),
        prices=prices(spec.prices),
        assumptions=assumptions.all(),
        sha256=sha256,
    )


def _fingerprint(data: Any) -> str:
    """Hash of the meaning: neither comments nor the order of keys count, nor 5 against 5.0."""
    canonical = json.dumps(_plain(data), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_number else value


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


def with_changes(document: Document, changes: Sequence[str], *, option: str = "--set") -> Document:
    """The document with every `key=value` set; raises InputError with all that cannot be set."""
    problems = []
    for change in changes:
        key, sign, text = change.partition("=")
        origin = f"{option} {shorten(printable(key.strip()), 60)}".strip()
        try:
            path = _existing_path(document.data, key_path(key))
            if not sign or not text.strip():
                raise ValueError("has no value")
            value = read_yaml_text(f"value: {text.strip()}", name=origin).data["value"]
            document = document.with_value(path, value, origin=origin)
        except (ValueError, IndexError, TypeError, KeyError) as error:
            fix = "write key=value, e.g. workloads[0].demand.users=12000 or users=12000"
            problems.append(Problem(origin, str(error).strip("'\""), fix))
    if problems:
        raise InputError(option, problems)
    return document


def key_path(text: str) -> KeyPath:
    """The steps of a key as people write it: workloads[0].demand.users."""
    steps: list[str | int] = []
    rest = text.strip()
    while rest:
        match = _STEP.match(rest)
        if match is None or len(steps) >= MAX_PATH_PARTS:
            raise ValueError("is not a key")
        steps.append(match[1] if match[1] else int(match[2]))
        rest = rest[match.end() :].removeprefix(".")
    if not steps:
        raise ValueError("names no key")
    return tuple(steps)


def _existing_path(tree: Any, path: KeyPath) -> KeyPath:
    """The key itself, or the only key of that single name that the tree holds."""
    if len(path) > 1 or path[0] in tree or not isinstance(path[0], str):
        return path
    found = [known for known in _paths(tree) if known[-1] == path[0]]
    if len(found) > 1:
        shown = ", ".join(map(show_path, found[:3]))
        raise KeyError(f"is ambiguous: {len(found)} keys have this name: {shown}")
    return found[0] if found else path


def _paths(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    found: list[KeyPath] = []
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for step, item in entries:
        here = (*path, step)
        found.append(here)
        if isinstance(item, dict | list):
            found += _paths(item, here)
    return found
