"""The scenario that was asked for, in: a file or a line, flags and changes; out: Scenario, tree."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.inputs.documents.document import Document, document_from_dict
from gpuplan.inputs.scenario.changes import with_changes
from gpuplan.inputs.scenario.read import scenario_document, scenario_of
from gpuplan.inputs.scenario.short_form import short_scenario, with_flags

FILE_ENDINGS = (".yaml", ".yml", ".json")


class Asked(NamedTuple):
    """A scenario with the tree that it was read from."""

    scenario: Scenario
    tree: dict[str, Any]


def asked_scenario(request: PlanRequest) -> Asked:
    """The scenario of a file, or of a line of words; flags win, then changes."""
    document, folder, notes = _document(request)
    document = with_changes(document, request.changes)
    scenario = scenario_of(document, folder=folder)
    notes = (*notes, *scenario.assumptions)
    return Asked(scenario=replace(scenario, assumptions=notes), tree=document.data)


def _document(request: PlanRequest) -> tuple[Document, Path | None, tuple[Assumption, ...]]:
    """What was asked for, the folder of its files, and what a line of words left to defaults."""
    if request.tree is not None:
        return document_from_dict(request.tree, name=request.target), None, ()
    if is_file_name(request.target):
        path = Path(request.target)
        return with_flags(scenario_document(path), request.given), path.parent, ()
    document, assumptions = short_scenario(request.target, request.given)
    return document, None, assumptions


def is_file_name(target: str) -> bool:
    """Whether the words name a file: by its ending, or because it is there."""
    is_short = "\n" not in target and len(target) < 1000
    return target.lower().endswith(FILE_ENDINGS) or (is_short and Path(target).is_file())
