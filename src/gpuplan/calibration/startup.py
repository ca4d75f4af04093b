"""Fitted start-up, in: measured phases; out: seconds per layer, gigabyte and graph, with ranges."""

from collections.abc import Mapping
from typing import Any

from gpuplan.calibration.tables import read_constants
from gpuplan.domain.inference.startup import StartConstants, StartPhases
from gpuplan.domain.provenance import Estimate
from gpuplan.units import GB

# Phases whose cost goes with a unit: layers, gigabytes per stream, layers times graphs.
READERS = ("page-cache", "local-disk", "network-disk", "object-store")
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


def _stored() -> Mapping[str, Any]:
    return read_constants("startup.json")
