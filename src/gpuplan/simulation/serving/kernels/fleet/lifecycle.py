"""What becomes of replicas: they start, serve, drain, fail, are taken away, and come back."""

from gpuplan.simulation.serving.kernels.drive import empty, spend
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import one_engine
from gpuplan.simulation.serving.kernels.engine.state import Engines
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.abandonment import fresh_start, time_out
from gpuplan.simulation.serving.kernels.fleet.clients import gave_up
from gpuplan.simulation.serving.kernels.fleet.router import route, send_queued
from gpuplan.simulation.serving.kernels.fleet.state import (
    Elastic,
    look_at,
    next_report,
    reschedule,
    show_load,
    write_log,
)
from gpuplan.simulation.serving.kernels.jit.compiled import lodged, part, rare

FAR = float(1 << 61)  # later than any run


@part
def _drawn(f: Elastic, r: int, which: int, mean: int) -> int:
    """A drawn duration; a replica has its own row of draws, whatever the others do."""
    column = el.DREW_FAIL + which
    at = (r * 7919 + f.replica[r, column]) % f.draw.shape[1]
    f.replica[r, column] += 1
    return int(min(f.draw[which, at] * mean, FAR)) + 1


@part
def _list_ready(f: Elastic, p: int) -> None:
    first, n = f.pool[p, el.FIRST_REPLICA], 0
    for r in range(first, first + f.pool[p, el.N_SLOTS]):
        if f.replica[r, el.STATUS] == el.READY:
            f.ready[first + n] = r
            n += 1


@rare
def set_status(engines: Engines, f: Elastic, r: int, status: int) -> None:
    """The replica is in this status from now on."""
    row, now = f.replica[r], f.scalar[el.NOW]
    p, old, lasted = row[el.POOL], row[el.STATUS], now - row[el.SINCE]
    if old == el.READY:
        row[el.READY_TIME] += lasted
    elif old == el.STARTING:
        row[el.STARTING_TIME] += lasted
    elif old == el.FAILED:
        row[el.FAILED_TIME] += lasted
    f.scalar[el.N_DRAINING] += int(status == el.DRAINING) - int(old == el.DRAINING)
    f.pool[p, el.COUNTS + old] -= 1
    f.pool[p, el.COUNTS + status] += 1
    row[el.STATUS], row[el.SINCE] = status, now
    look_at(f, r, next_report(f, r))
    _list_ready(f, p)
    show_load(engines, f, r)
    write_log(f, p)
    is_paid = status != el.OFF and (status != el.FAILED or f.pool[p, el.IS_FAILED_PAID] == 1)
    if row[el.IS_PAID] and not is_paid:
        row[el.PAID] += now - row[el.PAID_SINCE]
    elif is_paid and not row[el.IS_PAID]:
        row[el.PAID_SINCE] = now
    row[el.IS_PAID] = int(is_paid)


@part
def _clear_clocks(f: Elastic, r: int) -> None:
    row = f.replica[r]
    row[el.READY_AT] = row[el.FAIL_AT] = row[el.NOTICE_AT] = row[el.KILL_AT] = row[el.REPAIR_AT] = (
        el.NEVER
    )


@rare
def start(engines: Engines, f: Elastic, r: int, lasts: int) -> None:
    """A fresh replica starts; from now on it may fail or be taken away."""
    row, now = f.replica[r], f.scalar[el.NOW]
    p = row[el.POOL]
    _clear_clocks(f, r)
    empty(lodged(one_engine(engines, r), engines.home[r]), now)
    look_at(f, r, el.NEVER)
    row[el.N_STARTS] += 1
    row[el.IS_MARKED] = 0
    row[el.READY_AT] = now + lasts
    if f.pool[p, el.MTBF] != el.NEVER:
        row[el.FAIL_AT] = now + _drawn(f, r, el.FAIL_DRAWS, f.pool[p, el.MTBF])
    if f.pool[p, el.MTBN] != el.NEVER:
        row[el.NOTICE_AT] = now + _drawn(f, r, el.NOTICE_DRAWS, f.pool[p, el.MTBN])
    set_status(engines, f, r, el.STARTING)
    reschedule(f, r)


