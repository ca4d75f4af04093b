"""Scenarios of texts, as tests write them: no file is needed."""

from pathlib import Path

from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.scenario.read import scenario_of


def read_scenario_text(
    text: str, *, name: str = "scenario.yaml", folder: Path | None = None
) -> Scenario:
    """The scenario of a text; without a folder it may not name files."""
    return scenario_of(read_yaml_text(text, name=name), folder=folder)
