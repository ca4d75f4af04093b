"""The scenario that was asked for, in: a file or a line, flags and changes; out: Scenario, tree."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.inputs.scenario.changes import changed, set_key
from gpuplan.inputs.scenario.changes import key_path as path_of
from gpuplan.inputs.scenario.short_form import flag_keys, short_scenario
from gpuplan.inputs.scenario.trees import scenario_from, scenario_tree

FILE_ENDINGS = (".yaml", ".yml", ".json")


class Asked(NamedTuple):
    """A scenario with the tree that it was read from."""

    scenario: Scenario
    tree: dict[str, Any]


def asked_scenario(request: PlanRequest) -> Asked:
    """The scenario of a file, or of a line of words; flags win, then changes."""
    if request.tree is not None:
        tree = changed(dict(request.tree), request.changes)
        scenario = scenario_from(tree, name=request.target, folder=None)
        return Asked(scenario=scenario, tree=tree)
    path = Path(request.target)
    if is_file_name(request.target):
        tree = changed(scenario_tree(path), ())
        for key, value in flag_keys(request.given).items():
            set_key(tree, path_of(key), value)
        tree = changed(tree, request.changes)
        scenario = scenario_from(tree, name=str(path), folder=path.parent)
        return Asked(scenario=scenario, tree=tree)
    tree, assumptions = short_scenario(request.target, request.given)
    tree = changed(tree, request.changes)
    scenario = scenario_from(tree, name="the line", folder=None)
    notes = (*assumptions, *scenario.assumptions)
    return Asked(scenario=replace(scenario, assumptions=notes), tree=tree)


def is_file_name(target: str) -> bool:
    """Whether the words name a file: by its ending, or because it is there."""
    is_short = "\n" not in target and len(target) < 1000
    return target.lower().endswith(FILE_ENDINGS) or (is_short and Path(target).is_file())