@part
def _is_no_longer_restarting(f: Elastic, r: int) -> None:
    if f.replica[r, el.IS_RESTARTING]:
        f.replica[r, el.IS_RESTARTING] = 0
        f.pool[f.replica[r, el.POOL], el.N_RESTARTING] -= 1


@rare
def stop(engines: Engines, f: Elastic, r: int) -> None:
    """The replica is given up; nobody pays for it from now on."""
    _clear_clocks(f, r)
    _is_no_longer_restarting(f, r)
    f.replica[r, el.IS_MARKED] = 0
    look_at(f, r, el.NEVER)
    set_status(engines, f, r, el.OFF)
    reschedule(f, r)


@rare
def become_ready(engines: Engines, f: Elastic, r: int) -> None:
    """The replica takes jobs, those that wait first."""
    f.replica[r, el.READY_AT] = el.NEVER
    _is_no_longer_restarting(f, r)
    set_status(engines, f, r, el.READY)
    reschedule(f, r)
    send_queued(engines, f, f.replica[r, el.POOL])
    roll_on(engines, f, f.replica[r, el.POOL])


@rare
def drained(engines: Engines, f: Elastic, r: int) -> None:
    """Nothing is left on a replica that takes nothing new."""
    purpose = f.replica[r, el.PURPOSE]
    if purpose == el.TO_LEAVE:
        stop(engines, f, r)
    elif purpose == el.TO_RESTART:
        start(engines, f, r, f.pool[f.replica[r, el.POOL], el.WARM])


@rare
def drain(engines: Engines, f: Elastic, r: int, purpose: int) -> None:
    """The replica finishes what it has, within the time that it is given."""
    row = f.replica[r]
    row[el.PURPOSE] = purpose
    lasts = f.pool[row[el.POOL], el.NOTICE if purpose == el.TO_RETURN else el.GRACE]
    row[el.KILL_AT] = (
        min(row[el.KILL_AT], f.scalar[el.NOW] + lasts) if lasts != el.NEVER else row[el.KILL_AT]
    )
    set_status(engines, f, r, el.DRAINING)
    reschedule(f, r)
    if engines.scalar[r, st.OUTSTANDING] == 0:
        drained(engines, f, r)


@rare
def roll_on(engines: Engines, f: Elastic, p: int) -> None:
    """The next marked replicas restart, as many at a time as may be missing."""
    from_, n = f.pool[p, el.FIRST_REPLICA], f.pool[p, el.N_SLOTS]
    for r in range(from_, from_ + n):
        if f.pool[p, el.N_RESTARTING] >= f.pool[p, el.MAX_UNAVAILABLE]:
            return
        if f.replica[r, el.IS_MARKED] and f.replica[r, el.STATUS] == el.READY:
            f.replica[r, el.IS_MARKED], f.replica[r, el.IS_RESTARTING] = 0, 1
            f.pool[p, el.N_RESTARTING] += 1
            drain(engines, f, r, el.TO_RESTART)


@rare
def _send_again(engines: Engines, f: Elastic, i: int) -> None:
    """The replica died under the job: the router sends it elsewhere, a few times."""
    f.scalar[el.N_BROKEN] += 1
    fresh_start(engines, f, i)
    if f.job[i, el.N_SENT_AGAIN] >= f.scalar[el.MAX_RESENDS]:
        gave_up(f, i, el.LOST)
        return
    f.job[i, el.N_SENT_AGAIN] += 1
    f.scalar[el.N_RESENDS] += 1
    route(engines, f, i)


