"""What becomes of replicas: they start, serve, drain, fail, are taken away, and come back."""

from gpuplan.simulation.serving.kernels.clients import gave_up
from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.elastic_state import (
    AWAY,
    COLD,
    COUNTS,
    DESIRED,
    DRAINING,
    DREW_FAIL,
    FAIL_AT,
    FAIL_DRAWS,
    FAILED,
    FAILED_TIME,
    FIRST_REPLICA,
    GRACE,
    IS_ABORTED,
    IS_FAILED_PAID,
    IS_FIXED_REPAIR,
    IS_MARKED,
    IS_PAID,
    IS_RESTARTING,
    KILL_AT,
    LOST,
    MAX_RESENDS,
    MAX_UNAVAILABLE,
    MTBF,
    MTBN,
    MTTR,
    N_ABORTING,
    N_ABORTS,
    N_BROKEN,
    N_DRAINING,
    N_RECLAIMS,
    N_RESENDS,
    N_RESTARTING,
    N_SENT_AGAIN,
    N_SLOTS,
    N_STARTS,
    NEVER,
    NEXT_SENT,
    NOTICE,
    NOTICE_AT,
    NOTICE_DRAWS,
    NOW,
    OFF,
    PAID,
    PAID_SINCE,
    POOL,
    POOL_OUT,
    PURPOSE,
    READY,
    READY_AT,
    READY_TIME,
    REPAIR_AT,
    REPAIR_DRAWS,
    SENT_HEAD,
    SENT_TAIL,
    SINCE,
    STARTING,
    STARTING_TIME,
    STATUS,
    TO_LEAVE,
    TO_RESTART,
    TO_RETURN,
    WARM,
    Elastic,
    look_at,
    next_told,
    reschedule,
    show_load,
    write_log,
)
from gpuplan.simulation.serving.kernels.held import held
from gpuplan.simulation.serving.kernels.kinds import one_engine
from gpuplan.simulation.serving.kernels.leaving import fresh_start, time_out
from gpuplan.simulation.serving.kernels.removal_kinds import empty, spend
from gpuplan.simulation.serving.kernels.router import route, send_held
from gpuplan.simulation.serving.kernels.state import (
    END,
    NONE,
    OUTSTANDING,
    Engines,
)

FAR = float(1 << 61)  # later than any run


@part
def _drawn(f: Elastic, r: int, which: int, mean: int) -> int:
    """A drawn duration; a replica has its own row of draws, whatever the others do."""
    column = DREW_FAIL + which
    at = (r * 7919 + f.replica[r, column]) % f.draw.shape[1]
    f.replica[r, column] += 1
    return int(min(f.draw[which, at] * mean, FAR)) + 1


@part
def _list_ready(f: Elastic, p: int) -> None:
    first, n = f.pool[p, FIRST_REPLICA], 0
    for r in range(first, first + f.pool[p, N_SLOTS]):
        if f.replica[r, STATUS] == READY:
            f.ready[first + n] = r
            n += 1


@rare
def set_status(engines: Engines, f: Elastic, r: int, status: int) -> None:
    """The replica is in this status from now on."""
    row, now = f.replica[r], f.scalar[NOW]
    p, old, lasted = row[POOL], row[STATUS], now - row[SINCE]
    if old == READY:
        row[READY_TIME] += lasted
    elif old == STARTING:
        row[STARTING_TIME] += lasted
    elif old == FAILED:
        row[FAILED_TIME] += lasted
    f.scalar[N_DRAINING] += int(status == DRAINING) - int(old == DRAINING)
    f.pool[p, COUNTS + old] -= 1
    f.pool[p, COUNTS + status] += 1
    row[STATUS], row[SINCE] = status, now
    look_at(f, r, next_told(f, r))
    _list_ready(f, p)
    show_load(engines, f, r)
    write_log(f, p)
    is_paid = status != OFF and (status != FAILED or f.pool[p, IS_FAILED_PAID] == 1)
    if row[IS_PAID] and not is_paid:
        row[PAID] += now - row[PAID_SINCE]
    elif is_paid and not row[IS_PAID]:
        row[PAID_SINCE] = now
    row[IS_PAID] = int(is_paid)


@part
def _clear_clocks(f: Elastic, r: int) -> None:
    row = f.replica[r]
    row[READY_AT] = row[FAIL_AT] = row[NOTICE_AT] = row[KILL_AT] = row[REPAIR_AT] = NEVER


