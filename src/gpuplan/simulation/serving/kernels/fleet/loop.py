"""A fleet in time: engines, a router, clients and whoever starts, stops and breaks replicas.

At any instant, what ends in the engines has left first; then clients that have timed out are
noticed, replicas that have drained leave, and what waits is sent; then replicas change, clocks
tick, clients time out, and jobs come, in this order. No step begins at an instant before all of it.
"""

from gpuplan.simulation.serving.kernels.drive import advance
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import lodge_all, one_engine
from gpuplan.simulation.serving.kernels.engine.state import Engines
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.abandonment import remove_aborted, time_out
from gpuplan.simulation.serving.kernels.fleet.clients import (
    come_again,
    drop_late,
    list_late,
    next_delayed,
    next_late,
    pop_delayed,
    unhold,
    wait_until,
)
from gpuplan.simulation.serving.kernels.fleet.lifecycle import is_drained
from gpuplan.simulation.serving.kernels.fleet.router import route, send_queued
from gpuplan.simulation.serving.kernels.fleet.state import (
    Elastic,
    is_watched,
    leaf_replica,
    look_at,
    next_control,
    note_report,
    show_load,
)
from gpuplan.simulation.serving.kernels.fleet.trees import first_least
from gpuplan.simulation.serving.kernels.jit.compiled import far, held, kernel, lodged, part, rare

OVER, CONTROL, DRAINED = range(3)


@part
def _is_watching(f: Elastic) -> bool:
    """What any engine reports must be heard at once, not only when the next job comes."""
    return bool(f.scalar[el.N_HELD] > 0 or f.scalar[el.IS_FOLLOWING])


@part
def _settle(engines: Engines, f: Elastic, until: int) -> None:
    """Every engine has reported all up to this instant."""
    while f.event[1] <= until:
        r = leaf_replica(f, first_least(f.event))
        before = engines.scalar[r, st.OUTSTANDING]
        reported = advance(lodged(one_engine(engines, r), engines.home[r]), until)
        # A step that would begin now is seen only by looking later than now.
        look_at(f, r, reported if reported > until else until + 1)
        after = engines.scalar[r, st.OUTSTANDING]
        if after != before:
            f.pool[f.replica[r, el.POOL], el.POOL_OUT] += after - before
            show_load(engines, f, r)
        if is_watched(f, r) or (after != before and f.scalar[el.IS_FOLLOWING]):
            note_report(f, r)


@part
def _transfer_kv(engines: Engines, f: Elastic, i: int, r: int) -> None:
    """Prefill is over: the KV cache is transferred to a decode replica, one request at a time.

    As vLLM's KV connectors do: the decode replica computes the last token of the prompt itself, and
    the first token that a client sees is its own.
    """
    p, row = f.replica[r, el.POOL], engines.request[i]
    begins = max(f.scalar[el.NOW], f.replica[r, el.LINK_FREE])
    ends = begins + int(row[st.INPUT] * f.real[p, el.TICKS_PER_TOKEN])
    f.replica[r, el.LINK_FREE] = ends
    row[st.OUTPUT], row[st.MADE], row[st.GIVEN] = f.job[i, el.LENGTH], 0, row[st.INPUT] - 1
    row[st.FIRST] = row[st.END] = st.NONE
    f.job[i, el.STAGE] = 1
    f.scalar[el.N_KV_TRANSFERS] += 1
    wait_until(far(f), i, ends + f.pool[p, el.TRANSFER_LATENCY])


@part
def _end(engines: Engines, f: Elastic, i: int, r: int) -> None:
    if f.job[i, el.STAGE] == 0 and engines.request[i, st.OUTPUT] < f.job[i, el.LENGTH]:
        _transfer_kv(engines, f, i, r)
        return
    f.job[i, el.STATE], f.job[i, el.ENDED_AT] = el.DONE, f.scalar[el.NOW]
    drop_late(f, i)
    come_again(f, i)


@rare
def _follow(engines: Engines, f: Elastic, r: int) -> None:
    """Responses that ended now: their clients think, or the decode stage goes on."""
    retained, i = st.NONE, f.replica[r, el.SENT_HEAD]
    f.replica[r, el.SENT_HEAD] = st.NONE
    while i >= 0:
        following = f.job[i, el.NEXT_SENT]
        if engines.request[i, st.END] >= 0:
            _end(engines, f, i, r)
        else:
            f.job[i, el.NEXT_SENT] = st.NONE
            if retained >= 0:
                f.job[retained, el.NEXT_SENT] = i
            else:
                f.replica[r, el.SENT_HEAD] = i
            retained = i
        i = following
    f.replica[r, el.SENT_TAIL] = retained


