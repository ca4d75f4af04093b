"""Fit of start-up: measured phases in, seconds per unit and errors of held-out phases out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.startup import READERS
from gpuplan.calibration.tables import read_rows

Floats = NDArray[np.float64]


PHASES = (
    "bootstrap",
    "trace",
    "compile",
    "cached-compile",
    "profile",
    "capture",
    "split-capture",
    *(f"load-{reader}" for reader in READERS),
)


class PhaseRow(NamedTuple):
    """One measured phase of an engine's start."""

    source: str
    host: str
    model: str
    phase: str
    n_units: float
    time_s: float


def read_phase_rows(phase: str | None = None) -> tuple[PhaseRow, ...]:
    """The measured phases that the package ships."""
    return tuple(
        PhaseRow(
            source=row["source"],
            host=row["host"],
            model=row["model"],
            phase=row["phase"],
            n_units=float(row["units"]),
            time_s=float(row["time_s"]),
        )
        for row in read_rows("startup.csv")
        if phase is None or row["phase"] == phase
    )


def fit_phase(rows: Sequence[PhaseRow]) -> float:
    """Seconds per unit: the median over hosts of each host's median."""
    by_host: dict[str, list[float]] = {}
    for row in rows:
        by_host.setdefault(row.host, []).append(row.time_s / row.n_units)
    return float(np.exp(np.median([np.log(np.median(found)) for found in by_host.values()])))


def log_errors(rows: Sequence[PhaseRow], seconds_per_unit: float) -> Floats:
    """The log of predicted over measured of every phase."""
    logs: Floats = np.log([seconds_per_unit * row.n_units / row.time_s for row in rows])
    return logs


def phase_group(phase: str) -> str:
    """The range that a phase belongs to."""
    if phase.startswith("load-"):
        return "load"
    groups = {"trace": "compile", "cached-compile": "compile", "split-capture": "capture"}
    return groups.get(phase, phase)
