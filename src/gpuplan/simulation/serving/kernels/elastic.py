"""A fleet in time: engines, a router, clients and whoever starts, stops and breaks replicas.

At any instant, what ends in the engines has left first; then clients that have lost patience are
noticed, replicas that have drained leave, and what waits is sent; then replicas change, clocks
tick, patience ends, and jobs come, in this order. No step begins at an instant before all of it.
"""

from gpuplan.simulation.serving.kernels.autoscale import roll, tick
from gpuplan.simulation.serving.kernels.clients import (
    come_again,
    drop_late,
    next_delayed,
    next_late,
    pop_delayed,
    unhold,
    wait_until,
)
from gpuplan.simulation.serving.kernels.compiled import kernel, seldom
from gpuplan.simulation.serving.kernels.elastic_state import (
    DELAYED,
    DONE,
    DRAINING,
    DUE,
    ENDED_AT,
    FAIL_AT,
    FAILED,
    HAND_OVER,
    HAS_TOLD,
    IS_ABORTED,
    IS_FIRST_TOKEN,
    IS_FOLLOWING,
    LAST,
    LATE_HEAD,
    LENGTH,
    LINK_FREE,
    N_ABORTING,
    N_ABORTS,
    N_DELAYED,
    N_DRAINING,
    N_FAILURES,
    N_HANDOVERS,
    N_HELD,
    N_LOG,
    NEVER,
    NEXT_FRESH,
    NEXT_OUTAGE,
    NEXT_SENT,
    NOTICE_AT,
    NOW,
    OFF,
    ON,
    ORIGIN,
    POOL,
    POOL_OUT,
    READY_AT,
    REPAIR_AT,
    ROLL_AT,
    SENT_HEAD,
    SENT_TAIL,
    SERVED,
    STAGE,
    STATE,
    STATUS,
    TICK_AT,
    TICKS_PER_TOKEN,
    WAITING,
    Elastic,
    leaf_replica,
    look_at,
    next_control,
    show_load,
)
from gpuplan.simulation.serving.kernels.engine import advance
from gpuplan.simulation.serving.kernels.lifecycle import (
    become_ready,
    come_back,
    drained,
    fail,
    remove_aborted,
    repair_lasts,
    run_out,
    take_notice,
    time_out,
)
from gpuplan.simulation.serving.kernels.router import ask, route, send_held
from gpuplan.simulation.serving.kernels.state import (
    END,
    FIRST,
    GIVEN,
    INPUT,
    MADE,
    NONE,
    OUTPUT,
    OUTSTANDING,
    STOP,
    Engines,
    one_engine,
)
from gpuplan.simulation.serving.kernels.trees import first_least

OVER, MORE_LOG = range(2)


@kernel
def _is_watching(f: Elastic) -> bool:
    """What an engine tells must be heard at once, not only when the next job comes."""
    s = f.scalar
    return bool(s[N_HELD] > 0 or s[N_DRAINING] > 0 or s[N_ABORTING] > 0 or s[IS_FOLLOWING])


@kernel
def _settle(engines: Engines, f: Elastic, until: int) -> None:
    """Every engine has told all up to this instant."""
    while f.event[1] <= until:
        r = leaf_replica(f, first_least(f.event))
        before = engines.scalar[r, OUTSTANDING]
        told = advance(one_engine(engines, r), until)
        # A step that would begin now is seen only by looking later than now.
        look_at(f, r, told if told > until else until + 1)
        after = engines.scalar[r, OUTSTANDING]
        if after != before:
            f.pool[f.replica[r, POOL], POOL_OUT] += after - before
            f.replica[r, HAS_TOLD] = 1
            show_load(engines, f, r)


