"""How many replicas a pool should have, looked at from time to time."""

import math

from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.elastic_state import (
    COLD,
    COUNTS,
    DESIRED,
    DOWN_WAIT,
    FIRST_INSTANT,
    FIRST_REPLICA,
    HELD,
    INTERVAL,
    IS_BY_QUEUE,
    IS_MARKED,
    LAST_DOWN,
    LAST_UP,
    LEAST,
    MOST,
    N_HOURS,
    N_SLOTS,
    N_TICKS,
    N_WINDOW,
    NEVER,
    NOW,
    OFF,
    POOL_OUT,
    READY,
    ROLL_AT,
    ROLL_EVERY,
    STARTING,
    STATUS,
    TARGET,
    TICK_AT,
    TO_LEAVE,
    TOLERANCE,
    UP_WAIT,
    Elastic,
)
from gpuplan.simulation.serving.kernels.lifecycle import drain, roll_on, start, stop
from gpuplan.simulation.serving.kernels.state import (
    N_RUNNING,
    NONE,
    OUTSTANDING,
    TICKS_PER_S,
    Engines,
)

HOUR = int(3600 * TICKS_PER_S)


@part
def _demand(engines: Engines, f: Elastic, p: int) -> int:
    """Requests that count: all that are outstanding, or only those that do not run yet."""
    if not f.pool[p, IS_BY_QUEUE]:
        return int(f.pool[p, POOL_OUT] + f.pool[p, HELD])
    n = f.pool[p, HELD]
    first = f.pool[p, FIRST_REPLICA]
    for r in range(first, first + f.pool[p, N_SLOTS]):
        n += engines.scalar[r, OUTSTANDING] - engines.scalar[r, N_RUNNING]
    return int(n)


@part
def _wanted(engines: Engines, f: Elastic, p: int, n_active: int) -> int:
    """Replicas at which each has its target, within the pool's bounds.

    By queue, the target is what may wait for each replica that serves: a queue as long as that
    leaves things as they are, none at all lets one go. Who waits where there is none starts one,
    and the last leaves only when nothing is asked of the pool.
    """
    demand, target = float(_demand(engines, f, p)), f.real[p, TARGET]
    ratio = demand / (target * max(1, n_active))
    wanted = math.ceil(demand / target)
    if n_active > 0 and abs(ratio - 1.0) <= f.real[p, TOLERANCE]:
        wanted = n_active
    elif n_active > 0 and f.pool[p, IS_BY_QUEUE]:
        wanted = max(wanted, n_active) if ratio > 1.0 else n_active - int(demand == 0.0)
        wanted = max(wanted, int(f.pool[p, POOL_OUT] + f.pool[p, HELD] > 0))
    hour = ((f.scalar[NOW] + f.scalar[FIRST_INSTANT]) // HOUR) % N_HOURS
    floor = max(f.pool[p, LEAST], f.floor[p, hour])
    return int(min(max(wanted, floor), f.pool[p, MOST]))


@part
def _most_of_late(f: Elastic, p: int, wanted: int) -> int:
    """The most that was wanted within the window: a pool shrinks only after all of it."""
    n = f.pool[p, N_WINDOW]
    f.recent[p, f.pool[p, N_TICKS] % n] = wanted
    f.pool[p, N_TICKS] += 1
    most = wanted
    for at in range(min(n, f.pool[p, N_TICKS])):
        most = max(most, f.recent[p, at])
    return int(most)


@part
def _grow(engines: Engines, f: Elastic, p: int, n_more: int) -> int:
    """Replicas that are off start, the first ones first; how many did."""
    first, n = f.pool[p, FIRST_REPLICA], 0
    for r in range(first, first + f.pool[p, N_SLOTS]):
        if n < n_more and f.replica[r, STATUS] == OFF:
            start(engines, f, r, f.pool[p, COLD])
            n += 1
    return n


@part
def _least_missed(engines: Engines, f: Elastic, p: int) -> int:
    """The last that starts; else the last of those that have the fewest to finish."""
    first, best = f.pool[p, FIRST_REPLICA], NONE
    for r in range(first + f.pool[p, N_SLOTS] - 1, first - 1, -1):
        if f.replica[r, STATUS] == STARTING:
            return int(r)
        if f.replica[r, STATUS] == READY and (
            best < 0 or engines.scalar[r, OUTSTANDING] < engines.scalar[best, OUTSTANDING]
        ):
            best = r
    return int(best)


@part
def _shrink(engines: Engines, f: Elastic, p: int, n_less: int) -> None:
    for _ in range(n_less):
        r = _least_missed(engines, f, p)
        if r < 0:
            return
        if f.replica[r, STATUS] == STARTING:
            stop(engines, f, r)
        else:
            drain(engines, f, r, TO_LEAVE)


@rare
def tick(engines: Engines, f: Elastic, p: int) -> None:
    """Compare what is there with what is wanted; grow at once, shrink after a while."""
    row, now = f.pool[p], f.scalar[NOW]
    row[TICK_AT] = now + row[INTERVAL]
    n_active = row[COUNTS + READY] + row[COUNTS + STARTING]
    wanted = _wanted(engines, f, p, n_active)
    kept = _most_of_late(f, p, wanted)
    row[DESIRED] = n_active
    if wanted > n_active:
        row[DESIRED] = wanted
        if now - row[LAST_UP] >= row[UP_WAIT] and _grow(engines, f, p, wanted - n_active) > 0:
            row[LAST_UP] = now
    elif kept < n_active:
        row[DESIRED] = kept
        if now - row[LAST_DOWN] >= row[DOWN_WAIT]:
            _shrink(engines, f, p, n_active - kept)
            row[LAST_DOWN] = now


@rare
def roll(engines: Engines, f: Elastic, p: int) -> None:
    """Every replica that is ready is to restart, one after the other."""
    row = f.pool[p]
    row[ROLL_AT] = row[ROLL_AT] + row[ROLL_EVERY] if row[ROLL_EVERY] != NEVER else NEVER
    first = row[FIRST_REPLICA]
    for r in range(first, first + row[N_SLOTS]):
        if f.replica[r, STATUS] == READY:
            f.replica[r, IS_MARKED] = 1
    roll_on(engines, f, p)
