"""The validation page says what the code does."""

import subprocess
import sys

import pytest

from shared_data import ROOT, shared_file

pytestmark = pytest.mark.shared


def test_page_is_fresh():
    shared_file("measured/memory_vllm_h100.csv")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "write_validation.py", "--check"], check=False
    )
    assert done.returncode == 0, "run python tools/write_validation.py and read the difference"
