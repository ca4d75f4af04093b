"""The package's measured tables and stored constants."""

import csv
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_rows(name: str) -> tuple[Mapping[str, str], ...]:
    """Rows of one table under data/measured, as text by column."""
    path = files("gpuplan.calibration").joinpath("data", "measured", name)
    with path.open("r", encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


@cache
def read_constants(name: str) -> Mapping[str, Any]:
    """One file of fitted constants under data."""
    path = files("gpuplan.calibration").joinpath("data", name)
    stored: Mapping[str, Any] = json.loads(path.read_text("utf-8"))
    return stored
