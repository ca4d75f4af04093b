"""The package's measured tables and stored constants."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from gpuplan.csv_rows import packaged_rows


def read_rows(name: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a measured table that the package ships, as text by column."""
    return packaged_rows("gpuplan.calibration", f"data/measured/{name}")


@cache
def read_constants(name: str) -> Mapping[str, Any]:
    """One file of fitted constants under data."""
    path = files("gpuplan.calibration").joinpath("data", name)
    stored: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return stored
