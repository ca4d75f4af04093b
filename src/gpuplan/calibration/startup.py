"""Fitted start-up, in: measured phases; out: seconds per layer, gigabyte and graph, with ranges."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.tables import read_constants, read_rows
from gpuplan.domain.inference.startup import StartConstants, StartPhases
from gpuplan.domain.provenance import Estimate
from gpuplan.units import GB

Floats = NDArray[np.float64]
# Phases whose cost goes with a unit: layers, gigabytes per stream, layers times graphs.
READERS = ("page-cache", "local-disk", "network-disk", "object-store")
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
REPORTED_PHASES = (
    "image_pull",
    "download",
    "bootstrap",
    "load",
    "compile",
    "profile",
    "capture",
)
# Image pulls and downloads depend on registries and neighbours: nothing to fit (Assumption).
FETCH_RANGE = (0.5, 2.5)


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


def start_constants() -> StartConstants:
    """Constants of a vLLM start; other engines differ by less than hosts do."""
    seconds = _stored()["seconds_per_unit"]
    return StartConstants(
        bootstrap_s=seconds["bootstrap"],
        reader_bytes_per_s={name: GB / seconds[f"load-{name}"] for name in READERS},
        trace_s_per_layer=seconds["trace"],
        compile_s_per_layer=seconds["compile"],
        cached_compile_s_per_layer=seconds["cached-compile"],
        profile_s_per_layer=seconds["profile"],
        capture_s_per_graph_layer=seconds["capture"],
        split_capture_s_per_graph_layer=seconds["split-capture"],
    )


def start_estimates(phases: StartPhases) -> Mapping[str, Estimate]:
    """Every phase and their total with ranges; phases fail together, so their ranges add."""
    stored = _stored()
    sources = tuple(stored["sources"])
    ranges = {"image_pull": FETCH_RANGE, "download": FETCH_RANGE, **stored["ranges"]}
    found = {}
    for name in REPORTED_PHASES:
        seconds, (low, high) = getattr(phases, f"{name}_s"), ranges[name]
        found[name] = Estimate(
            value=seconds, low=seconds * low, high=seconds * high, tier="fitted", sources=sources
        )
    total = Estimate(
        value=phases.total_s,
        low=sum(part.low for part in found.values()),
        high=sum(part.high for part in found.values()),
        tier="fitted",
        sources=sources,
    )
    return {**found, "total": total}


def phase_group(phase: str) -> str:
    """The range that a phase belongs to."""
    if phase.startswith("load-"):
        return "load"
    groups = {"trace": "compile", "cached-compile": "compile", "split-capture": "capture"}
    return groups.get(phase, phase)


def _stored() -> Mapping[str, Any]:
    return read_constants("startup.json")
