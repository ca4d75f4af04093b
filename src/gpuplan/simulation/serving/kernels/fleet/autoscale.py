"""How many replicas a pool should have, looked at from time to time."""

import math

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Engines
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.lifecycle import drain, roll_on, start, stop
from gpuplan.simulation.serving.kernels.fleet.state import Elastic
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare

HOUR = int(3600 * st.TICKS_PER_S)


@part
def _demand(engines: Engines, f: Elastic, p: int) -> int:
    """Requests that count: all that are outstanding, or only those that do not run yet."""
    if not f.pool[p, el.IS_BY_QUEUE]:
        return int(f.pool[p, el.POOL_OUT] + f.pool[p, el.HELD])
    n = f.pool[p, el.HELD]
    first = f.pool[p, el.FIRST_REPLICA]
    for r in range(first, first + f.pool[p, el.N_SLOTS]):
        s = engines.scalar[r]
        n += s[st.OUTSTANDING] - s[st.N_RUNNING] + s[st.N_LEAVING]
    return int(n)


@part
def _wanted(engines: Engines, f: Elastic, p: int, n_active: int) -> int:
    """Replicas at which each has its target, within the pool's bounds.

    By queue, the target is what may wait for each replica that serves: a queue as long as that
    leaves things as they are, none at all lets one go. Who waits where there is none starts one,
    and the last leaves only when nothing is asked of the pool.
    """
    demand, target = float(_demand(engines, f, p)), f.real[p, el.TARGET]
    ratio = demand / (target * max(1, n_active))
    wanted = math.ceil(demand / target)
    if n_active > 0 and abs(ratio - 1.0) <= f.real[p, el.TOLERANCE]:
        wanted = n_active
    elif n_active > 0 and f.pool[p, el.IS_BY_QUEUE]:
        wanted = max(wanted, n_active) if ratio > 1.0 else n_active - int(demand == 0.0)
        wanted = max(wanted, int(f.pool[p, el.POOL_OUT] + f.pool[p, el.HELD] > 0))
    hour = ((f.scalar[el.NOW] + f.scalar[el.FIRST_INSTANT]) // HOUR) % el.N_HOURS
    floor = max(f.pool[p, el.LEAST], f.floor[p, hour])
    return int(min(max(wanted, floor), f.pool[p, el.MOST]))


@part
def _most_of_late(f: Elastic, p: int, wanted: int) -> int:
    """The most that was wanted within the window: a pool shrinks only after all of it."""
    n = f.pool[p, el.N_WINDOW]
    f.recent[p, f.pool[p, el.N_TICKS] % n] = wanted
    f.pool[p, el.N_TICKS] += 1
    most = wanted
    for at in range(min(n, f.pool[p, el.N_TICKS])):
        most = max(most, f.recent[p, at])
    return int(most)


@part
def _grow(engines: Engines, f: Elastic, p: int, n_more: int) -> int:
    """Replicas that are off start, the first ones first; how many did."""
    first, n = f.pool[p, el.FIRST_REPLICA], 0
    for r in range(first, first + f.pool[p, el.N_SLOTS]):
        if n < n_more and f.replica[r, el.STATUS] == el.OFF:
            start(engines, f, r, f.pool[p, el.COLD])
            n += 1
    return n


@part
def _least_missed(engines: Engines, f: Elastic, p: int) -> int:
    """The last that starts; else the last of those that have the fewest to finish."""
    first, best = f.pool[p, el.FIRST_REPLICA], st.NONE
    for r in range(first + f.pool[p, el.N_SLOTS] - 1, first - 1, -1):
        if f.replica[r, el.STATUS] == el.STARTING:
            return int(r)
        if f.replica[r, el.STATUS] == el.READY and (
            best < 0 or engines.scalar[r, st.OUTSTANDING] < engines.scalar[best, st.OUTSTANDING]
        ):
            best = r
    return int(best)


@part
def _shrink(engines: Engines, f: Elastic, p: int, n_less: int) -> None:
    for _ in range(n_less):
        r = _least_missed(engines, f, p)
        if r < 0:
            return
        if f.replica[r, el.STATUS] == el.STARTING:
            stop(engines, f, r)
        else:
            drain(engines, f, r, el.TO_LEAVE)


@rare
def tick(engines: Engines, f: Elastic, p: int) -> None:
    """Compare what is there with what is wanted; grow at once, shrink after a while."""
    row, now = f.pool[p], f.scalar[el.NOW]
    row[el.TICK_AT] = now + row[el.INTERVAL]
    n_active = row[el.COUNTS + el.READY] + row[el.COUNTS + el.STARTING]
    wanted = _wanted(engines, f, p, n_active)
    retained = _most_of_late(f, p, wanted)
    row[el.DESIRED] = n_active
    if wanted > n_active:
        row[el.DESIRED] = wanted
        if now - row[el.LAST_UP] >= row[el.UP_WAIT] and _grow(engines, f, p, wanted - n_active) > 0:
            row[el.LAST_UP] = now
    elif retained < n_active:
        row[el.DESIRED] = retained
        if now - row[el.LAST_DOWN] >= row[el.DOWN_WAIT]:
            _shrink(engines, f, p, n_active - retained)
            row[el.LAST_DOWN] = now


@rare
def roll(engines: Engines, f: Elastic, p: int) -> None:
    """Every replica that is ready is to restart, one after the other."""
    row = f.pool[p]
    row[el.ROLL_AT] = (
        row[el.ROLL_AT] + row[el.ROLL_EVERY] if row[el.ROLL_EVERY] != el.NEVER else el.NEVER
    )
    first = row[el.FIRST_REPLICA]
    for r in range(first, first + row[el.N_SLOTS]):
        if f.replica[r, el.STATUS] == el.READY:
            f.replica[r, el.IS_MARKED] = 1
    roll_on(engines, f, p)