@rare
def start(engines: Engines, f: Elastic, r: int, lasts: int) -> None:
    """A fresh replica starts; from now on it may fail or be taken away."""
    row, now = f.replica[r], f.scalar[NOW]
    p = row[POOL]
    _clear_clocks(f, r)
    empty(held(one_engine(engines, r)), now)
    look_at(f, r, NEVER)
    row[N_STARTS] += 1
    row[IS_MARKED] = 0
    row[READY_AT] = now + lasts
    if f.pool[p, MTBF] != NEVER:
        row[FAIL_AT] = now + _drawn(f, r, FAIL_DRAWS, f.pool[p, MTBF])
    if f.pool[p, MTBN] != NEVER:
        row[NOTICE_AT] = now + _drawn(f, r, NOTICE_DRAWS, f.pool[p, MTBN])
    set_status(engines, f, r, STARTING)
    reschedule(f, r)


@part
def _is_no_longer_restarting(f: Elastic, r: int) -> None:
    if f.replica[r, IS_RESTARTING]:
        f.replica[r, IS_RESTARTING] = 0
        f.pool[f.replica[r, POOL], N_RESTARTING] -= 1


@rare
def stop(engines: Engines, f: Elastic, r: int) -> None:
    """The replica is given up; nobody pays for it from now on."""
    _clear_clocks(f, r)
    _is_no_longer_restarting(f, r)
    f.replica[r, IS_MARKED] = 0
    look_at(f, r, NEVER)
    set_status(engines, f, r, OFF)
    reschedule(f, r)


@rare
def become_ready(engines: Engines, f: Elastic, r: int) -> None:
    """The replica takes jobs, those that wait first."""
    f.replica[r, READY_AT] = NEVER
    _is_no_longer_restarting(f, r)
    set_status(engines, f, r, READY)
    reschedule(f, r)
    send_held(engines, f, f.replica[r, POOL])
    roll_on(engines, f, f.replica[r, POOL])


@rare
def drained(engines: Engines, f: Elastic, r: int) -> None:
    """Nothing is left on a replica that takes nothing new."""
    purpose = f.replica[r, PURPOSE]
    if purpose == TO_LEAVE:
        stop(engines, f, r)
    elif purpose == TO_RESTART:
        start(engines, f, r, f.pool[f.replica[r, POOL], WARM])


@rare
def drain(engines: Engines, f: Elastic, r: int, purpose: int) -> None:
    """The replica finishes what it has, within the time that it is given."""
    row = f.replica[r]
    row[PURPOSE] = purpose
    lasts = f.pool[row[POOL], NOTICE if purpose == TO_RETURN else GRACE]
    row[KILL_AT] = min(row[KILL_AT], f.scalar[NOW] + lasts) if lasts != NEVER else row[KILL_AT]
    set_status(engines, f, r, DRAINING)
    reschedule(f, r)
    if engines.scalar[r, OUTSTANDING] == 0:
        drained(engines, f, r)


@rare
def roll_on(engines: Engines, f: Elastic, p: int) -> None:
    """The next marked replicas restart, as many at a time as may be missing."""
    from_, n = f.pool[p, FIRST_REPLICA], f.pool[p, N_SLOTS]
    for r in range(from_, from_ + n):
        if f.pool[p, N_RESTARTING] >= f.pool[p, MAX_UNAVAILABLE]:
            return
        if f.replica[r, IS_MARKED] and f.replica[r, STATUS] == READY:
            f.replica[r, IS_MARKED], f.replica[r, IS_RESTARTING] = 0, 1
            f.pool[p, N_RESTARTING] += 1
            drain(engines, f, r, TO_RESTART)


@rare
def _send_again(engines: Engines, f: Elastic, i: int) -> None:
    """The replica died under the job: the router sends it elsewhere, a few times."""
    f.scalar[N_BROKEN] += 1
    fresh_start(engines, f, i)
    if f.job[i, N_SENT_AGAIN] >= f.scalar[MAX_RESENDS]:
        gave_up(f, i, LOST)
        return
    f.job[i, N_SENT_AGAIN] += 1
    f.scalar[N_RESENDS] += 1
    route(engines, f, i)


