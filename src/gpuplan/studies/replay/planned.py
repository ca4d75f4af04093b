"""A plan simulated, in: its file; out: a run of its fleet at the peak, as `simulate` would say.

Nothing is typed again: pool, layout, precision, engine, load and SLOs are what the plan names.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.demand.statistics import peak_hour
from gpuplan.domain.inference.serving import MOST_SLOTS, LoraUse
from gpuplan.domain.plan.answer import Answer, PlannedPool
from gpuplan.domain.plan.roles import only
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.requests import ReplicaSpan
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.domain.simulation.simulation import (
    EngineRequest,
    PreparedFleet,
    ReplicaRequest,
    SimulateRequest,
    Simulation,
)
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.errors import InputError, one
from gpuplan.inputs.plan_file import read_plan
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.inference.admission import SGLANG
from gpuplan.studies.replay.replicas import prepared, simulate_load
from gpuplan.studies.replay.scenario import described_load, served_workload, with_described
from gpuplan.units import HOUR

POOL = 32  # replicas behind one router, as plans size larger fleets
LEAST_REQUESTS, MOST_REQUESTS = 12_000, 200_000


def simulate_planned(
    path: Path,
    workload: str | None = None,
    *,
    duration_s: float | None = None,
    seed: int = 0,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> Simulation:
    """The planned replicas of one workload, without spares, at its peak."""
    answer = read_plan(path)
    scenario = scenario_from_dict(answer.provenance.scenario, folder=path.parent)
    served = served_workload(scenario, workload, path.name)
    pool = _pool(answer, served, path.name)
    model = served.model.name if served.model else None
    if model is None:
        fix = "simulate plans of language models"
        raise one(InputError, path.name, served.name, "names no model to simulate", fix)
    n_serving = max(1, pool.n_replicas - pool.n_spare_replicas)
    n = n_serving if _is_closed(served) else min(n_serving, POOL)
    taken = _peak(scenario, served, path, share=n / n_serving, duration_s=duration_s, seed=seed)
    assert isinstance(served.work, Serving)
    request = _with_adapters(_request(pool, n, seed), served.work.request.adapters)
    asked = with_described(request, taken)
    taken = replace(taken, assumptions=(*taken.assumptions, *_said(pool, n, n_serving)))
    accelerator, n_each = pool.accelerator, pool.layout.spread.engine.n_accelerators
    on = f"{n_each}x{accelerator}" if n_each > 1 else accelerator
    ready = prepared(model, on, taken.requests, asked, overlays=overlays, store=store)
    return simulate_load(_any_adapter(ready) if taken.loop else ready, taken, asked)


def _pool(answer: Answer, served: Workload, file: str) -> PlannedPool:
    pools = () if answer.plan is None else answer.plan.pools
    found = only(pools, served.name)
    if found is None or not isinstance(served.work, Serving):
        n = sum(pool.workload == served.name for pool in pools)
        what = f"{n} pools serve it" if isinstance(served.work, Serving) else "is a batch"
        fix = "simulate a service that one pool serves"
        raise one(InputError, file, f"workload {served.name!r}", what, fix)
    if not found.engine:
        what = "runs behind no engine whose scheduler is simulated: it was sized by its own batches"
        fix = "ask `gpuplan predict-network` for its batches, or `gpuplan verify` for the plan"
        raise one(InputError, file, f"workload {served.name!r}", what, fix)
    return found


def _is_closed(served: Workload) -> bool:
    work = served.work
    return (
        isinstance(work, Serving)
        and work.arrivals.peak_requests_per_s is None
        and (work.arrivals.n_concurrent is not None)
    )


def _peak(
    scenario: Scenario,
    served: Workload,
    path: Path,
    *,
    share: float,
    duration_s: float | None,
    seed: int,
) -> LoadSource:
    """The load of the busiest hour, or its share of one pool; long enough for percentiles."""
    assert isinstance(served.work, Serving)
    arrivals = served.work.arrivals
    rate = (arrivals.peak_requests_per_s or 0.0) * share
    if not rate:
        found = described_load(scenario, served.name, path=path, seed=seed)
        return found if arrivals.trace is None else _busiest_hour(found)
    steady = replace(
        arrivals,
        peak_requests_per_s=rate,
        mean_requests_per_s=rate,
        hourly_profile=(),
        steps=(),
    )
    alike = replace(served, work=replace(served.work, arrivals=steady))
    places = {work.name: work for work in scenario.workloads} | {served.name: alike}
    usual_s = min(max(HOUR, LEAST_REQUESTS / rate), max(60.0, MOST_REQUESTS / rate))
    return described_load(
        replace(scenario, workloads=tuple(places.values())),
        served.name,
        path=path,
        duration_s=duration_s or usual_s,
        seed=seed,
    )


def _busiest_hour(taken: LoadSource) -> LoadSource:
    start, _ = peak_hour(taken.requests.arrive_s)
    at = taken.requests.arrive_s
    rows = np.flatnonzero((at >= start) & (at < start + HOUR))
    return replace(taken, requests=taken.requests.take(rows), blocks=None)


def _request(pool: PlannedPool, n_replicas: int, seed: int) -> SimulateRequest:
    layout, (engine, _, version) = pool.layout, pool.engine.partition(" ")
    replica = ReplicaRequest(
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.dp,
        ep=layout.ep,
        span=ReplicaSpan(
            cp=layout.cp,
            network_bytes_per_s=layout.network_bytes_per_s,
            n_prefill=layout.n_prefill,
            n_decode=layout.n_decode,
        ),
        share=layout.share,
    )
    return SimulateRequest(
        n_replicas=n_replicas,
        precision=pool.precision,
        engine=engine or "vllm",
        engine_version=version or None,
        scheduler=EngineRequest(replica=replica),
        seed=seed,
        warmup_s=None,
    )


def _with_adapters(asked: SimulateRequest, adapters: LoraUse | None) -> SimulateRequest:
    """With the adapters that plans keep in memory; SGLang has no limit on them."""
    scheduler = asked.scheduler
    if adapters is None or scheduler is None or scheduler.replica is None:
        return asked
    n_slots = None if asked.engine == SGLANG else MOST_SLOTS
    replica = replace(scheduler.replica, adapters=replace(adapters, n_slots=n_slots))
    return replace(asked, scheduler=replace(scheduler, replica=replica))


def _any_adapter(ready: PreparedFleet) -> PreparedFleet:
    """Users of a closed loop name no adapters: none of them waits for a slot."""
    limits = ready.fleet.limits
    free = replace(limits, admission=replace(limits.admission, max_adapters=None))
    return replace(ready, fleet=replace(ready.fleet, limits=free))


def _said(pool: PlannedPool, n: int, n_serving: int) -> list[Assumption]:
    what = f"{n} of {pool.n_replicas} planned, {pool.n_spare_replicas} of them spare"
    why = "spares stand by" if n == n_serving else f"pools of {POOL}, each behind its own router"
    return [Assumption(what="replicas", value=what, why=why, change="")]
