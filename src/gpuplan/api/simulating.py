"""Verbs on running fleets: traces and their replay."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuplan.domain.outcome import Outcome
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.simulation import SimulateRequest, Simulation
    from gpuplan.domain.stream import Requests
    from gpuplan.domain.trace import TraceQuery, TraceRead


def read_trace(path: Path, query: "TraceQuery | None" = None) -> "TraceRead":
    """Requests of a trace file, with its quirks and its bad lines."""
    from gpuplan.inputs.traces.read import read_trace as verb

    return verb(path, query)


def simulate(
    model: str,
    on: str,
    requests: "Requests",
    request: "SimulateRequest | None" = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Simulation":
    """Replay requests against a fleet: every request's times and what they say."""
    from gpuplan.domain.simulation import SimulateRequest
    from gpuplan.pipeline.simulate import simulate as verb

    asked = request or SimulateRequest()
    return verb(model, on, requests, asked=asked, overlays=overlays, store=store)


def simulate_sheet(found: "Simulation") -> "Sheet":
    """A simulated run, ready to show."""
    from gpuplan.report.simulate import simulate_sheet as verb

    return verb(found)


def request_columns(outcome: "Outcome") -> dict[str, list[float | int | None]]:
    """Simulated requests as columns by name."""
    from gpuplan.report.request_rows import request_columns as verb

    return verb(outcome)


def requests_csv(outcome: "Outcome") -> "Iterator[str]":
    """Simulated requests as lines of a CSV file."""
    from gpuplan.report.request_rows import requests_csv as verb

    return verb(outcome)