@kernel
def _hand_over(engines: Engines, f: Elastic, i: int, r: int) -> None:
    """The prompt is read: its keys and values travel to who writes the answer, one at a time."""
    p, row = f.replica[r, POOL], engines.request[i]
    begins = max(f.scalar[NOW], f.replica[r, LINK_FREE])
    ends = begins + int(row[INPUT] * f.real[p, TICKS_PER_TOKEN])
    f.replica[r, LINK_FREE] = ends
    row[OUTPUT], row[MADE], row[GIVEN], row[END] = f.job[i, LENGTH], 1, row[INPUT], NONE
    f.job[i, STAGE] = 1
    f.scalar[N_HANDOVERS] += 1
    wait_until(f, i, ends + f.pool[p, HAND_OVER])


@kernel
def _end(engines: Engines, f: Elastic, i: int, r: int) -> None:
    if f.job[i, STAGE] == 0 and engines.request[i, OUTPUT] < f.job[i, LENGTH]:
        _hand_over(engines, f, i, r)
        return
    f.job[i, STATE], f.job[i, ENDED_AT] = DONE, f.scalar[NOW]
    drop_late(f, i)
    come_again(f, i)


@seldom
def _follow(engines: Engines, f: Elastic, r: int) -> None:
    """Answers that ended now: their clients think, or another stage goes on."""
    kept, i = NONE, f.replica[r, SENT_HEAD]
    f.replica[r, SENT_HEAD], f.replica[r, HAS_TOLD] = NONE, 0
    while i >= 0:
        following = f.job[i, NEXT_SENT]
        if engines.request[i, END] >= 0:
            _end(engines, f, i, r)
        else:
            f.job[i, NEXT_SENT] = NONE
            if kept >= 0:
                f.job[kept, NEXT_SENT] = i
            else:
                f.replica[r, SENT_HEAD] = i
            kept = i
        i = following
    f.replica[r, SENT_TAIL] = kept


@seldom
def _look_at_replica(engines: Engines, f: Elastic, r: int) -> None:
    row = f.replica[r]
    if row[N_ABORTS] > 0:
        remove_aborted(engines, f, r)
    if row[HAS_TOLD] and f.scalar[IS_FOLLOWING]:
        _follow(engines, f, r)
    if row[STATUS] == DRAINING and engines.scalar[r, OUTSTANDING] == 0:
        drained(engines, f, r)


@seldom
def _look(engines: Engines, f: Elastic) -> None:
    """What engines have told has its consequences before anything else happens."""
    s = f.scalar
    if s[N_ABORTING] > 0 or s[N_DRAINING] > 0 or s[IS_FOLLOWING]:
        for r in range(f.replica.shape[0]):
            _look_at_replica(engines, f, r)
    if s[N_HELD] > 0:
        for p in range(f.pool.shape[0]):
            send_held(engines, f, p)


@seldom
def _change(engines: Engines, f: Elastic, r: int) -> None:
    """The replica's own clock has come: the first of what it has in store."""
    row, now = f.replica[r], f.scalar[NOW]
    if row[READY_AT] == now:
        become_ready(engines, f, r)
    elif row[REPAIR_AT] == now:
        come_back(engines, f, r)
    elif row[FAIL_AT] == now:
        f.scalar[N_FAILURES] += 1
        fail(engines, f, r, repair_lasts(f, r))
    elif row[NOTICE_AT] == now:
        take_notice(engines, f, r)
    else:
        run_out(engines, f, r)


@seldom
def _break(engines: Engines, f: Elastic) -> None:
    """The next given outage; a replica that is not there cannot fail."""
    row = f.outage[f.scalar[NEXT_OUTAGE]]
    f.scalar[NEXT_OUTAGE] += 1
    status = f.replica[row[1], STATUS]
    if status not in (OFF, FAILED):
        f.scalar[N_FAILURES] += 1
        fail(engines, f, row[1], row[2])


