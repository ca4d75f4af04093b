"""State of a fleet around its engines: replicas, pools, jobs, and who may do what when.

A job is a request as the fleet sees it: it may be sent several times. Times are whole picoseconds,
as in the engines; NEVER is later than all of them.
"""

from typing import NamedTuple, cast

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Engines, Floats, Ints
from gpuplan.simulation.serving.kernels.fleet.trees import set_leaf
from gpuplan.simulation.serving.kernels.jit.compiled import part

# A literal argument would be a signature of its own.
NEVER = cast(int, np.int64(st.FOREVER))
LEAF_BITS = 20  # a load and its leaf in one number: the first of equals is the least
LEAF_MASK = (1 << LEAF_BITS) - 1


def _plain(n: int) -> list[int]:
    """Numbers that a function is compiled for once: of literals it is compiled for each."""
    return [cast(int, np.int64(i)) for i in range(n)]


# Scalars of a fleet: what happens next, what is counted, and what clients and the router do.
NOW, NEXT_FRESH, NEXT_OUTAGE, LAST, N_DELAYED, N_HELD, N_DRAINING, N_ABORTING = range(8)
N_LOG, LATE_HEAD, LATE_TAIL, REPORT_HEAD, IS_FOLLOWING = range(8, 13)
N_REFUSALS, N_TIMEOUTS, N_RETRIES, N_RESENDS, N_BROKEN, N_FAILURES, N_RECLAIMS = range(13, 20)
N_KV_TRANSFERS, ROUTER, POOL_RULE, PAIR_RANGE, LEAVES_BITS, POOL_ROOT = range(20, 26)
TIMEOUT, IS_FIRST_TOKEN, MAX_RETRIES, BACKOFF, MAX_BACKOFF, MAX_RESENDS = range(26, 32)
FIRST_INSTANT = 32
N_FLEET = 33

# Columns of a replica.
POOL, LEAF, STATUS, PURPOSE, READY_AT, FAIL_AT, NOTICE_AT, KILL_AT, REPAIR_AT = range(9)
IS_PAID, PAID_SINCE, PAID, SINCE, READY_TIME, FAILED_TIME, STARTING_TIME = range(9, 16)
N_STARTS, DREW_FAIL, DREW_NOTICE, DREW_REPAIR, IS_MARKED, IS_RESTARTING = range(16, 22)
SENT_HEAD, SENT_TAIL, N_ABORTS, LINK_FREE, HAS_REPORTED, NEXT_REPORTED = range(22, 28)
N_REPLICA = 28
OFF, STARTING, READY, DRAINING, FAILED = _plain(5)
# Why a replica drains.
TO_LEAVE, TO_RESTART, TO_RETURN = _plain(3)

# Columns of a pool. COUNTS: of replicas in each status, from here on.
FIRST_REPLICA, N_SLOTS, COUNTS = range(3)
POOL_OUT, HELD_HEAD, HELD_TAIL, HELD, MAX_OUT, MAX_HELD, TURN, SENT = range(7, 15)
DESIRED, LEAST, MOST, TICK_AT, INTERVAL, IS_BY_QUEUE, UP_WAIT, DOWN_WAIT = range(15, 23)
LAST_UP, LAST_DOWN, N_WINDOW, N_TICKS, COLD, WARM, GRACE = range(23, 30)
MTBF, MTTR, IS_FIXED_REPAIR, MTBN, NOTICE, AWAY, IS_FAILED_PAID = range(30, 37)
ROLL_AT, ROLL_EVERY, MAX_UNAVAILABLE, N_RESTARTING = range(37, 41)
TRANSFER_LATENCY, CAPACITY = range(41, 43)
N_POOL = 43
# What a pool has as real numbers.
TARGET, TOLERANCE, SPILL_AT, TICKS_PER_TOKEN, GUARD_MORE, GUARD_RATIO = range(6)
N_REAL = 6

# Columns of a job; what every job needs stands first, close together.
ORIGIN, SERVICE, ON, STATE, N_TRIES, ASKED_AT, NEXT_SENT, STAGE, LENGTH, NEED = range(10)
IS_ABORTED, LATE_BEFORE, LATE_AFTER, IS_LATE_LISTED, NEXT_HELD, NEXT_TURN = range(10, 16)
THINK, DUE, ENDED_AT, N_SENT_AGAIN = range(16, 20)
N_JOB = 20
TO_COME, WAITING, SERVED, DELAYED, DONE, REFUSED, TIMED_OUT, LOST = _plain(8)

