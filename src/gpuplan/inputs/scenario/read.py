"""scenario.yaml → Scenario: read, check everything, convert once, note what is assumed."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import InputError, one
from gpuplan.inputs.documents.document import Document, document_from_dict
from gpuplan.inputs.documents.problems import refuse, validated
from gpuplan.inputs.documents.yaml_reader import read_yaml
from gpuplan.inputs.scenario.assumptions import Assumptions
from gpuplan.inputs.scenario.changes import with_changes
from gpuplan.inputs.scenario.check import cross_findings, kind_findings
from gpuplan.inputs.scenario.files import with_files
from gpuplan.inputs.scenario.kinds import with_plain_kinds
from gpuplan.inputs.scenario.terms import policy, prices
from gpuplan.inputs.scenario.workloads import workload
from gpuplan.inputs.schema.kinds import plain_of
from gpuplan.inputs.schema.nouns import noun_of
from gpuplan.inputs.schema.scenario import ScenarioSpec

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
        held = data.get("provenance")
        if isinstance(held, dict) and "scenario" in held:
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
