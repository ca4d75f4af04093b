"""Scenarios: a commented one to start from, the rules of the file, and what a file says."""

from pathlib import Path
from typing import Any

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.inputs.scenario.template import scenario_template
from gpuplan.inputs.schema.reference import scenario_schema


def template(kind: str) -> str:
    """A commented scenario that is valid as written."""
    return scenario_template(kind)


def schema() -> dict[str, Any]:
    """The published JSON Schema."""
    return scenario_schema()


def read(path: Path) -> Scenario:
    """The scenario, or every fault of the file at once."""
    return read_scenario(path)
