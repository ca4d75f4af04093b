"""A plan simulated, in: its file; out: a run of its fleet at the peak, as `simulate` would say.

Nothing is typed again: pool, layout, precision, engine, load and SLOs are what the plan names.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.demand.statistics import peak_hour
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.domain.plan.answer import Answer, PlannedPool
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.requests import ReplicaSpan
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.domain.simulation.simulation import (
    EngineRequest,
    ReplicaRequest,
    SimulateRequest,
    Simulation,
)
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.errors import InputError, one
from gpuplan.inputs.plan_file import read_plan
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.replay.joined import joined
from gpuplan.studies.replay.replicas import prepared, simulate_load
from gpuplan.studies.replay.scenario import described_load, served_workload, with_described
from gpuplan.units import HOUR

SEED_STEP = 1_000_003
SAME_FRAC = 1e-3  # of the load: shares of pools add up to all of it
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
    pools = _pools(answer, served, path.name)
    model = served.model.name if served.model else None
    if model is None:
        fix = "simulate plans of language models"
        raise one(InputError, path.name, served.name, "names no model to simulate", fix)
    if len(pools) > 1 and duration_s is None:  # all of them as long as the whole would be
        duration_s = _usual_s(_rate(served))
    found = []
    for place, pool in enumerate(pools):
        own_seed = seed + place * SEED_STEP  # pools behind one router have their own streams
        n = _n_run(pool, served, n_pools=len(pools))
        share = pool.use.load_frac * n / _n_serving(pool)
        taken = _peak(scenario, served, path, share=share, duration_s=duration_s, seed=own_seed)
        taken = replace(taken, assumptions=(*taken.assumptions, *_stated(pool, n)))
        requested, on = _requested(pool, served, taken, n, seed), _accelerators(pool)
        ready = prepared(model, on, taken.requests, requested, overlays=overlays, store=store)
        found.append(simulate_load(ready, taken, requested))
    return found[0] if len(found) == 1 else joined(found, requested)


def _n_serving(pool: PlannedPool) -> int:
    return max(1, pool.n_replicas - pool.n_spare_replicas)


def _n_run(pool: PlannedPool, served: Workload, *, n_pools: int) -> int:
    """Replicas that are run: all, or as many as speak for a large pool that stands alone."""
    n = _n_serving(pool)
    return n if _is_closed(served) or n_pools > 1 else min(n, POOL)


def _requested(
    pool: PlannedPool, served: Workload, taken: LoadSource, n: int, seed: int
) -> SimulateRequest:
    assert isinstance(served.work, Serving)
    adapters = served.work.request.adapters
    return with_described(_request(pool, n, seed, adapters), taken)


def _accelerators(pool: PlannedPool) -> str:
    """What one engine stands on, as the simulator is asked for it."""
    n_each = pool.layout.spread.engine.n_accelerators
    return f"{n_each}x{pool.accelerator}" if n_each > 1 else pool.accelerator


def _pools(answer: Answer, served: Workload, file: str) -> list[PlannedPool]:
    """The pools of a service that have a part of its load today, behind one router."""
    pools = merged(() if answer.plan is None else answer.plan.pools)
    found = [pool for pool in pools if pool.workload == served.name and pool.use.load_frac > 0]
    is_whole = abs(sum(pool.use.load_frac for pool in found) - 1.0) < SAME_FRAC
    is_one_role = all(pool.layout.role == "" for pool in found)
    if not is_whole or not is_one_role or not isinstance(served.work, Serving):
        what = f"{len(found)} pools serve it, and not what each of them carries"
        what = what if isinstance(served.work, Serving) else "is a batch"
        fix = "simulate a service of a plan that was made by this version"
        raise one(InputError, file, f"workload {served.name!r}", what, fix)
    if not all(pool.engine for pool in found):
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
    arrivals, rate = served.work.arrivals, _rate(served) * share
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
    return described_load(
        replace(scenario, workloads=tuple(places.values())),
        served.name,
        path=path,
        duration_s=duration_s or _usual_s(rate),
        seed=seed,
    )


def _rate(served: Workload) -> float:
    """Requests per second at the peak; 0 where a trace or waiting clients say when they come."""
    assert isinstance(served.work, Serving)
    return served.work.arrivals.peak_requests_per_s or 0.0


def _usual_s(rate: float) -> float:
    """An hour, longer where few requests come and shorter where very many do."""
    return min(max(HOUR, LEAST_REQUESTS / rate), max(60.0, MOST_REQUESTS / rate))


def _busiest_hour(taken: LoadSource) -> LoadSource:
    start, _ = peak_hour(taken.requests.arrive_s)
    at = taken.requests.arrive_s
    rows = np.flatnonzero((at >= start) & (at < start + HOUR))
    return replace(taken, requests=taken.requests.take(rows), blocks=None)


def _request(
    pool: PlannedPool, n_replicas: int, seed: int, adapters: LoraUse | None
) -> SimulateRequest:
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
        adapters=adapters and replace(adapters, n_slots=pool.steps.max_loras or None),
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


def _stated(pool: PlannedPool, n: int) -> list[Assumption]:
    what = f"{n} of {pool.n_replicas} planned, {pool.n_spare_replicas} of them spare"
    if pool.use.load_frac < 1:
        what = f"{what}, on {pool.accelerator} with {pool.use.load_frac:.1%} of the load"
    is_all = n == _n_serving(pool)
    why = "spares stand by" if is_all else f"pools of {POOL}, each behind its own router"
    return [Assumption(what="replicas", value=what, why=why, change="")]