@part
def _look(engines: Engines, f: Elastic) -> bool:
    """What engines report has its consequences at once; True where a replica has drained."""
    s, has_drained = f.scalar, False
    while s[el.REPORT_HEAD] >= 0:
        r = s[el.REPORT_HEAD]
        s[el.REPORT_HEAD], f.replica[r, el.HAS_REPORTED] = f.replica[r, el.NEXT_REPORTED], 0
        if f.replica[r, el.N_ABORTS] > 0:
            remove_aborted(far(engines), far(f), r)
        if s[el.IS_FOLLOWING]:
            _follow(far(engines), far(f), r)
        has_drained = has_drained or is_drained(engines, f, r)
    if s[el.N_HELD] > 0:
        for p in range(f.pool.shape[0]):
            send_queued(far(engines), far(f), p)
    return has_drained


@rare
def _abandon(engines: Engines, f: Elastic) -> None:
    """The first client on the list times out and abandons its request."""
    i = f.scalar[el.LATE_HEAD]
    row = f.job[i]
    drop_late(f, i)
    if row[el.STATE] == el.SERVED:
        has_first = f.scalar[el.IS_FIRST_TOKEN] and engines.request[i, st.FIRST] >= 0
        if not has_first:
            r = row[el.ON]
            row[el.IS_ABORTED] = 1
            f.replica[r, el.N_ABORTS] += 1
            f.scalar[el.N_ABORTING] += 1
            engines.scalar[r, st.STOP] = min(engines.scalar[r, st.STOP], f.scalar[el.NOW])
            look_at(f, r, f.scalar[el.NOW])
    elif row[el.STATE] == el.WAITING:
        unhold(f, i)
        time_out(engines, f, i)
    elif row[el.STATE] == el.DELAYED:
        row[el.DUE] = el.NEVER
        time_out(engines, f, i)


@part
def _come(engines: Engines, f: Elastic, i: int) -> None:
    """A job comes: for the first time, again, or for its second stage."""
    row, is_requested = f.job[i], f.job[i, el.STAGE] == 0
    if is_requested:
        row[el.ASKED_AT] = f.scalar[el.NOW]
        if row[el.ORIGIN] < 0:
            row[el.ORIGIN] = f.scalar[el.NOW]
    route(engines, f, i)
    # Who was taken begins to wait.
    if is_requested and row[el.STATE] in (el.SERVED, el.WAITING):
        list_late(f, i)


@part
def _next_fresh(f: Elastic) -> int:
    at = f.scalar[el.NEXT_FRESH]
    return int(f.job[f.fresh[at], el.ORIGIN]) if at < f.fresh.shape[0] else el.NEVER


@part
def _is_over(f: Elastic) -> bool:
    s = f.scalar
    if s[el.NEXT_FRESH] < f.fresh.shape[0] or s[el.N_DELAYED] > 0 or s[el.N_HELD] > 0:
        return False
    n_out = 0
    for p in range(f.pool.shape[0]):
        n_out += f.pool[p, el.POOL_OUT]
    return bool(n_out == 0)


@part
def _happen(engines: Engines, f: Elastic) -> None:
    """The first of what is due now; nothing where only an engine had something to report."""
    now = f.scalar[el.NOW]
    # A client that would time out now may just have got its response.
    if next_late(engines, f) <= now:
        _abandon(far(engines), far(f))
        return
    i = st.NONE
    if next_delayed(f) <= now:
        i = pop_delayed(far(f))
    elif _next_fresh(f) == now:
        i = f.fresh[f.scalar[el.NEXT_FRESH]]
        f.scalar[el.NEXT_FRESH] += 1
    if i >= 0:
        _come(engines, f, i)


@kernel
def run_elastic(engines: Engines, f: Elastic) -> int:
    """OVER when nothing is left to happen; else what the caller has to do before it goes on."""
    engines, f = held(engines), held(f)
    lodge_all(engines)
    s = f.scalar
    while True:
        late, delayed, control = next_late(engines, f), next_delayed(f), next_control(f)
        instant = min(control, late, delayed, _next_fresh(f))
        if instant >= s[el.LAST]:
            # Nothing but the engines goes on; they run to their end.
            if (
                s[el.NEXT_FRESH] < f.fresh.shape[0]
                or delayed < el.NEVER
                or f.event[1] >= s[el.LAST]
            ):
                return OVER
            instant = s[el.LAST]
        instant = min(instant, f.event[1] if _is_watching(f) else f.watched[1])
        _settle(engines, f, instant)
        s[el.NOW] = max(s[el.NOW], instant)
        if (s[el.REPORT_HEAD] >= 0 or s[el.N_HELD] > 0) and _look(engines, f):
            return DRAINED
        if _is_over(f):
            return OVER
        if control == s[el.NOW]:
            return CONTROL
        _happen(engines, f)
