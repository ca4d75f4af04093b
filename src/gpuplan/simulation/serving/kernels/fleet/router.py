"""Where a job goes: a pool that serves it, a replica of that pool, the queue before it, or away."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import append_waiting
from gpuplan.simulation.serving.kernels.engine.state import Engines
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.clients import drop_late, gave_up, retry, unhold
from gpuplan.simulation.serving.kernels.fleet.state import (
    Elastic,
    leaf_replica,
    look_at,
    next_report,
    show_load,
)
from gpuplan.simulation.serving.kernels.jit.compiled import near, part, rare


@part
def _pool_load(f: Elastic, p: int, weight: float) -> float:
    """What stands before a pool, for its size; less is better."""
    n_ready = max(1, f.pool[p, el.COUNTS + el.READY])
    return float((f.pool[p, el.POOL_OUT] + f.pool[p, el.HELD]) / (weight * n_ready))


@part
def _least(f: Elastic, p: int) -> int:
    """Load and leaf of the replica of a pool that has the fewest outstanding."""
    return int(f.load[f.scalar[el.POOL_ROOT] + p])


@part
def _pool_rank(f: Elastic, p: int, weight: float) -> tuple[bool, float]:
    """How far back the pool stands: those with nothing ready come last, the others by the rule."""
    is_empty = bool(f.pool[p, el.COUNTS + el.READY] == 0)
    rank = _pool_load(f, p, weight)
    if f.scalar[el.POOL_RULE] == el.BY_SHARE:
        rank = float(f.pool[p, el.SENT]) / weight
    elif f.scalar[el.POOL_RULE] == el.BY_ORDER:
        has_room = not is_empty and (_least(f, p) >> el.LEAF_BITS) < f.real[p, el.SPILL_AT]
        rank = -1.0 if has_room else rank
    return is_empty, rank


@part
def choose_pool(f: Elastic, i: int) -> int:
    """The pool of least rank that serves the job; the first of equals."""
    n_pools = f.pool.shape[0]
    if n_pools == 1:
        return 0
    best, is_last, least = st.NONE, True, 0.0
    for p in range(n_pools):
        weight = f.serves[f.job[i, el.STAGE], f.job[i, el.SERVICE], p]
        if weight > 0.0 and f.job[i, el.NEED] <= f.pool[p, el.CAPACITY]:
            is_empty, rank = _pool_rank(f, p, weight)
            is_better = rank < least if is_empty == is_last else is_last
            if best < 0 or is_better:
                best, is_last, least = p, is_empty, rank
    return best


@part
def _of_pair(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """The better of a drawn pair of replicas; a job sent again draws another pair."""
    first, n = f.pool[p, el.FIRST_REPLICA], f.pool[p, el.COUNTS + el.READY]
    row = f.pair[(i + 7919 * f.job[i, el.N_TRIES]) % f.pair.shape[0]]
    a = f.ready[first + (row[0] * n) // f.scalar[el.PAIR_RANGE]]
    b = f.ready[first + (row[1] * n) // f.scalar[el.PAIR_RANGE]]
    if engines.scalar[a, st.OUTSTANDING] == engines.scalar[b, st.OUTSTANDING]:
        return int(min(a, b))
    return int(a if engines.scalar[a, st.OUTSTANDING] < engines.scalar[b, st.OUTSTANDING] else b)


@part
def _keeper(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """The replica that last saw the job's longest known beginning, unless it has far more to do."""
    least = _least(f, p) >> el.LEAF_BITS
    for at in range(f.key_first[i + 1] - 1, f.key_first[i] - 1, -1):
        r = f.owner[f.key[at]]
        if r >= 0 and f.replica[r, el.STATUS] == el.READY and f.replica[r, el.POOL] == p:
            more = engines.scalar[r, st.OUTSTANDING] - least
            is_far = more > f.real[p, el.GUARD_RATIO] * least
            if more > f.real[p, el.GUARD_MORE] and is_far:
                return st.NONE
            return int(r)
    return st.NONE


