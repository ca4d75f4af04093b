"""Where the published measurements and raw catalog files lie, for tests that judge against them."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("GPUPLAN_SHARED_DATA", ROOT.parent / "shared" / "data"))


def shared_file(name: str) -> Path:
    """The file, or a skip that says what is missing."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is kept outside the repository; set GPUPLAN_SHARED_DATA to its folder")
    return path
