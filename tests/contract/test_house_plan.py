"""The import contracts hold, and they are exhaustive: a new module must be given its floor."""

import subprocess
import sys
from pathlib import Path

from shared_data import ROOT


def test_import_contracts_hold():
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
