"""An autoscaled fleet replayed, in: its file and a load; out: a run and what it says."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np

from gpuplan.calibration.startup import start_constants
from gpuplan.demand.statistics import summary
from gpuplan.domain.columns import Ints
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.startup import StartConditions
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.engine import KvTransfer
from gpuplan.domain.simulation.fleet import (
    REFUSED,
    TIMED_OUT,
    UNSERVABLE,
    ColdStart,
    ElasticFleet,
    FleetOutcome,
    Pool,
)
from gpuplan.domain.simulation.fleet_file import FleetRequest, FleetSimulation, PoolRequest
from gpuplan.domain.simulation.outcome import (
    ClassStatistics,
    Outcome,
    ServingStatistics,
    SloTargets,
)
from gpuplan.domain.simulation.simulation import (
    EngineRequest,
    PreparedFleet,
    SimulateRequest,
    Simulation,
)
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import InputError, one
from gpuplan.inputs.fleet import read_fleet
from gpuplan.performance.memory.weights import weights_bytes
from gpuplan.performance.serving.startup import startup_phases
from gpuplan.simulation.serving.fleet.run import simulate_closed_loop, simulate_fleet
from gpuplan.simulation.serving.statistics import flow_of
from gpuplan.studies.replay.autoscaled.sizes import smallest_autoscaled, weighed
from gpuplan.studies.replay.closed_loop import ended_together
from gpuplan.studies.replay.judge import judged
from gpuplan.studies.replay.power import by_priority, by_service, fleet_power
from gpuplan.studies.replay.replicas import prepared
from gpuplan.studies.replay.routed import unknowing

Served = tuple[str | None, str]  # model and accelerator of pools that name none


def simulate_autoscaled(
    fleet: Path,
    load: LoadSource,
    request: SimulateRequest,
    *,
    served: Served,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> FleetSimulation:
    """A load replayed against the fleet of a file: pools, autoscaling, failures, clients."""
    written = read_fleet(fleet)
    _check_loop(written, load)
    ready = [
        _prepared(pool, served, load.requests, request=request, overlays=overlays, store=store)
        for pool in written.pools
    ]
    elastic, assumed = _fleet(written, ready, request.seed)
    n_accelerators = tuple(engine.setup.layout.n_accelerators for engine in ready)
    found, wall_s = _run(elastic, load, written, request)
    found = weighed(found, n_accelerators)
    lost = unknowing(written.router.rule, load.requests, "router: rule")
    notes = (*lost, *_distinct(written, ready))
    assumptions = (*load.assumptions, *written.assumptions, *assumed, *notes)
    outcome = replace(found.outcome, assumptions=assumptions)
    statistics = judged(outcome, request)
    first = replace(ready[0].fleet, n_engines=found.outcome.n_engines, router=elastic.router.rule)
    simulation = Simulation(
        setup=ready[0].setup,
        fleet=first,
        outcome=outcome,
        statistics=statistics,
        slo=request.slo or SloTargets(),
        wall_s=wall_s,
        flow=flow_of(outcome),
        power=fleet_power([engine.setup for engine in ready], found),
        classes=_classes(outcome, statistics, written, request),
        load=summary(outcome.requests),
    )
    is_away = _turns_away(found, simulation.slo)
    if (statistics.is_overloaded or is_away) and load.loop is None:
        smallest = smallest_autoscaled(
            elastic,
            lambda larger: _run(larger, load, written, request)[0],
            slo=request.slo,
            n_accelerators=n_accelerators,
            serves=is_away,
        )
        simulation = replace(simulation, holding=smallest)
    return FleetSimulation(
        simulation=simulation,
        fleet=elastic,
        found=replace(found, outcome=outcome),
        n_accelerators=n_accelerators,
    )


def _prepared(
    pool: PoolRequest,
    served: Served,
    requests: Requests,
    *,
    request: SimulateRequest,
    overlays: Sequence[Path],
    store: Path | None,
) -> PreparedFleet:
    model, on = pool.model or served[0], pool.on or served[1]
    if model is None:
        fix = "name the model there, or give --model"
        raise one(InputError, "simulate", f"pool {pool.name!r}", "serves no model", fix)
    typed = request.scheduler or EngineRequest()
    known = typed.replica.calibration if typed.replica else None
    scheduler = replace(typed, replica=replace(pool.replica, calibration=known))
    wanted = replace(request, n_replicas=1, scheduler=scheduler)
    return prepared(model, on, requests, wanted, overlays=overlays, store=store)


def _distinct(written: FleetRequest, ready: Sequence[PreparedFleet]) -> tuple[Assumption, ...]:
    """What was assumed of the engines; where pools differ, of which."""
    pools: dict[Assumption, list[str]] = {}
    for pool, engine in zip(written.pools, ready, strict=True):
        for assumption in dict.fromkeys(engine.assumptions):
            pools.setdefault(assumption, []).append(pool.name)
    return tuple(
        assumption
        if len(names) == len(ready)
        else replace(assumption, what=f"{assumption.what} of {', '.join(names)}")
        for assumption, names in pools.items()
    )


def _check_loop(written: FleetRequest, taken: LoadSource) -> None:
    if taken.loop is not None and len(written.services) > 1:
        what = "with several services: nobody says what each user asks for"
        fix = "use --rate or --trace, or a fleet with one service"
        raise one(InputError, "simulate", "--users", what, fix)


def _turns_away(found: FleetOutcome, slo: SloTargets) -> bool:
    """More are refused, or give up, than may be missed; a larger fleet would serve them.

    Not where requests that no replica can hold are too many already: no fleet would be enough.
    """
    n_spare = (1.0 - slo.kept_frac) * len(found.end)
    n_away = found.n_ended(REFUSED) + found.n_ended(TIMED_OUT)
    return n_away > n_spare >= found.n_ended(UNSERVABLE)


def _classes(
    outcome: Outcome, found: ServingStatistics, written: FleetRequest, request: SimulateRequest
) -> tuple[ClassStatistics, ...]:
    """By service, then by priority where engines look at it."""
    slo, names = request.slo or SloTargets(), [service.name for service in written.services]
    service = _services(written, outcome.n_requests, request.seed)
    is_urgent = request.scheduler is not None and request.scheduler.scheduling == "priority"
    urgent = by_priority(outcome, found, slo) if is_urgent else ()
    return (*by_service(outcome, found, slo, service=service, names=names), *urgent)


def _fleet(
    written: FleetRequest, ready: Sequence[PreparedFleet], seed: int
) -> tuple[ElasticFleet, list[Assumption]]:
    pools, assumed = [], []
    for pool, engine in zip(written.pools, ready, strict=True):
        start = pool.start
        if start is None:
            start = _predicted_start(engine.setup)
            value = f"{start.total_s:.0f} s for {pool.name}"
            why = "predicted; node and image are there, nothing is compiled yet"
            found = Assumption(what="cold start", value=value, why=why, change="pools: start")
            assumed.append(found)
        pools.append(
            Pool(
                name=pool.name,
                limits=engine.fleet.limits,
                table=engine.fleet.table,
                size=pool.size,
                start=start,
                admission=pool.admission,
                scaler=pool.scaler,
                failures=pool.failures,
                spot=pool.spot,
                restarts=pool.restarts,
                drain_s=pool.drain_s,
            )
        )
    fleet = ElasticFleet(
        pools=tuple(pools),
        services=written.services,
        router=written.router,
        clients=written.clients,
        kv_transfer=_kv_transfer(written, ready),
        seed=seed,
        first_hour=written.first_hour,
    )
    return fleet, assumed


def _predicted_start(setup: ServingSetup) -> ColdStart:
    layout = setup.layout
    phases = startup_phases(
        StartConditions(
            weight_bytes=weights_bytes(setup.model, setup.storage, layout) * layout.n_accelerators,
            n_layers=setup.model.main.n_layers,
            tp=layout.tp,
        ),
        start_constants(),
    )
    return ColdStart(
        image_s=phases.image_pull_s + phases.download_s,
        load_s=phases.bootstrap_s + phases.load_s,
        compile_s=phases.compile_s + phases.capture_s,
        warmup_s=phases.profile_s,
    )


def _kv_transfer(written: FleetRequest, ready: Sequence[PreparedFleet]) -> KvTransfer | None:
    """KV-cache bytes of the widest token that is transferred: one link serves all services."""
    if written.link is None:
        return None
    senders = {
        s.pool for service in written.services if service.decode_pools for s in service.pools
    }
    setups = [e.setup for p, e in zip(written.pools, ready, strict=True) if p.name in senders]
    widths = [s.model.kv_bytes_per_token(s.storage.cache) for s in setups]
    if not widths:
        what, fix = "no service has decode_pools", "leave it out, or name who writes the answers"
        raise one(InputError, "fleet", "kv_transfer", what, fix)
    return KvTransfer(
        cache_bytes_per_token=max(widths),
        link_bytes_per_s=written.link.link_bytes_per_s,
        latency_s=written.link.latency_s,
    )


def _services(written: FleetRequest, n: int, seed: int) -> Ints:
    """Which service each request asks for, drawn by the services' shares."""
    if not written.services:
        return np.zeros(n, dtype=np.int64)
    draws = np.random.default_rng(np.random.SeedSequence(seed).spawn(3)[2])
    return draws.choice(len(written.services), size=n, p=written.shares_frac).astype(np.int64)


def _run(
    fleet: ElasticFleet, taken: LoadSource, written: FleetRequest, request: SimulateRequest
) -> tuple[FleetOutcome, float]:
    if taken.loop is not None:
        loop = ended_together(
            taken.loop, taken.n_loop, lambda more: simulate_closed_loop(more, fleet).outcome
        )
        start_s = perf_counter()
        found = simulate_closed_loop(loop, fleet, bin_s=request.bin_s)
        return found, perf_counter() - start_s
    requests = taken.requests
    service = _services(written, len(requests), request.seed)
    # Compilation, or its load from disk, is no part of the run.
    simulate_fleet(requests.take([0]), fleet, service=service[:1])
    start_s = perf_counter()
    found = simulate_fleet(
        requests, fleet, service=service, blocks=taken.blocks, bin_s=request.bin_s
    )
    return found, perf_counter() - start_s
