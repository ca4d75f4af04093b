"""Where a job goes: a pool that serves it, a replica of that pool, the queue before it, or away."""

from gpuplan.simulation.serving.kernels.clients import drop_late, gave_up, retry, unhold
from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.elastic_state import (
    AFFINITY,
    BY_ORDER,
    BY_SHARE,
    CAPACITY,
    COUNTS,
    FIRST_REPLICA,
    GUARD_MORE,
    GUARD_RATIO,
    HELD,
    HELD_HEAD,
    HELD_TAIL,
    LEAF_BITS,
    LEAF_MASK,
    MAX_HELD,
    MAX_OUT,
    N_HELD,
    N_REFUSALS,
    N_TRIES,
    NEED,
    NEVER,
    NEXT_HELD,
    NEXT_SENT,
    NOW,
    ON,
    PAIR_RANGE,
    POOL,
    POOL_OUT,
    POOL_ROOT,
    POOL_RULE,
    POWER_OF_TWO,
    READY,
    REFUSED,
    ROUND_ROBIN,
    ROUTER,
    SENT,
    SENT_HEAD,
    SENT_TAIL,
    SERVED,
    SERVICE,
    SPILL_AT,
    STAGE,
    STATE,
    STATUS,
    TURN,
    WAITING,
    Elastic,
    leaf_replica,
    look_at,
    next_told,
    show_load,
)
from gpuplan.simulation.serving.kernels.held import near
from gpuplan.simulation.serving.kernels.state import (
    ARRIVE,
    IN_FLIGHT,
    NONE,
    OUTSTANDING,
    Engines,
    append_waiting,
)


@part
def _pool_load(f: Elastic, p: int, weight: float) -> float:
    """What stands before a pool, for its size; less is better."""
    n_ready = max(1, f.pool[p, COUNTS + READY])
    return float((f.pool[p, POOL_OUT] + f.pool[p, HELD]) / (weight * n_ready))


@part
def _least(f: Elastic, p: int) -> int:
    """Load and leaf of the replica of a pool that has the fewest outstanding."""
    return int(f.load[f.scalar[POOL_ROOT] + p])


@part
def _pool_rank(f: Elastic, p: int, weight: float) -> tuple[bool, float]:
    """How far back the pool stands: those with nothing ready come last, the others by the rule."""
    is_empty = bool(f.pool[p, COUNTS + READY] == 0)
    rank = _pool_load(f, p, weight)
    if f.scalar[POOL_RULE] == BY_SHARE:
        rank = float(f.pool[p, SENT]) / weight
    elif f.scalar[POOL_RULE] == BY_ORDER:
        has_room = not is_empty and (_least(f, p) >> LEAF_BITS) < f.real[p, SPILL_AT]
        rank = -1.0 if has_room else rank
    return is_empty, rank


@part
def choose_pool(f: Elastic, i: int) -> int:
    """The pool of least rank that serves the job; the first of equals."""
    n_pools = f.pool.shape[0]
    if n_pools == 1:
        return 0
    best, is_last, least = NONE, True, 0.0
    for p in range(n_pools):
        weight = f.serves[f.job[i, STAGE], f.job[i, SERVICE], p]
        if weight > 0.0 and f.job[i, NEED] <= f.pool[p, CAPACITY]:
            is_empty, rank = _pool_rank(f, p, weight)
            is_better = rank < least if is_empty == is_last else is_last
            if best < 0 or is_better:
                best, is_last, least = p, is_empty, rank
    return best


