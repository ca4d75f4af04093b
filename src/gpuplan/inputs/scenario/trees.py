"""Scenarios as trees of plain values, in: a file, or a tree; out: the tree, or the Scenario."""

from pathlib import Path
from typing import Any

import yaml

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import InputError, one
from gpuplan.inputs.documents.yaml_reader import read_yaml, read_yaml_text
from gpuplan.inputs.scenario.read import scenario_of

Tree = dict[str, Any]
PLAN_KIND = "gpuplan-plan"


def scenario_tree(path: Path) -> Tree:
    """What a scenario file says, before it is checked; of a plan file, what it was made for."""
    data = read_yaml(path).data
    if isinstance(data, dict) and data.get("kind") == PLAN_KIND:
        data = data.get("provenance", {}).get("scenario")  # a plan holds what it was made for
    if not isinstance(data, dict):
        fix = "`gpuplan init` writes a commented example"
        raise one(InputError, str(path), "scenario", "is no mapping of keys", fix)
    return data


def scenario_from(tree: Tree, *, name: str, folder: Path | None) -> Scenario:
    """The scenario of a tree; raises with every problem, by the line of the tree as written."""
    return scenario_of(read_yaml_text(tree_text(tree), name=name), folder=folder)


def tree_text(tree: Tree) -> str:
    """The tree as YAML."""
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