@rare
def _take_back(engines: Engines, f: Elastic, r: int) -> int:
    """The engine dies with all it held; the first of the jobs that were sent to it."""
    row, e = f.replica[r], lodged(one_engine(engines, r), engines.home[r])
    spend(e, f.scalar[el.NOW])
    f.pool[row[el.POOL], el.POOL_OUT] -= e.scalar[st.OUTSTANDING]
    empty(e, f.scalar[el.NOW])
    look_at(f, r, el.NEVER)
    first = row[el.SENT_HEAD]
    row[el.SENT_HEAD] = row[el.SENT_TAIL] = st.NONE
    f.scalar[el.N_ABORTING] -= row[el.N_ABORTS]
    row[el.N_ABORTS] = 0
    return int(first)


@rare
def _send_all_again(engines: Engines, f: Elastic, first: int) -> None:
    i = first
    while i >= 0:
        following = f.job[i, el.NEXT_SENT]
        if f.job[i, el.IS_ABORTED]:
            time_out(engines, f, i)
        elif engines.request[i, st.END] < 0:
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
    f.replica[r, el.IS_MARKED] = 0
    f.replica[r, el.REPAIR_AT] = f.scalar[el.NOW] + lasts if lasts != el.NEVER else el.NEVER
    set_status(engines, f, r, el.FAILED)
    reschedule(f, r)
    _send_all_again(engines, f, first)
    roll_on(engines, f, f.replica[r, el.POOL])


@part
def _repair_lasts(f: Elastic, r: int) -> int:
    """How long a failed replica is away."""
    p = f.replica[r, el.POOL]
    if f.pool[p, el.IS_FIXED_REPAIR] or f.pool[p, el.MTTR] == el.NEVER:
        return int(f.pool[p, el.MTTR])
    return _drawn(f, r, el.REPAIR_DRAWS, f.pool[p, el.MTTR])


@rare
def take_notice(engines: Engines, f: Elastic, r: int) -> None:
    """The provider of the spot instance will reclaim it soon."""
    row = f.replica[r]
    row[el.NOTICE_AT] = el.NEVER
    f.scalar[el.N_RECLAIMS] += 1
    if row[el.STATUS] == el.STARTING:
        row[el.PURPOSE] = el.TO_RETURN
        _reclaimed(engines, f, r)
    elif row[el.STATUS] == el.DRAINING and row[el.PURPOSE] == el.TO_LEAVE:
        # It leaves anyway, with less time for it.
        row[el.KILL_AT] = min(row[el.KILL_AT], f.scalar[el.NOW] + f.pool[row[el.POOL], el.NOTICE])
        reschedule(f, r)
    else:
        _is_no_longer_restarting(f, r)
        drain(engines, f, r, el.TO_RETURN)
        roll_on(engines, f, row[el.POOL])


@part
def _reclaimed(engines: Engines, f: Elastic, r: int) -> None:
    fail(engines, f, r, f.pool[f.replica[r, el.POOL], el.AWAY])


@rare
def run_out(engines: Engines, f: Elastic, r: int) -> None:
    """The time to drain is over."""
    purpose = f.replica[r, el.PURPOSE]
    if purpose == el.TO_RETURN:
        _reclaimed(engines, f, r)
        return
    first = _take_back(engines, f, r)
    if purpose == el.TO_RESTART:
        start(engines, f, r, f.pool[f.replica[r, el.POOL], el.WARM])
    else:
        stop(engines, f, r)
    _send_all_again(engines, f, first)


@rare
def come_back(engines: Engines, f: Elastic, r: int) -> None:
    """The replica is repaired, and starts where it is still wanted."""
    p = f.replica[r, el.POOL]
    n_active = f.pool[p, el.COUNTS + el.READY] + f.pool[p, el.COUNTS + el.STARTING]
    if n_active < f.pool[p, el.DESIRED]:
        start(engines, f, r, f.pool[p, el.COLD])
    else:
        stop(engines, f, r)


@part
def is_drained(engines: Engines, f: Elastic, r: int) -> bool:
    """Nothing is left on a replica that waits for just that."""
    row = f.replica[r]
    is_waiting = row[el.STATUS] == el.DRAINING and row[el.PURPOSE] != el.TO_RETURN
    return bool(is_waiting and engines.scalar[r, st.OUTSTANDING] == 0)