ROUND_ROBIN, LEAST_OUTSTANDING, POWER_OF_TWO, AFFINITY = range(4)
BY_LOAD, BY_SHARE, BY_ORDER = range(3)
FAIL_DRAWS, NOTICE_DRAWS, REPAIR_DRAWS = _plain(3)
LOG_TIME, LOG_POOL, LOG_COUNTS = range(3)
N_LOG_COLUMNS = 7
N_HOURS = 168


class Elastic(NamedTuple):
    """All that a fleet knows beside its engines."""

    scalar: Ints
    replica: Ints  # (replicas, N_REPLICA)
    pool: Ints  # (pools, N_POOL)
    real: Floats  # (pools, N_REAL)
    job: Ints  # (jobs, N_JOB)
    serves: Floats  # (stages, services, pools): weight, 0 where a pool does not serve it
    due: Ints  # tree: when a replica changes by itself
    event: Ints  # tree: when its engine has something to report
    watched: Ints  # tree: the same, of replicas whose every word must be heard at once
    load: Ints  # tree: outstanding and leaf of what is ready
    ready: Ints  # (replicas,): those of a pool that are ready, in order, from its first
    delayed: Ints  # (capacity, 2): heap of instants and jobs
    fresh: Ints  # jobs in order of arrival
    key_first: Ints  # (jobs + 1,)
    key: Ints  # what binds a job to a replica: sessions, groups or blocks
    owner: Ints  # (keys,): the replica that saw it last
    pair: Ints  # (rows, 2)
    draw: Floats  # (3, many): standard exponentials
    outage: Ints  # (outages, 3): instant, replica, how long
    floor: Ints  # (pools, N_HOURS): fewest replicas by hour of the week
    recent: Ints  # (pools, ticks): what the scaler wanted of late
    log: Ints  # (capacity, N_LOG_COLUMNS)


@part
def leaf_replica(f: Elastic, leaf: int) -> int:
    """The replica of a leaf."""
    p = leaf >> f.scalar[LEAVES_BITS]
    return int(f.pool[p, FIRST_REPLICA] + leaf - (p << f.scalar[LEAVES_BITS]))


@part
def show_load(engines: Engines, f: Elastic, r: int) -> None:
    """What the router sees of a replica; NEVER where it may not be chosen."""
    row = f.replica[r]
    value = NEVER
    if row[STATUS] == READY:
        value = (engines.scalar[r, st.OUTSTANDING] << LEAF_BITS) | row[LEAF]
    set_leaf(f.load, row[LEAF], value)


@part
def look_at(f: Elastic, r: int, instant: int) -> None:
    """The engine is to be advanced once time has come to this instant."""
    row = f.replica[r]
    set_leaf(f.event, row[LEAF], instant)
    set_leaf(f.watched, row[LEAF], instant if is_watched(f, r) else NEVER)


@part
def is_watched(f: Elastic, r: int) -> bool:
    """The replica is about to leave, or a client of it has gone."""
    return bool(f.replica[r, STATUS] == DRAINING or f.replica[r, N_ABORTS] > 0)


@part
def next_report(f: Elastic, r: int) -> int:
    """When the replica's engine has something to tell."""
    return int(f.event[(f.event.shape[0] >> 1) + f.replica[r, LEAF]])


@part
def note_report(f: Elastic, r: int) -> None:
    """What the replica's engine reports is to be looked at."""
    row, s = f.replica[r], f.scalar
    if not row[HAS_REPORTED]:
        row[HAS_REPORTED], row[NEXT_REPORTED] = 1, s[REPORT_HEAD]
        s[REPORT_HEAD] = r


@part
def reschedule(f: Elastic, r: int) -> None:
    """When the replica next changes by itself."""
    row = f.replica[r]
    soonest = min(row[READY_AT], row[FAIL_AT], row[NOTICE_AT], row[KILL_AT], row[REPAIR_AT])
    set_leaf(f.due, row[LEAF], soonest)


@part
def next_control(f: Elastic) -> int:
    """When a replica, a given outage or a pool's clock next acts."""
    soonest = f.due[1]
    if f.scalar[NEXT_OUTAGE] < f.outage.shape[0]:
        soonest = min(soonest, f.outage[f.scalar[NEXT_OUTAGE], 0])
    for p in range(f.pool.shape[0]):
        soonest = min(soonest, f.pool[p, TICK_AT], f.pool[p, ROLL_AT])
    return int(soonest)


@part
def write_log(f: Elastic, p: int) -> None:
    """How many replicas of the pool are in each status from now on."""
    at = f.scalar[N_LOG]
    row = f.log[at]
    row[LOG_TIME], row[LOG_POOL] = f.scalar[NOW], p
    for status in range(5):
        row[LOG_COUNTS + status] = f.pool[p, COUNTS + status]
    f.scalar[N_LOG] = at + 1
