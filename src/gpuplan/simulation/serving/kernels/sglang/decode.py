"""A decode batch: all that run, less those whose last token is on the way, less the retracted."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.queue import sort_rows, wait
from gpuplan.simulation.serving.kernels.sglang.rows import (
    RUNNING,
    end_soon,
    has_pages,
    leave,
    make_room,
    n_made,
    run,
)

LENGTH_BITS = 32


@part
def merge(e: AnyEngine) -> None:
    """Prompts of the batch before that were computed to their end decode from now on."""
    s, o = e.scalar, e.own
    if o[sg.LAST] != sg.EXTEND:
        return
    n_rows, n_stay = e.flight[o[sg.BACK], sg.N_ROWS], 0
    carried = o[sg.CARRIED]
    was_empty = carried > 0 or s[st.N_DECODES] + o[sg.N_GONE] == 0
    # Decodes that were carried along come after the prompts.
    before, after = (st.MINUS_ONE, s[st.HEAD]) if carried > 0 else (s[st.TAIL], st.MINUS_ONE)
    for at in range(n_rows):
        v = e.batch[o[sg.BACK], at, sg.ROW_SLOT]
        if e.slot[v, st.ID] == e.batch[o[sg.BACK], at, sg.ROW_ID] and v != o[sg.CHUNKED]:
            _run_next(e, v, before, after)
            before = v
            n_stay += 1
    if n_stay < n_rows or (was_empty and n_stay + carried > 0) or (carried and o[sg.N_GONE] > 0):
        o[sg.FULL] = 0
    if carried > 0:
        o[sg.N_GONE] = o[sg.GONE_LEFT] = 0
        _number(e)
    o[sg.LAST], o[sg.CARRIED] = sg.DECODE, 0


@part
def _run_next(e: AnyEngine, v: int, before: int, after: int) -> None:
    run(e, v, before, after)
    e.own[sg.LAST_ORDER] += 1
    e.slot[v, sg.ORDER] = e.own[sg.LAST_ORDER]


@rare
def _number(e: AnyEngine) -> None:
    """Places of those that decode, in their order."""
    v = e.scalar[st.HEAD]
    while v >= 0:
        e.own[sg.LAST_ORDER] += 1
        e.slot[v, sg.ORDER] = e.own[sg.LAST_ORDER]
        v = e.slot[v, st.AFTER]


@part
def drop_ending(e: AnyEngine) -> int:
    """Those whose last token is on the way, and who end by length, decode no more; how many."""
    s, n = e.scalar, 0
    if e.rule[sg.KNOWS_ENDS] == 0 or e.own[sg.N_PENDING] == 0:
        return n
    v = e.ring[s[st.STEP] & (e.ring.shape[0] - 1)]
    while v >= 0:
        i = e.slot[v, st.ID]
        if (
            e.slot[v, sg.IS_RUNNING] == RUNNING
            and e.requested[i, sg.ASKED] <= e.request[i, st.OUTPUT]
        ):
            end_soon(e, v)
            n += 1
        v = e.slot[v, st.PEER_AFTER]
    return n


@part
def _sort_running(e: AnyEngine) -> tuple[int, int]:
    """Those who run by tokens made, most first, then by prompt; where they stand, how many."""
    v, n = e.scalar[st.HEAD], 0
    while v >= 0:
        made = n_made(e, v)
        key = e.request[e.slot[v, st.ID], st.INPUT] - (made << LENGTH_BITS)
        e.scratch[0, n, 0], e.scratch[0, n, 1] = key, v
        n, v = n + 1, e.slot[v, st.AFTER]
    here, before = sort_rows(e.scratch, n), st.MINUS_ONE
    for at in range(n):
        v = e.scratch[here, at, 1]
        e.slot[v, st.BEFORE], e.slot[v, st.AFTER] = before, st.NONE
        if before >= 0:
            e.slot[before, st.AFTER] = v
        else:
            e.scalar[st.HEAD] = v
        before = v
    e.scalar[st.TAIL] = before
    return here, n


@rare
def _retract(e: AnyEngine) -> None:
    """Whoever has made fewest tokens waits again, last, until the others have their pages."""
    s, (here, n), is_first = e.scalar, _sort_running(e), True
    while n > 1 and (is_first or not has_pages(e)):
        n, is_first = n - 1, False
        v = e.scratch[here, n, 1]
        i = e.slot[v, st.ID]
        made = n_made(e, v)
        leave(e, v)
        e.request[i, st.MADE] = made
        e.request[i, st.PREEMPTED] += 1
        s[st.N_PREEMPTIONS] += 1
        make_room(e, n * sg.RETRACT_STEPS)
        wait(e, i)
    _number(e)
    made, requested = 0, 0
    for at in range(n):
        v = e.scratch[here, at, 1]
        made += n_made(e, v)
        requested += e.requested[e.slot[v, st.ID], sg.ASKED]
    e.real[sg.RATIO] = min(1.0, (made + sg.RETRACT_STEPS * n) / (requested + 1))
    e.own[sg.DECAYS] = 0


@part
def draw_decode(e: AnyEngine) -> bool:
    """Draw up a decode batch; False where there is none."""
    s, o = e.scalar, e.own
    n_before = s[st.N_DECODES] + o[sg.N_GONE]
    if n_before == 0:
        return False
    n_ending = drop_ending(e)
    o[sg.N_GONE] = o[sg.GONE_LEFT] = 0
    if s[st.N_DECODES] == 0:
        o[sg.FULL] = 0
        return False
    if has_pages(e):
        o[sg.DECAYS] += 1
    elif n_ending > 0:
        o[sg.FULL] = 0
        return False
    else:
        _retract(far(e))
    if s[st.N_DECODES] < n_before:
        o[sg.FULL] = 0
    return True
