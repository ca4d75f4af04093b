"""Requests and an autoscaled fleet in, an outcome out."""

from dataclasses import replace
from functools import partial

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.fleet import (
    ElasticFleet,
    FleetOutcome,
    Pool,
    PoolShare,
    PoolSize,
    Router,
    Service,
)
from gpuplan.domain.traffic.stream import ClosedLoop, PrefixBlocks, Requests
from gpuplan.errors import InputError, one
from gpuplan.simulation.serving.arrays import loop_requests, loop_turns
from gpuplan.simulation.serving.fleet.arrays import Jobs, elastic_of, engines_of
from gpuplan.simulation.serving.fleet.check import check_arrivals, check_fleet
from gpuplan.simulation.serving.fleet.control import run_to_end
from gpuplan.simulation.serving.fleet.outcome import Run, outcome_of
from gpuplan.simulation.serving.fleet.pools import room_of
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.text import (
    is_idle_cache,
    shares_text,
    with_lookups,
    without_cache,
)

BIN_S = 60.0


def simulate_fleet(
    requests: Requests,
    fleet: ElasticFleet,
    *,
    service: Ints | None = None,
    blocks: PrefixBlocks | None = None,
    bin_s: float = BIN_S,
    method: str = "jump",
) -> FleetOutcome:
    """Every request's times and end, and what became of the replicas; same input, same bytes.

    `service` says what each request asks for; `blocks` what its prompt holds, for engines that
    keep prefixes and a router that sends equal beginnings to the same replica. The
    method changes the speed, nothing else.
    """
    requested = np.zeros(len(requests), dtype=np.int64) if service is None else service
    check_arrivals(requests.arrive_s)
    check_fleet(fleet, requested)
    none = np.full(len(requests), st.NONE)
    accepted, reasons = _servable(requests, fleet, requested)
    jobs = Jobs(requests, requested, accepted, none, np.zeros(len(requests)), blocks)
    return _run_textless(jobs, fleet, reasons, bin_s=bin_s, method=method)


def simulate_closed_loop(
    loop: ClosedLoop,
    fleet: ElasticFleet,
    *,
    bin_s: float = BIN_S,
    method: str = "jump",
) -> FleetOutcome:
    """Users who wait for each response and think before they ask again; a user is a session.

    Where prompts hold the conversation so far, engines with a prefix cache find it again.

    Requests of the outcome are in order of arrival, which the fleet itself decides.
    """
    if not np.all(np.isfinite(loop.think_s)) or np.any(loop.think_s < 0):
        raise one(InputError, "fleet", "think_s", "is not a time", "use 0 s or more")
    requests = loop_requests(loop)
    service = np.zeros(len(requests), dtype=np.int64)
    check_fleet(fleet, service)
    accepted, reasons = _servable(requests, fleet, service)
    jobs = Jobs(requests, service, accepted, loop_turns(loop, accepted), loop.think_s, None)
    return _run_textless(jobs, fleet, reasons, bin_s=bin_s, method=method, is_closed=True)


def resting(fleet: Fleet) -> ElasticFleet:
    """The same engines as an autoscaled fleet of which nothing ever changes."""
    size, decode = PoolSize(n_first=fleet.n_engines), fleet.decode
    pool = Pool(
        name="prefill" if decode else "fleet", limits=fleet.limits, table=fleet.table, size=size
    )
    router = Router(rule=fleet.router)
    if decode is None:
        return ElasticFleet(pools=(pool,), router=router, seed=fleet.seed)
    size = PoolSize(n_first=decode.n_engines)
    second = Pool(name="decode", limits=fleet.limits, table=decode.table, size=size)
    shares = [(PoolShare(pool=each.name),) for each in (pool, second)]
    return ElasticFleet(
        pools=(pool, second),
        services=(Service(name="service", pools=shares[0], decode_pools=shares[1]),),
        router=router,
        kv_transfer=decode.transfer,
        seed=fleet.seed,
    )


def _servable(
    requests: Requests, fleet: ElasticFleet, service: Ints
) -> tuple[Ints, tuple[tuple[str, int], ...]]:
    """Rows that some pool of their service can hold, and why the others end at once."""
    is_empty = (requests.input_tokens < 1) | (requests.output_tokens < 1)
    room = np.zeros(max(1, len(fleet.services)), dtype=np.int64)
    for at in range(len(room)):
        names = {s.pool for s in fleet.services[at].pools} if fleet.services else None
        second = {s.pool for s in fleet.services[at].decode_pools} if fleet.services else set()
        rooms = [room_of(p.limits) for p in fleet.pools if names is None or p.name in names]
        room[at] = max(rooms, default=0)
        if second:
            wide = max((room_of(p.limits) for p in fleet.pools if p.name in second), default=0)
            room[at] = min(room[at], wide)
    total = requests.input_tokens + requests.output_tokens - 1
    is_large = ~is_empty & (total > room[service])
    counts = (
        ("no tokens to read or to write", int(is_empty.sum())),
        ("larger than any replica that serves it", int(is_large.sum())),
    )
    accepted = np.flatnonzero(~is_empty & ~is_large).astype(np.int64)
    return accepted, tuple((why, n) for why, n in counts if n)


def _run_textless(
    jobs: Jobs,
    fleet: ElasticFleet,
    reasons: tuple[tuple[str, int], ...],
    *,
    bin_s: float,
    method: str,
    is_closed: bool = False,
) -> FleetOutcome:
    """Without the prefix cache where that makes no difference."""
    run = partial(_run, bin_s=bin_s, method=method, is_closed=is_closed)
    is_idle = any(is_idle_cache(pool.limits) for pool in fleet.pools)
    if is_idle and not shares_text(jobs.requests, jobs.blocks):
        pools = tuple(replace(pool, limits=without_cache(pool.limits)) for pool in fleet.pools)
        found = run(jobs, replace(fleet, pools=pools), reasons)
        if found.outcome.totals.n_preemptions == 0:
            return replace(found, outcome=with_lookups(found.outcome))
    return run(jobs, fleet, reasons)


def _run(
    jobs: Jobs,
    fleet: ElasticFleet,
    reasons: tuple[tuple[str, int], ...],
    *,
    bin_s: float,
    method: str,
    is_closed: bool = False,
) -> FleetOutcome:
    engines = engines_of(jobs, fleet, bin_s=bin_s, method=method)
    state = elastic_of(jobs, fleet)
    if is_closed:
        state.scalar[el.IS_FOLLOWING] = 1
    if state.serves.shape[0] > 1:
        state.scalar[el.IS_FOLLOWING] = 1
        is_split = (state.serves[1].sum(axis=1) > 0)[jobs.service]
        engines.request[is_split, st.OUTPUT] = 1
    return outcome_of(Run(jobs, fleet, engines, run_to_end(engines, state), reasons))