@part
def _of_pair(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """The better of a drawn pair of replicas; a job sent again draws another pair."""
    first, n = f.pool[p, FIRST_REPLICA], f.pool[p, COUNTS + READY]
    row = f.pair[(i + 7919 * f.job[i, N_TRIES]) % f.pair.shape[0]]
    a = f.ready[first + (row[0] * n) // f.scalar[PAIR_RANGE]]
    b = f.ready[first + (row[1] * n) // f.scalar[PAIR_RANGE]]
    if engines.scalar[a, OUTSTANDING] == engines.scalar[b, OUTSTANDING]:
        return int(min(a, b))
    return int(a if engines.scalar[a, OUTSTANDING] < engines.scalar[b, OUTSTANDING] else b)


@part
def _keeper(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """The replica that last saw the job's longest known beginning, unless it has far more to do."""
    least = _least(f, p) >> LEAF_BITS
    for at in range(f.key_first[i + 1] - 1, f.key_first[i] - 1, -1):
        r = f.owner[f.key[at]]
        if r >= 0 and f.replica[r, STATUS] == READY and f.replica[r, POOL] == p:
            more = engines.scalar[r, OUTSTANDING] - least
            is_far = more > f.real[p, GUARD_RATIO] * least
            if more > f.real[p, GUARD_MORE] and is_far:
                return NONE
            return int(r)
    return NONE


@part
def _choose(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """A replica by the router's rule; NONE where it has no opinion."""
    rule = f.scalar[ROUTER]
    if rule == ROUND_ROBIN:
        first, n = f.pool[p, FIRST_REPLICA], f.pool[p, COUNTS + READY]
        f.pool[p, TURN] += 1
        return int(f.ready[first + (f.pool[p, TURN] - 1) % n])
    if rule == POWER_OF_TWO:
        return _of_pair(engines, f, p, i)
    return _keeper(engines, f, p, i) if rule == AFFINITY else NONE


@part
def choose_replica(engines: Engines, f: Elastic, p: int, i: int) -> int:
    """A replica that is ready and has room; NONE where none is."""
    least = _least(f, p)
    most = f.pool[p, MAX_OUT]
    if least == NEVER or (least >> LEAF_BITS) >= most:
        return NONE
    r = _choose(engines, f, p, i)
    if r < 0 or engines.scalar[r, OUTSTANDING] >= most:
        r = leaf_replica(f, least & LEAF_MASK)
    return r


@part
def send(engines: Engines, f: Elastic, i: int, r: int) -> None:
    """The job waits in the replica's engine from now on."""
    row, p, now = f.job[i], f.replica[r, POOL], f.scalar[NOW]
    engines.request[i, ARRIVE] = now
    append_waiting(engines.scalar[r], engines.request, i)
    row[ON], row[STATE], row[NEXT_SENT] = r, SERVED, NONE
    tail = f.replica[r, SENT_TAIL]
    if tail >= 0:
        f.job[tail, NEXT_SENT] = i
    else:
        f.replica[r, SENT_HEAD] = i
    f.replica[r, SENT_TAIL] = i
    f.pool[p, POOL_OUT] += 1
    f.pool[p, SENT] += 1
    show_load(engines, f, r)
    # It may begin a step now, which is seen only by looking later than now.
    if not engines.scalar[r, IN_FLIGHT]:
        look_at(f, r, min(next_told(f, r), now + 1))
    if f.scalar[ROUTER] == AFFINITY:
        for at in range(f.key_first[i], f.key_first[i + 1]):
            f.owner[f.key[at]] = r


@part
def _hold(f: Elastic, i: int, p: int) -> None:
    """The job is the last that waits before the pool."""
    f.job[i, STATE], f.job[i, NEXT_HELD], f.job[i, ON] = WAITING, NONE, p
    if f.pool[p, HELD_TAIL] >= 0:
        f.job[f.pool[p, HELD_TAIL], NEXT_HELD] = i
    else:
        f.pool[p, HELD_HEAD] = i
    f.pool[p, HELD_TAIL] = i
    f.pool[p, HELD] += 1
    f.scalar[N_HELD] += 1


@part
def refuse(f: Elastic, i: int) -> None:
    """There is no room for the job, not even to wait."""
    f.scalar[N_REFUSALS] += 1
    drop_late(f, i)
    if not retry(f, i, f.scalar[NOW]):
        gave_up(f, i, REFUSED)


@part
def route(engines: Engines, f: Elastic, i: int) -> None:
    """The job goes to a replica, or waits before a pool, or is refused."""
    p = choose_pool(f, i)
    r = choose_replica(engines, f, p, i) if f.pool[p, HELD] == 0 else NONE
    if r >= 0:
        send(engines, f, i, r)
    elif f.pool[p, HELD] < f.pool[p, MAX_HELD] or f.job[i, STAGE] == 1:
        _hold(f, i, p)
    else:
        refuse(f, i)


@rare
def send_held(engines: Engines, f: Elastic, p: int) -> None:
    """What waits before the pool goes to its replicas in order while they have room."""
    engines, f = near(engines), near(f)
    while f.pool[p, HELD] > 0:
        i = f.pool[p, HELD_HEAD]
        r = choose_replica(engines, f, p, i)
        if r < 0:
            return
        unhold(f, i)
        send(engines, f, i, r)
