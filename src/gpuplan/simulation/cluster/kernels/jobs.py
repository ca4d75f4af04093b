"""A job's life: queued, started, stopped, and what it costs its team's quota."""

import math

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.lists import drop_end, insert, push_end, remove
from gpuplan.simulation.cluster.kernels.nodes import find_pieces, take_pieces
from gpuplan.simulation.cluster.kernels.shares import find_share, release_all, take_share
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def units(s: Sim, j: int, gpus: int) -> int:
    """What the job counts in quotas with so many GPUs, in thousandths."""
    share = s.job[j, st.SHARE]
    return share if share > 0 else gpus * st.MILLI


@part
def limit_left(s: Sim, j: int) -> float:
    """Work that the job's time limit leaves, as the scheduler knows it."""
    w = s.work[j]
    return float(max(w[st.LIMIT] - (w[st.WORK] - w[st.LEFT]), 0.0))


@part
def speed(s: Sim, j: int, p: int, gpus: int) -> float:
    """Speed with so many GPUs of the pool, relative to what the job's duration was stated for."""
    curve, here = s.job[j, st.CURVE], s.real[st.N_REAL + p]
    if curve < 0:
        return float(here)
    return float(here * s.curve[curve, gpus] / s.curve[curve, s.job[j, st.GPUS]])


@part
def queue_of(s: Sim, j: int) -> int:
    """The list in which the job waits; that of services is the last before the running ones."""
    if s.job[j, st.IS_SERVICE]:
        return int(s.rule[st.N_QUEUES])
    return s.job[j, st.TEAM] if s.rule[st.ORDER] >= st.FAIR else 0


@part
def order_key(s: Sim, j: int) -> float:
    """What the queue is ordered by; the job that came first where it is equal."""
    order = s.rule[st.ORDER]
    if s.job[j, st.IS_SERVICE] or order == st.FIFO:
        return float(s.work[j, st.ARRIVE])
    if order == st.SHORTEST:
        return limit_left(s, j)
    if order == st.EDF:
        return float(s.work[j, st.DEADLINE])
    return -float(s.job[j, st.PRIORITY])


@part
def _count_queued(s: Sim, j: int, sign: int) -> None:
    s.counter[st.N_QUEUED] += sign
    if not s.job[j, st.IS_SERVICE]:
        s.counter[st.N_BATCH_QUEUED] += sign
        s.counter[st.GPUS_QUEUED] += sign * s.job[j, st.GPUS]


@part
def enqueue(s: Sim, j: int) -> None:
    """The job waits."""
    s.job[j, st.STATUS] = st.QUEUED
    s.work[j, st.KEY] = order_key(s, j)
    insert(s, queue_of(s, j), s.work[j, st.KEY], j)
    _count_queued(s, j, 1)


@part
def dequeue(s: Sim, j: int) -> None:
    """The job waits no more."""
    remove(s, queue_of(s, j), s.work[j, st.KEY], j)
    _count_queued(s, j, -1)


@part
def quota_fits(s: Sim, j: int, flavor: int, more: int) -> bool:
    """Whether the team may use so much more: its own quota, then what its cohort lends [Kueue]."""
    if s.job[j, st.IS_SERVICE]:
        return True
    t = s.job[j, st.TEAM]
    q = s.quota[t, flavor]
    used = q[st.USED] + more
    if s.team[t, st.COHORT] < 0:
        return bool(used <= q[st.NOMINAL])
    if used > q[st.NOMINAL] + q[st.BORROW]:
        return False
    lent = total = 0
    for other in range(s.rule[st.N_TEAMS]):
        if s.team[other, st.COHORT] != s.team[t, st.COHORT]:
            continue
        row = s.quota[other, flavor]
        own = max(0, row[st.NOMINAL] - row[st.LEND])  # what it never lends
        total += row[st.NOMINAL] - own
        lent += max(0, row[st.USED] - own)
    own = max(0, q[st.NOMINAL] - q[st.LEND])
    return bool(more <= total - lent + own - min(q[st.USED], own))


@part
def touch_usage(s: Sim, t: int) -> None:
    """Bring the team's decayed usage up to now."""
    u, half = s.usage[t], s.real[st.HALF_LIFE]
    gone = s.clock[st.NOW] - u[st.USAGE_AT]
    rate = s.team[t, st.TEAM_GPUS] / st.MILLI
    if gone > 0.0:
        retained = math.exp(-math.log(2.0) * gone / half)
        u[st.USAGE] = u[st.USAGE] * retained + rate * half / math.log(2.0) * (1.0 - retained)
        u[st.USAGE_AT] = s.clock[st.NOW]


@part
def count_use(s: Sim, j: int, sign: int) -> None:
    """Charge what the job holds to its team, or return it."""
    t, amount = s.job[j, st.TEAM], units(s, j, s.job[j, st.HELD])
    if s.rule[st.ORDER] == st.FAIR:
        touch_usage(s, t)
    s.team[t, st.TEAM_GPUS] += sign * amount
    s.quota[t, s.pool[s.job[j, st.POOL], st.FLAVOR], st.USED] += sign * amount
    if s.job[j, st.IS_SERVICE]:
        s.counter[st.GPUS_SERVICE] += sign * s.job[j, st.HELD]