@part
def _choose(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """A replica by the router's rule; NONE where it has no opinion."""
    rule = f.scalar[el.ROUTER]
    if rule == el.ROUND_ROBIN:
        first, n = f.pool[p, el.FIRST_REPLICA], f.pool[p, el.COUNTS + el.READY]
        f.pool[p, el.TURN] += 1
        return int(f.ready[first + (f.pool[p, el.TURN] - 1) % n])
    if rule == el.POWER_OF_TWO:
        return _of_pair(engines, f, p, i)
    return _keeper(engines, f, p, i) if rule == el.AFFINITY else st.NONE


@part
def choose_replica(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """A replica that is ready and has room; NONE where none is."""
    least = _least(f, p)
    most = f.pool[p, el.MAX_OUT]
    if least == el.NEVER or (least >> el.LEAF_BITS) >= most:
        return st.NONE
    r = _choose(engines, f, p, i)
    if r < 0 or engines.scalar[r, st.OUTSTANDING] >= most:
        r = leaf_replica(f, least & el.LEAF_MASK)
    return r


@part
def send(engines: Engines, f: Elastic, i: int, r: int) -> None:
    """The job waits in the replica's engine from now on."""
    row, p, now = f.job[i], f.replica[r, el.POOL], f.scalar[el.NOW]
    engines.request[i, st.ARRIVE] = now
    append_waiting(engines.scalar[r], engines.request, i)
    row[el.ON], row[el.STATE], row[el.NEXT_SENT] = r, el.SERVED, st.NONE
    tail = f.replica[r, el.SENT_TAIL]
    if tail >= 0:
        f.job[tail, el.NEXT_SENT] = i
    else:
        f.replica[r, el.SENT_HEAD] = i
    f.replica[r, el.SENT_TAIL] = i
    f.pool[p, el.POOL_OUT] += 1
    f.pool[p, el.SENT] += 1
    show_load(engines, f, r)
    # It may begin a step now, which is seen only by looking later than now.
    if not engines.scalar[r, st.IN_FLIGHT]:
        look_at(f, r, min(next_report(f, r), now + 1))
    if f.scalar[el.ROUTER] == el.AFFINITY:
        for at in range(f.key_first[i], f.key_first[i + 1]):
            f.owner[f.key[at]] = r


@part
def _hold(f: Elastic, i: int, p: int) -> None:
    """The job is the last that waits before the pool."""
    f.job[i, el.STATE], f.job[i, el.NEXT_HELD], f.job[i, el.ON] = el.WAITING, st.NONE, p
    if f.pool[p, el.HELD_TAIL] >= 0:
        f.job[f.pool[p, el.HELD_TAIL], el.NEXT_HELD] = i
    else:
        f.pool[p, el.HELD_HEAD] = i
    f.pool[p, el.HELD_TAIL] = i
    f.pool[p, el.HELD] += 1
    f.scalar[el.N_HELD] += 1


@part
def refuse(f: Elastic, i: int) -> None:
    """There is no room for the job, not even to wait."""
    f.scalar[el.N_REFUSALS] += 1
    drop_late(f, i)
    if not retry(f, i, f.scalar[el.NOW]):
        gave_up(f, i, el.REFUSED)


@part
def route(engines: Engines, f: Elastic, i: int) -> None:
    """The job goes to a replica, or waits before a pool, or is refused."""
    p = choose_pool(f, i)
    r = choose_replica(engines, f, p, i) if f.pool[p, el.HELD] == 0 else st.NONE
    if r >= 0:
        send(engines, f, i, r)
    elif f.pool[p, el.HELD] < f.pool[p, el.MAX_HELD] or f.job[i, el.STAGE] == 1:
        _hold(f, i, p)
    else:
        refuse(f, i)


@rare
def send_queued(engines: Engines, f: Elastic, p: int) -> None:
    """What waits before the pool goes to its replicas in order while they have room."""
    engines, f = near(engines), near(f)
    while f.pool[p, el.HELD] > 0:
        i = f.pool[p, el.HELD_HEAD]
        r = choose_replica(engines, f, p, i)
        if r < 0:
            return
        unhold(f, i)
        send(engines, f, i, r)