@seldom
def _control(engines: Engines, f: Elastic) -> None:
    """One change of the fleet itself: a replica's, a given outage, a pool's clock."""
    now = f.scalar[NOW]
    if f.due[1] == now:
        _change(engines, f, leaf_replica(f, first_least(f.due)))
        return
    n_outage = f.scalar[NEXT_OUTAGE]
    if n_outage < f.outage.shape[0] and f.outage[n_outage, 0] == now:
        _break(engines, f)
        return
    for p in range(f.pool.shape[0]):
        if f.pool[p, ROLL_AT] == now:
            roll(engines, f, p)
            return
        if f.pool[p, TICK_AT] == now:
            tick(engines, f, p)
            return


@seldom
def _lose_patience(engines: Engines, f: Elastic) -> None:
    """The first client on the list has waited long enough."""
    i = f.scalar[LATE_HEAD]
    row = f.job[i]
    drop_late(f, i)
    if row[STATE] == SERVED:
        has_first = f.scalar[IS_FIRST_TOKEN] and engines.request[i, FIRST] >= 0
        if not has_first:
            r = row[ON]
            row[IS_ABORTED] = 1
            f.replica[r, N_ABORTS] += 1
            f.scalar[N_ABORTING] += 1
            engines.scalar[r, STOP] = min(engines.scalar[r, STOP], f.scalar[NOW])
            look_at(f, r, f.scalar[NOW])
    elif row[STATE] == WAITING:
        unhold(f, i)
        time_out(engines, f, i)
    elif row[STATE] == DELAYED:
        row[DUE] = NEVER
        time_out(engines, f, i)


@kernel
def _come(engines: Engines, f: Elastic, i: int) -> None:
    """A job comes: for the first time, again, or for its second stage."""
    if f.job[i, STAGE] == 1:
        route(engines, f, i)
        return
    if f.job[i, ORIGIN] < 0:
        f.job[i, ORIGIN] = f.scalar[NOW]
    ask(engines, f, i)


@kernel
def _next_fresh(f: Elastic) -> int:
    at = f.scalar[NEXT_FRESH]
    return int(f.job[f.fresh[at], ORIGIN]) if at < f.fresh.shape[0] else NEVER


@kernel
def _is_over(f: Elastic) -> bool:
    s = f.scalar
    if s[NEXT_FRESH] < f.fresh.shape[0] or s[N_DELAYED] > 0 or s[N_HELD] > 0:
        return False
    n_out = 0
    for p in range(f.pool.shape[0]):
        n_out += f.pool[p, POOL_OUT]
    return bool(n_out == 0)


@kernel
def _happen(engines: Engines, f: Elastic, late: int, delayed: int) -> None:
    """The first of what is due now; nothing where only an engine had something to tell."""
    now = f.scalar[NOW]
    if next_control(f) == now:
        _control(engines, f)
    elif late == now:
        _lose_patience(engines, f)
    elif delayed == now:
        i = pop_delayed(f)
        if i >= 0:
            _come(engines, f, i)
    elif _next_fresh(f) == now:
        f.scalar[NEXT_FRESH] += 1
        _come(engines, f, f.fresh[f.scalar[NEXT_FRESH] - 1])


@kernel
def run_elastic(engines: Engines, f: Elastic) -> int:
    """OVER when nothing is left to happen; MORE_LOG where the log needs room to go on."""
    s, n_spare = f.scalar, 4 * f.replica.shape[0] + 16
    while s[N_LOG] + n_spare <= f.log.shape[0]:
        late, delayed = next_late(engines, f), next_delayed(f)
        instant = min(next_control(f), late, delayed, _next_fresh(f))
        if instant >= s[LAST]:
            # Nothing but the engines goes on; they run to their end.
            if s[NEXT_FRESH] < f.fresh.shape[0] or delayed < NEVER or f.event[1] >= s[LAST]:
                return OVER
            instant = s[LAST]
        if _is_watching(f):
            instant = min(instant, f.event[1])
        _settle(engines, f, instant)
        s[NOW] = max(s[NOW], instant)
        if _is_watching(f):
            _look(engines, f)
        if _is_over(f):
            return OVER
        _happen(engines, f, late, delayed)
    return MORE_LOG
