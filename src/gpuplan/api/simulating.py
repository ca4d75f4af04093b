"""Verbs on running fleets: traces and their replay."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuplan.domain.chart import Chart
    from gpuplan.domain.columns import Ints
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.simulation.fleet_file import FleetSimulation
    from gpuplan.domain.simulation.outcome import Outcome, RequestTimes
    from gpuplan.domain.simulation.simulation import (
        CurveRequest,
        FleetSizeCurve,
        NetworkSimulation,
        PreparedFleet,
        SimulateRequest,
        Simulation,
        StreamedSimulation,
    )
    from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
    from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
    from gpuplan.domain.traffic.trace import ColumnMap, TraceQuery, TraceRead
    from gpuplan.studies.replay.stream import Blocks


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
    from gpuplan.domain.simulation.simulation import SimulateRequest
    from gpuplan.studies.replay.fleet_run import simulate as verb

    asked = request or SimulateRequest()
    return verb(model, on, requests, asked=asked, overlays=overlays, store=store)


def simulate_load(
    ready: "PreparedFleet",
    load: "LoadSource",
    request: "SimulateRequest",
    *,
    told: "Callable[[int], None] | None" = None,
) -> "Simulation":
    """Replay a load; of a fleet that is overloaded, also find the smallest that would hold it."""
    from gpuplan.studies.replay.fleet_run import simulate_load as verb

    return verb(ready, load, request, told=told)


def simulate_fleet(
    fleet: Path,
    load: "LoadSource",
    request: "SimulateRequest",
    *,
    served: "tuple[str | None, str]",
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "FleetSimulation":
    """Replay a load against the living fleet of a file: pools, scaling, failures, clients."""
    from gpuplan.studies.replay.fleet import simulate_living as verb

    return verb(fleet, served, load, asked=request, overlays=overlays, store=store)


def fleet_sheet(found: "FleetSimulation") -> "Sheet":
    """A run of a living fleet, ready to show."""
    from gpuplan.report.simulation.fleet import fleet_sheet as verb

    return verb(found)


def fleet_charts(found: "FleetSimulation") -> "tuple[Chart, ...]":
    """A run of a living fleet as charts."""
    from gpuplan.report.charts.fleet import fleet_charts as verb

    return verb(found)


def with_gaps(found: "Simulation") -> "Simulation":
    """The run with percentiles of single gaps between tokens, from a second one by steps."""
    from gpuplan.studies.replay.fleet_run import with_gaps as verb

    return verb(found)


def trace_blocks(path: Path, query: "TraceQuery | None" = None) -> "Blocks":
    """Requests of a file of any size, block by block."""
    from gpuplan.studies.replay.stream import traced_blocks as verb

    return verb(path, query)


def drawn_blocks(load: "DrawnLoad", *, seed: int = 0) -> "Blocks":
    """Requests drawn from a few figures, block by block."""
    from gpuplan.studies.replay.stream import drawn_blocks as verb

    return verb(load, seed=seed)


def simulate_stream(
    ready: "PreparedFleet",
    blocks: "Blocks",
    request: "SimulateRequest",
    *,
    told: "Callable[[int], None] | None" = None,
    sink: "Callable[[Requests, RequestTimes], None] | None" = None,
) -> "StreamedSimulation":
    """Replay blocks without keeping a request; `sink` gets each that has passed."""
    from gpuplan.studies.replay.stream import streamed as verb

    return verb(ready, blocks, request, told=told, sink=sink)


def simulate_network(
    network: str,
    on: str,
    load: "LoadSource",
    request: "SimulateRequest",
    *,
    overlays: Sequence[Path] = (),
) -> "NetworkSimulation":
    """Replay a load against servers of a network that is no language model."""
    from gpuplan.studies.replay.network import simulate_network as verb

    return verb(network, on, load, asked=request, overlays=overlays)


def is_network(name: str) -> bool:
    """A network that is served by whole requests: vision, encoders, diffusion."""
    from gpuplan.studies.replay.network import is_network as verb

    return verb(name)


def simulate_sheet(found: "Simulation | StreamedSimulation | NetworkSimulation") -> "Sheet":
    """A simulated run, ready to show."""
    from gpuplan.report.simulation.run import simulate_sheet as verb

    return verb(found)


def request_columns(outcome: "Outcome") -> dict[str, list[float | int | str | None]]:
    """Simulated requests as columns by name."""
    from gpuplan.report.simulation.requests import request_columns as verb

    return verb(outcome)


def passed_columns(
    requests: "Requests", times: "RequestTimes", *, first: int = 0, end: "Ints | None" = None
) -> "dict[str, Any]":
    """Requests and their times as columns by name, numbered from `first`."""
    from gpuplan.report.simulation.requests import passed_columns as verb

    return verb(requests, times, first=first, end=end)


def requests_csv(outcome: "Outcome", end: "Ints | None" = None) -> "Iterator[str]":
    """Simulated requests as lines of a CSV file."""
    from gpuplan.report.simulation.requests import requests_csv as verb

    return verb(outcome, end)


def trace_load(
    path: Path, *, query: "TraceQuery | None" = None, scale: float = 1.0, seed: int = 0
) -> "LoadSource":
    """Requests of a trace file, more or fewer of them, as bursty as they were."""
    from gpuplan.studies.replay.load import traced_load as verb

    return verb(path, query=query, scale_factor=scale, seed=seed)


def clients_load(
    folder: Path,
    *,
    query: "TraceQuery | None" = None,
    duration_s: float | None = None,
    scale: float = 1.0,
    seed: int = 0,
) -> "LoadSource":
    """Requests drawn from recorded clients: a folder as ServeGen publishes them."""
    from gpuplan.studies.replay.clients import clients_load as verb

    return verb(folder, query=query, duration_s=duration_s, scale_factor=scale, seed=seed)


def column_map(text: str) -> "ColumnMap":
    """Which column holds what: arrive=ts,input=prompt,output=answer,unit=ms."""
    from gpuplan.inputs.traces.column_map import column_map as verb

    return verb(text)


def drawn_load(load: "DrawnLoad", *, seed: int = 0) -> "LoadSource":
    """Requests drawn from a few figures."""
    from gpuplan.studies.replay.load import drawn_load as verb

    return verb(load, seed=seed)


def scenario_load(
    path: Path, workload: str | None = None, *, duration_s: float | None = None, seed: int = 0
) -> "LoadSource":
    """Requests of a scenario's workload, with its model and its objective."""
    from gpuplan.studies.replay.scenario import scenario_load as verb

    return verb(path, workload, duration_s=duration_s, seed=seed)


