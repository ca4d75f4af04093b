"""A fleet and its requests as the arrays that kernels read and write."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.fleet import ElasticFleet
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.simulation.serving.arrays import engine_state
from gpuplan.simulation.serving.features import (
    has_features,
    in_lines,
    with_features,
    with_stages,
)
from gpuplan.simulation.serving.fleet.pools import (
    LONGEST,
    most_ticks,
    pool_reals,
    pool_rows,
    pool_weights,
    ticks,
)
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngines
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.sglang import is_sglang, with_sglang

N_DRAWS = 1 << 16
LAST_S = 50 * 86400.0
ROUTERS = {
    "round_robin": el.ROUND_ROBIN,
    "least_outstanding": el.LEAST_OUTSTANDING,
    "power_of_two": el.POWER_OF_TWO,
    "prefix_affinity": el.AFFINITY,
    "session": el.AFFINITY,
}
POOL_RULES = {"load": el.BY_LOAD, "share": el.BY_SHARE, "order": el.BY_ORDER}
DRAWN_RANGE = 1 << 31
FIRST_LOG = 1024
PIECE = 2048  # rows that a core keeps close


class Jobs(NamedTuple):
    """Requests as a fleet takes them: those that can be served, and what binds them."""

    requests: Requests
    service: Ints
    accepted: Ints  # rows, in order of arrival
    next_turn: Ints  # row that is asked after this one's response; -1: none
    think_s: Floats
    blocks: PrefixBlocks | None


class Keys(NamedTuple):
    """What binds requests to replicas: keys of request i are `key[first[i]:first[i + 1]]`."""

    first: Ints
    key: Ints
    n_keys: int


def is_closed(jobs: Jobs) -> bool:
    """A request comes when another has its response, or after a pause of its own."""
    return bool(np.any(jobs.next_turn >= 0) or np.any(jobs.think_s > 0))


def engines_of(jobs: Jobs, fleet: ElasticFleet, *, bin_s: float, method: str) -> AnyEngines:
    """The engines of all pools, with room for the largest of each; plain where all of them are."""
    each = [
        engine_state(
            jobs.requests,
            Fleet(limits=pool.limits, table=pool.table, n_engines=max(1, pool.size.n_slots)),
            bin_s,
        )
        for pool in fleet.pools
    ]
    merged = {name: _stacked([getattr(one, name) for one in each]) for name in st.Engines._fields}
    n_of_pool = [pool.size.n_slots for pool in fleet.pools]
    merged["request"] = each[0].request
    merged["pool"] = np.repeat(np.arange(len(each)), n_of_pool).astype(np.int64)
    used = np.concatenate([np.arange(max(1, n)) < n for n in n_of_pool])
    for name in ("scalar", "ring", "word", "bins", "flight_s", "home"):
        merged[name] = merged[name] if used.all() else np.ascontiguousarray(merged[name][used])
    slot = merged["slot"][used]
    merged["slot"] = in_lines(*slot.shape)
    merged["slot"][:] = slot
    engines = st.Engines(**merged)
    engines.limit[:, st.IS_JUMPING] = method == "jump"
    engines.limit[:, st.LAST_INSTANT] = st.FOREVER
    limits = [pool.limits for pool in fleet.pools]
    if is_sglang(limits[0]):
        return with_sglang(engines, jobs.requests, limits, blocks=jobs.blocks)
    if any(has_features(one, jobs.requests) for one in limits):
        found = with_features(engines, jobs.requests, limits, blocks=jobs.blocks, seed=fleet.seed)
        n_stages = limits[0].admission.n_stages
        return with_stages(found, n_stages) if n_stages > 1 else found
    return engines


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    """Rows of all parts below one another, shorter ones filled with zeros."""
    if len(parts) == 1:
        return parts[0]
    shape = np.max([part.shape[1:] for part in parts], axis=0).astype(int)
    padded = [
        np.pad(part, [(0, 0), *((0, n - m) for n, m in zip(shape, part.shape[1:], strict=True))])
        for part in parts
    ]
    return np.ascontiguousarray(np.concatenate(padded))


@lru_cache(maxsize=4)
def _draws(seed: int) -> Floats:
    """Times between failures, spot reclaims and repairs, in units of their mean; never written."""
    first, _ = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(first).standard_exponential((3, N_DRAWS))


def elastic_of(jobs: Jobs, fleet: ElasticFleet) -> el.Elastic:
    """The fleet as it is when the first request comes."""
    leaves_bits = _bits(max(pool.size.n_slots for pool in fleet.pools))
    n_leaves = 1 << (leaves_bits + _bits(len(fleet.pools)))
    keys = _keys(jobs, fleet.router.rule)
    job, scalar = _job(jobs, fleet), _scalar(fleet, leaves_bits)
    delayed = _delayed(jobs, job, scalar, _most_entries(fleet))
    f = el.Elastic(
        scalar=scalar,
        replica=_replica(fleet, leaves_bits),
        pool=pool_rows(fleet),
        real=pool_reals(fleet),
        job=job,
        serves=pool_weights(fleet),
        due=_tree(n_leaves),
        event=_tree(n_leaves),
        watched=_tree(n_leaves),
        load=_tree(n_leaves),
        ready=np.zeros(sum(pool.size.n_slots for pool in fleet.pools), dtype=np.int64),
        delayed=delayed,
        fresh=jobs.accepted[job[jobs.accepted, el.ORIGIN] >= 0].copy(),
        key_first=keys.first,
        key=keys.key,
        owner=np.full(max(1, keys.n_keys), st.NONE),
        pair=_pairs(jobs, fleet, scalar),
        draw=_draws(fleet.seed),
        outage=_outages(fleet),
        floor=_floor(fleet),
        recent=np.zeros((len(fleet.pools), most_ticks(fleet)), dtype=np.int64),
        log=np.zeros((FIRST_LOG + 8 * n_leaves, el.N_LOG_COLUMNS), dtype=np.int64),
    )
    _begin(f)
    return f


def _bits(n: int) -> int:
    return max(0, n - 1).bit_length()


def _tree(n_leaves: int) -> Ints:
    return np.full(2 * n_leaves, el.NEVER, dtype=np.int64)


def _scalar(fleet: ElasticFleet, leaves_bits: int) -> Ints:
    values, clients = np.zeros(el.N_FLEET, dtype=np.int64), fleet.clients
    values[[el.LATE_HEAD, el.LATE_TAIL, el.REPORT_HEAD]] = st.NONE
    values[el.LAST] = ticks(LAST_S)
    values[el.ROUTER] = ROUTERS[fleet.router.rule]
    values[el.POOL_RULE] = POOL_RULES[fleet.router.pool_rule]
    values[el.TIMEOUT] = ticks(clients.timeout_s)
    values[el.IS_FIRST_TOKEN] = clients.is_first_token
    values[el.MAX_RETRIES] = clients.max_retries
    # Doubled twenty times at most, it must stay a number.
    values[el.BACKOFF] = min(ticks(clients.backoff_s), LONGEST >> 20)
    values[el.MAX_BACKOFF] = ticks(clients.max_backoff_s)
    values[el.MAX_RESENDS] = fleet.router.max_resends
    values[el.LEAVES_BITS] = leaves_bits
    values[el.POOL_ROOT] = 1 << _bits(len(fleet.pools))
    values[el.FIRST_INSTANT] = ticks(fleet.first_hour * 3600.0)
    return values


def _replica(fleet: ElasticFleet, leaves_bits: int) -> Ints:
    n = sum(pool.size.n_slots for pool in fleet.pools)
    values = np.zeros((n, el.N_REPLICA), dtype=np.int64)
    values[:, [el.SENT_HEAD, el.SENT_TAIL]] = st.NONE
    values[:, [el.READY_AT, el.FAIL_AT, el.NOTICE_AT, el.KILL_AT, el.REPAIR_AT]] = el.NEVER
    first = 0
    for p, pool in enumerate(fleet.pools):
        rows = slice(first, first + pool.size.n_slots)
        values[rows, el.POOL] = p
        values[rows, el.LEAF] = (p << leaves_bits) + np.arange(pool.size.n_slots)
        ready = slice(first, first + pool.size.n_first)
        values[ready, el.STATUS], values[ready, el.IS_PAID] = el.READY, 1
        first += pool.size.n_slots
    return values


def _job(jobs: Jobs, fleet: ElasticFleet) -> Ints:
    requests, n = jobs.requests, len(jobs.requests)
    blank = np.zeros(el.N_JOB, dtype=np.int64)
    blank[[el.ON, el.NEXT_SENT, el.LATE_BEFORE, el.LATE_AFTER, el.NEXT_HELD]] = st.NONE
    blank[[el.DUE, el.ENDED_AT]] = st.NONE
    since_s = requests.arrive_s - requests.arrive_s[:1]
    columns = {
        el.ORIGIN: np.rint(since_s * st.TICKS_PER_S).astype(np.int64),
        el.SERVICE: jobs.service,
        el.LENGTH: requests.output_tokens,
        el.NEED: np.maximum(requests.input_tokens + requests.output_tokens - 1, 0),
        el.NEXT_TURN: jobs.next_turn,
        el.THINK: np.rint(jobs.think_s * st.TICKS_PER_S).astype(np.int64),
    }
    values = np.empty((n, el.N_JOB), dtype=np.int64)
    for rows in pieces(n):
        part = values[rows]
        part[:] = blank
        for name, column in columns.items():
            part[:, name] = column[rows]
    return values


def pieces(n: int) -> Iterator[slice]:
    """All rows, so many at a time: a wide table is then walked once, whatever its columns."""
    return (slice(at, min(at + PIECE, n)) for at in range(0, n, PIECE))


def _most_entries(fleet: ElasticFleet) -> int:
    """Entries of one job in the heap: one at every try that is abandoned during a KV transfer."""
    return 4 if fleet.kv_transfer is None else max(4, fleet.clients.max_retries + 3)


def _delayed(jobs: Jobs, job: Ints, scalar: Ints, most_entries: int) -> Ints:
    """A heap of those who come; at first, those whom nobody has to wait for."""
    is_turn = jobs.next_turn >= 0
    heap = np.zeros((most_entries * len(jobs.requests) + 16, 2), dtype=np.int64)
    if not is_closed(jobs):
        return heap
    scalar[el.IS_FOLLOWING] = 1
    is_later = np.zeros(len(job), dtype=bool)
    is_later[jobs.next_turn[is_turn]] = True
    first = jobs.accepted[~is_later[jobs.accepted]]
    first = first[np.lexsort((first, job[first, el.THINK]))]
    heap[: len(first), 0], heap[: len(first), 1] = job[first, el.THINK], first
    job[:, el.ORIGIN] = st.NONE
    job[first, el.STATE], job[first, el.DUE] = el.DELAYED, job[first, el.THINK]
    scalar[el.N_DELAYED] = len(first)
    return heap


def _keys(jobs: Jobs, rule: str) -> Keys:
    n = len(jobs.requests)
    if rule == "prefix_affinity" and jobs.blocks is not None:
        first = np.ascontiguousarray(jobs.blocks.first, dtype=np.int64).copy()
        key = np.ascontiguousarray(jobs.blocks.block, dtype=np.int64).copy()
        return Keys(first, key, jobs.blocks.n_distinct)
    column = jobs.requests.session if rule == "session" else jobs.requests.prefix_group
    if rule not in ("session", "prefix_affinity"):
        column = np.full(n, st.NONE)
    has_key = column >= 0
    first = np.concatenate([[0], np.cumsum(has_key)]).astype(np.int64)
    key = column[has_key]
    if key.max(initial=0) > 4 * n:
        _, key = np.unique(key, return_inverse=True)
    key = np.ascontiguousarray(key, dtype=np.int64)
    return Keys(first, key, int(key.max(initial=-1)) + 1)


def _pairs(jobs: Jobs, fleet: ElasticFleet, scalar: Ints) -> Ints:
    """Drawn pairs of replicas: of all, where all are always there; else of a wide range."""
    n = max(1, len(jobs.requests))
    scalar[el.PAIR_RANGE] = DRAWN_RANGE
    if is_still(fleet):
        scalar[el.PAIR_RANGE] = fleet.pools[0].size.n_slots
    values = np.zeros((n, 2), dtype=np.int64)
    if fleet.router.rule == "power_of_two":
        draws = np.random.default_rng(fleet.seed)
        size = (len(jobs.accepted), 2)
        values[jobs.accepted] = draws.integers(0, int(scalar[el.PAIR_RANGE]), size=size)
    return values


def is_still(fleet: ElasticFleet) -> bool:
    """One pool whose replicas are always there."""
    pool = fleet.pools[0]
    moves = (pool.scaler, pool.failures, pool.spot, pool.restarts)
    return len(fleet.pools) == 1 and all(move is None for move in moves)


def _outages(fleet: ElasticFleet) -> Ints:
    rows, first = [], 0
    for pool in fleet.pools:
        given = pool.failures.outages if pool.failures is not None else ()
        rows += [(ticks(o.at_s), first + o.replica, ticks(o.lasts_s)) for o in given]
        first += pool.size.n_slots
    return np.array(sorted(rows), dtype=np.int64).reshape(len(rows), 3)


def _floor(fleet: ElasticFleet) -> Ints:
    values = np.zeros((len(fleet.pools), el.N_HOURS), dtype=np.int64)
    for row, pool in zip(values, fleet.pools, strict=True):
        for floor in pool.scaler.floors if pool.scaler is not None else ():
            n_hours = (floor.to_hour - floor.from_hour) % 24 or 24
            for day in floor.days:
                hours = (24 * day + floor.from_hour + np.arange(n_hours)) % el.N_HOURS
                row[hours] = np.maximum(row[hours], floor.n_least)
    return values


def _begin(f: el.Elastic) -> None:
    """Replicas that are there from the first: their clocks, and what the router sees of them."""
    half = f.due.shape[0] >> 1
    for r, row in enumerate(f.replica):
        pool = f.pool[row[el.POOL]]
        if row[el.STATUS] != el.READY:
            continue
        for mean, clock, which in (
            (el.MTBF, el.FAIL_AT, el.FAIL_DRAWS),
            (el.MTBN, el.NOTICE_AT, el.NOTICE_DRAWS),
        ):
            if pool[mean] != el.NEVER:
                drawn = f.draw[which, (r * 7919) % N_DRAWS] * float(pool[mean])
                row[clock] = int(min(drawn, float(LONGEST))) + 1
                row[el.DREW_FAIL + which] = 1
        f.load[half + row[el.LEAF]] = row[el.LEAF]
        f.due[half + row[el.LEAF]] = min(row[el.FAIL_AT], row[el.NOTICE_AT])
        first = int(pool[el.FIRST_REPLICA])
        f.ready[r] = first + (r - first)
    for tree in (f.due, f.load):
        for node in range(half - 1, 0, -1):
            tree[node] = min(tree[2 * node], tree[2 * node + 1])
    n_pools = len(f.pool)
    f.log[:n_pools, el.LOG_POOL] = np.arange(n_pools)
    f.log[:n_pools, el.LOG_COUNTS :] = f.pool[:, el.COUNTS : el.COUNTS + 5]
    f.scalar[el.N_LOG] = n_pools