@part
def set_ends(s: Sim, j: int) -> None:
    """When the job ends, and when the scheduler must expect it to, from now on."""
    w, now = s.work[j], s.clock[st.NOW]
    if s.job[j, st.IS_SERVICE]:
        w[st.END] = w[st.LIMIT_END] = w[st.ARRIVE] + w[st.WORK]
    else:
        w[st.END] = now + w[st.PAUSE] + w[st.LEFT] / w[st.SPEED]
        w[st.LIMIT_END] = now + w[st.PAUSE] + limit_left(s, j) / w[st.SPEED]
    insert(s, s.rule[st.N_QUEUES] + 1, w[st.LIMIT_END], j)
    push_end(s, j)


@part
def begin(s: Sim, j: int, p: int, gpus: int) -> None:
    """The job runs in the pool from now on; its GPUs are taken."""
    dequeue(s, j)
    job, w = s.job[j], s.work[j]
    job[st.STATUS], job[st.POOL], job[st.HELD] = st.RUNNING, p, gpus
    w[st.BEGAN] = s.clock[st.NOW]
    w[st.PAUSE] = w[st.RESTART] if job[st.N_STARTS] > 0 else 0.0
    w[st.SPEED] = speed(s, j, p, gpus)
    if job[st.N_STARTS] == 0:
        w[st.FIRST] = s.clock[st.NOW]
    job[st.N_STARTS] += 1
    count_use(s, j, 1)
    set_ends(s, j)


@part
def allocated_gpus(s: Sim, j: int) -> float:
    """GPUs that the job holds; a share counts as its part of one."""
    return units(s, j, s.job[j, st.HELD]) / st.MILLI


@part
def _log_piece(s: Sim, j: int, how: int, node: int, gpus: float) -> None:
    """Note what the run held of one node, as long as there is room for it."""
    n = s.counter[st.N_SEGMENTS]
    s.counter[st.N_SEGMENTS] = n + 1
    if n >= s.segment.shape[0]:
        return
    row = s.segment[n]
    row[0], row[1], row[2] = s.work[j, st.BEGAN], s.clock[st.NOW], j
    row[3], row[4], row[5] = node, gpus, how


@part
def log_run(s: Sim, j: int, how: int) -> None:
    """Note the run that ends now, node by node, where runs are asked for."""
    if s.segment.shape[0] == 0:
        return
    e, allocated = s.job[j, st.ENTRY], s.job[j, st.HELD]
    if e < 0 or s.entry[e, st.N_TAKEN] < 0:
        _log_piece(s, j, how, s.job[j, st.FIRST_NODE], allocated_gpus(s, j))
        return
    # Entries added last stand first: GPUs that a job has just grown by are no part of this run.
    extra = -allocated
    while e >= 0:
        extra += s.entry[e, st.N_TAKEN]
        e = s.entry[e, st.NEXT]
    e = s.job[j, st.ENTRY]
    while e >= 0:
        node, gpus = s.entry[e, st.ON], 0
        while e >= 0 and s.entry[e, st.ON] == node:
            gone = min(extra, s.entry[e, st.N_TAKEN])
            extra -= gone
            gpus += s.entry[e, st.N_TAKEN] - gone
            e = s.entry[e, st.NEXT]
        if gpus > 0:
            _log_piece(s, j, how, node, float(gpus))


@part
def settle(s: Sim, j: int, how: int) -> None:
    """Account for the run that ends now: GPU time, work that is kept, work that is lost."""
    w, gpus = s.work[j], allocated_gpus(s, j)
    ran = s.clock[st.NOW] - w[st.BEGAN]
    done = max(0.0, ran - w[st.PAUSE]) * w[st.SPEED]
    retained = min(done, w[st.LEFT])
    if how == st.FINISHED:
        retained = w[st.LEFT]
    elif how == st.FAILED or (how == st.PREEMPTED and not s.rule[st.SAVES]):
        retained = 0.0
        if w[st.CHECKPOINT] > 0.0:
            retained = min(math.floor(done / w[st.CHECKPOINT]) * w[st.CHECKPOINT], w[st.LEFT])
    w[st.HELD_TIME] += ran * gpus
    if not s.job[j, st.IS_SERVICE]:
        w[st.LOST] += max(0.0, ran - retained / w[st.SPEED]) * gpus
        w[st.LEFT] = max(0.0, w[st.LEFT] - retained)
    log_run(s, j, how)
    drop_end(s, j)
    remove(s, s.rule[st.N_QUEUES] + 1, w[st.LIMIT_END], j)
    count_use(s, j, -1)


@part
def stop(s: Sim, j: int, how: int) -> None:
    """The job stops now: for good, or to wait for another start."""
    settle(s, j, how)
    release_all(s, j)
    s.counter[st.IS_DIRTY] = 1
    if how == st.FINISHED:
        s.job[j, st.STATUS] = st.DONE
        return
    s.job[j, st.N_PREEMPTED] += how == st.PREEMPTED
    s.job[j, st.N_FAILED] += how == st.FAILED
    enqueue(s, j)


@part
def fits_now(s: Sim, j: int, p: int, gpus: int, is_capped: bool) -> int:
    """How the job fits into the pool: -1 not at all, -3 as a gang, else as `find_share` says."""
    if s.job[j, st.SHARE] > 0:
        return find_share(s, j, p, is_capped)
    return -3 if find_pieces(s, j, p, gpus, is_capped) else -1


@part
def place(s: Sim, j: int, p: int, gpus: int, how: int) -> None:
    """Take what `fits_now` found, and run."""
    if how == -3:
        take_pieces(s, j)
    else:
        take_share(s, j, how)
    begin(s, j, p, gpus)