def prepare_fleet(
    model: str,
    on: str,
    requests: "Requests",
    request: "SimulateRequest",
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "PreparedFleet":
    """Engines ready to replay streams like this one."""
    from gpuplan.studies.replay.fleet_run import prepared as verb

    return verb(model, on, requests, asked=request, overlays=overlays, store=store)


def with_urgencies(
    load: "LoadSource", mix: "tuple[tuple[int, float], ...]", *, seed: int = 0
) -> "LoadSource":
    """The load with an urgency for each request, drawn by shares; lower numbers go first."""
    from gpuplan.studies.replay.marks import with_urgencies as verb

    return verb(load, mix, seed=seed)


def with_shared_prefix(load: "LoadSource", n_tokens: int) -> "LoadSource":
    """The load with a system prompt that every prompt begins with."""
    from gpuplan.studies.replay.marks import with_shared_prefix as verb

    return verb(load, n_tokens)


def with_lengths(
    load: "LoadSource", path: Path, query: "TraceQuery | None" = None, *, seed: int = 0
) -> "LoadSource":
    """The load's arrivals with lengths drawn from the rows of a recording."""
    from gpuplan.studies.replay.marks import with_lengths as verb

    return verb(load, path, query, seed=seed)


def simulate_curve(
    ready: "PreparedFleet",
    requests: "Requests",
    curve: "CurveRequest",
    *,
    request: "SimulateRequest",
    blocks: "PrefixBlocks | None" = None,
    told: "Callable[[int], None] | None" = None,
) -> "FleetSizeCurve":
    """Precision and recall over the size of the fleet, and the size that balances them."""
    from gpuplan.studies.replay.sizes import fleet_curve as verb

    return verb(ready, requests, curve, run=request, blocks=blocks, told=told)


def curve_sheet(curve: "FleetSizeCurve") -> "Sheet":
    """A curve over fleet sizes, ready to show."""
    from gpuplan.report.simulation.curve import curve_sheet as verb

    return verb(curve)


def simulate_charts(
    found: "Simulation | StreamedSimulation | NetworkSimulation",
) -> "tuple[Chart, ...]":
    """A run as charts."""
    from gpuplan.report.charts.simulation import simulate_charts as verb

    return verb(found)


def curve_charts(curve: "FleetSizeCurve") -> "tuple[Chart, ...]":
    """A curve over fleet sizes as charts."""
    from gpuplan.report.charts.simulation import curve_charts as verb

    return verb(curve)
