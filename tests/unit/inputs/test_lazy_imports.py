"""Reading YAML or writing a template does not pay for pydantic."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["gpuplan.inputs.documents.yaml_reader", "gpuplan.inputs.scenario.template"]
)
def test_pydantic_is_loaded_for_scenarios_only(module: str) -> None:
    code = f"import sys, {module}; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
