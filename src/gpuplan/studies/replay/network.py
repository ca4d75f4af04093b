"""Servers of vision networks, encoders and diffusion: times by batch size, then a replay."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from gpuplan.catalog.vision import vision_named
from gpuplan.domain.columns import floats
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers, BatchTable
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.simulation.simulation import FleetTried, NetworkSimulation, SimulateRequest
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError, one
from gpuplan.simulation.serving.batching import simulate_servers
from gpuplan.simulation.serving.statistics import flow_of
from gpuplan.studies.naming import model_named
from gpuplan.studies.networks.predict import predict_network
from gpuplan.studies.replay.judge import judged
from gpuplan.studies.replay.sizes import smallest, tried_point

MOST_SIZES = 1024
KINDS = ("encoder", "vision", "diffusion", "speech", "recommender")


def is_network(name: str) -> bool:
    """A network whose time is known by batch size, and that is no language model."""
    if vision_named(name):
        return True
    try:
        return model_named(name).kind in KINDS
    except InputError:
        return False


def simulate_network(
    network: str,
    on: str,
    load: LoadSource,
    request: SimulateRequest,
    *,
    overlays: Sequence[Path] = (),
) -> NetworkSimulation:
    """A load replayed against servers of a network that is no language model.

    Every request is one sample; its tokens, where it has any, are the length of a text.
    """
    policy = request.scheduler.batching if request.scheduler else None
    if policy is None or not 1 <= policy.max_batch <= MOST_SIZES:
        what = "no batches" if policy is None else f"got {policy.max_batch}"
        fix = f"use --batching dynamic with --max-batch-size from 1 to {MOST_SIZES:,}"
        raise one(InputError, "simulate", "--max-batch-size", what, fix)
    if len(load.requests) == 0:
        raise one(InputError, "simulate", "trace", "holds no request", "give at least one")
    sample = _request(load.requests, request)
    forecasts = [
        predict_network(network, on, replace(sample, batch=size), overlays=overlays)
        for size in range(1, policy.max_batch + 1)
    ]
    servers = BatchServers(
        policy=policy,
        table=_table(forecasts, sample.precision),
        n_engines=request.n_replicas,
        router=request.router if request.n_replicas > 1 else "round_robin",
        seed=request.seed,
    )
    found = _replayed(load, servers, forecasts[-1], request)
    return _smallest(found, request) if found.statistics.is_overloaded else found


def _smallest(found: NetworkSimulation, request: SimulateRequest) -> NetworkSimulation:
    """Of servers that are overloaded, how many would hold the load."""

    def run(n: int) -> FleetTried:
        servers = replace(
            found.servers, n_engines=n, router=request.router if n > 1 else "round_robin"
        )
        outcome = simulate_servers(found.outcome.requests, servers, bin_s=request.bin_s)
        return tried_point(outcome, n, found.slo, paid_s=outcome.paid_s)

    return replace(found, holding=smallest(run, found.slo, n_given=found.servers.n_engines))


def _request(requests: Requests, request: SimulateRequest) -> NetworkRequest:
    mean = round(float(requests.input_tokens.mean()))
    usual = NetworkRequest(precision=request.precision)
    return replace(usual, n_tokens=mean) if mean > 1 else usual


def _table(forecasts: list[NetworkForecast], precision: str | None) -> BatchTable:
    """Times of every size, and what arithmetic and traffic would take at the card's peaks."""
    card = forecasts[0].accelerator
    peaks = card.peak_flop_per_s
    flop_per_s = peaks[precision] if precision else peaks.get("fp16", peaks.get("bf16", 0.0))
    works = [forecast.work for forecast in forecasts if forecast.work is not None]
    if len(works) < len(forecasts) or flop_per_s <= 0:
        works, flop_per_s = [], 1.0
    none = [0.0] * (len(forecasts) - len(works))
    flop = [w.flop + w.attention_flop for w in works] + none
    moved = [w.activation_bytes + w.weight_bytes for w in works] + none
    return BatchTable(
        batch_s=floats([0.0, *(forecast.batch_s.value for forecast in forecasts)]),
        arithmetic_s=floats(np.array([0.0, *flop]) / flop_per_s),
        memory_s=floats(np.array([0.0, *moved]) / card.memory.bytes_per_s),
    )


def _replayed(
    load: LoadSource, servers: BatchServers, forecast: NetworkForecast, request: SimulateRequest
) -> NetworkSimulation:
    one_each = np.ones(len(load.requests), dtype=np.int64)
    samples = requests_of(load.requests.arrive_s, one_each, one_each)
    simulate_servers(samples.take([0]), servers)  # compiles, or loads
    start_s = perf_counter()
    outcome = simulate_servers(samples, servers, bin_s=request.bin_s)
    wall_s = perf_counter() - start_s
    # A sample has no tokens: what was put in for them says nothing.
    notes = (a for a in load.assumptions if a.what not in ("input lengths", "output lengths"))
    times = _times_note(servers.policy, forecast)
    assumptions = (*notes, *forecast.assumptions, times, *_unknown_work(servers.table))
    return NetworkSimulation(
        forecast=forecast,
        servers=servers,
        outcome=replace(outcome, assumptions=assumptions),
        statistics=judged(outcome, request),
        slo=request.slo or SloTargets(),
        wall_s=wall_s,
        flow=flow_of(outcome),
    )


def _unknown_work(table: BatchTable) -> list[Assumption]:
    """Where only times are known, nothing is said about what fills them."""
    if table.arithmetic_s.any():
        return []
    value, why = "not known, shown as 0 %", "only the time of a batch of this network is known"
    return [Assumption(what="compute and bandwidth", value=value, why=why, change="")]


def _times_note(policy: BatchPolicy, forecast: NetworkForecast) -> Assumption:
    time = forecast.batch_s
    value = f"{1e3 * time.value:.3g} ms for {policy.max_batch} ({time.tier})"
    why = f"predicted for every size; the range is {1e3 * time.low:.3g} to {1e3 * time.high:.3g} ms"
    return Assumption(what="time of a batch", value=value, why=why, change="predict-network")