@rare
def _take_back(engines: Engines, f: Elastic, r: int) -> int:
    """The engine dies with all it held; the first of the jobs that were sent to it."""
    row, e = f.replica[r], held(one_engine(engines, r))
    spend(e, f.scalar[NOW])
    f.pool[row[POOL], POOL_OUT] -= e.scalar[OUTSTANDING]
    empty(e, f.scalar[NOW])
    look_at(f, r, NEVER)
    first = row[SENT_HEAD]
    row[SENT_HEAD] = row[SENT_TAIL] = NONE
    f.scalar[N_ABORTING] -= row[N_ABORTS]
    row[N_ABORTS] = 0
    return int(first)


@rare
def _send_all_again(engines: Engines, f: Elastic, first: int) -> None:
    i = first
    while i >= 0:
        following = f.job[i, NEXT_SENT]
        if f.job[i, IS_ABORTED]:
            time_out(engines, f, i)
        elif engines.request[i, END] < 0:
            _send_again(engines, f, i)
        i = following


@rare
def fail(engines: Engines, f: Elastic, r: int, lasts: int) -> None:
    """The replica is gone for so long, NONE: as drawn; what it had is computed again elsewhere."""
    if lasts < 0:
        lasts = _repair_lasts(f, r)
    first = _take_back(engines, f, r)
    _clear_clocks(f, r)
    _is_no_longer_restarting(f, r)
    f.replica[r, IS_MARKED] = 0
    f.replica[r, REPAIR_AT] = f.scalar[NOW] + lasts if lasts != NEVER else NEVER
    set_status(engines, f, r, FAILED)
    reschedule(f, r)
    _send_all_again(engines, f, first)
    roll_on(engines, f, f.replica[r, POOL])


@part
def _repair_lasts(f: Elastic, r: int) -> int:
    """How long a failed replica is away."""
    p = f.replica[r, POOL]
    if f.pool[p, IS_FIXED_REPAIR] or f.pool[p, MTTR] == NEVER:
        return int(f.pool[p, MTTR])
    return _drawn(f, r, REPAIR_DRAWS, f.pool[p, MTTR])


@rare
def take_notice(engines: Engines, f: Elastic, r: int) -> None:
    """The owner of the machine wants it back soon."""
    row = f.replica[r]
    row[NOTICE_AT] = NEVER
    f.scalar[N_RECLAIMS] += 1
    if row[STATUS] == STARTING:
        row[PURPOSE] = TO_RETURN
        _reclaimed(engines, f, r)
    elif row[STATUS] == DRAINING and row[PURPOSE] == TO_LEAVE:
        # It leaves anyway, with less time for it.
        row[KILL_AT] = min(row[KILL_AT], f.scalar[NOW] + f.pool[row[POOL], NOTICE])
        reschedule(f, r)
    else:
        _is_no_longer_restarting(f, r)
        drain(engines, f, r, TO_RETURN)
        roll_on(engines, f, row[POOL])


@part
def _reclaimed(engines: Engines, f: Elastic, r: int) -> None:
    fail(engines, f, r, f.pool[f.replica[r, POOL], AWAY])


@rare
def run_out(engines: Engines, f: Elastic, r: int) -> None:
    """The time to drain is over."""
    purpose = f.replica[r, PURPOSE]
    if purpose == TO_RETURN:
        _reclaimed(engines, f, r)
        return
    first = _take_back(engines, f, r)
    if purpose == TO_RESTART:
        start(engines, f, r, f.pool[f.replica[r, POOL], WARM])
    else:
        stop(engines, f, r)
    _send_all_again(engines, f, first)


@rare
def come_back(engines: Engines, f: Elastic, r: int) -> None:
    """The replica is repaired, and starts where it is still wanted."""
    p = f.replica[r, POOL]
    n_active = f.pool[p, COUNTS + READY] + f.pool[p, COUNTS + STARTING]
    if n_active < f.pool[p, DESIRED]:
        start(engines, f, r, f.pool[p, COLD])
    else:
        stop(engines, f, r)


@part
def is_drained(engines: Engines, f: Elastic, r: int) -> bool:
    """Nothing is left on a replica that waits for just that."""
    row = f.replica[r]
    is_waiting = row[STATUS] == DRAINING and row[PURPOSE] != TO_RETURN
    return bool(is_waiting and engines.scalar[r, OUTSTANDING] == 0)
