"""scenario.yaml → Scenario: read, check everything, convert once, note what is assumed."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.document import Document, document_from_dict
from gpuplan.inputs.documents.problems import (
    MAX_SHOWN,
    Finding,
    null_findings,
    schema_findings,
    show,
)
from gpuplan.inputs.documents.yaml_reader import read_yaml, read_yaml_text, shown_problem
from gpuplan.inputs.scenario import convert_site
from gpuplan.inputs.scenario.assumptions import Assumptions
from gpuplan.inputs.scenario.changes import with_changes
from gpuplan.inputs.scenario.check import cross_findings
from gpuplan.inputs.scenario.convert_build import build
from gpuplan.inputs.scenario.convert_workload import workload
from gpuplan.inputs.scenario.files import with_files
from gpuplan.inputs.schema.scenario import ScenarioSpec

PLAN_KIND = "gpuplan-plan"


def read_scenario(path: Path, *, changes: Sequence[str] = (), option: str = "--set") -> Scenario:
    """The scenario of a file with these keys changed; raises InputError with every problem."""
    document = with_changes(scenario_document(path), changes, option=option)
    return scenario_of(document, folder=path.parent)


def read_scenario_text(
    text: str, *, name: str = "scenario.yaml", folder: Path | None = None
) -> Scenario:
    """The scenario of a text; without a folder it may not name files."""
    return scenario_of(read_yaml_text(text, name=name), folder=folder)


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
    _refuse_other_than_keys(document)
    return document


def scenario_of(document: Document, *, folder: Path | None) -> Scenario:
    """The scenario that a document describes."""
    spec = _spec(document)
    spec, missing = with_files(spec, folder)
    _refuse(document, [*cross_findings(spec), *missing])
    return _scenario(spec, _fingerprint(document.data))


def _refuse_other_than_keys(document: Document) -> None:
    if not isinstance(document.data, dict):
        what = f"the file holds {show(document.data)} instead of keys"
        fix = "begin with name: and workloads:; `gpuplan init` writes a commented example"
        _refuse(document, [Finding((), what, fix)])


def _spec(document: Document) -> ScenarioSpec:
    _refuse_other_than_keys(document)
    data = document.data
    findings = list(null_findings(data))
    empty = {finding.path for finding in findings}
    try:
        spec = ScenarioSpec.model_validate(data)
    except ValidationError as error:
        findings += [f for f in schema_findings(error, data) if f.path not in empty]
        _refuse(document, findings)
        raise
    _refuse(document, findings)
    return spec


def _refuse(document: Document, findings: Iterable[Finding]) -> None:
    ordered = sorted(findings, key=lambda finding: document.line_of(finding.path) or 0)
    shown = ordered[:MAX_SHOWN]
    problems = [shown_problem(document.place(path), what, fix) for path, what, fix in shown]
    if len(ordered) > MAX_SHOWN:
        problems.append(Problem(document.name, "has more than these", "mend them and try again"))
    if problems:
        raise InputError(document.name, problems)


def _scenario(spec: ScenarioSpec, sha256: str) -> Scenario:
    assumptions = Assumptions()
    assumptions.add_defaults(spec)
    works = [workload(w, ("workloads", i), assumptions) for i, w in enumerate(spec.workloads)]
    policy = replace(convert_site.policy(spec.policy, assumptions), build=build(spec.build))
    return Scenario(
        name=spec.name,
        workloads=tuple(works),
        growth=convert_site.growth(spec.growth),
        site=convert_site.site(spec.site) if spec.site else None,
        owned=tuple(convert_site.owned(nodes) for nodes in spec.owned),
        budget=convert_site.budget(spec.budget),
        policy=policy,
        prices=convert_site.prices(spec.prices),
        teams=tuple(convert_site.team(team) for team in spec.teams),
        objective=spec.objective,
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
