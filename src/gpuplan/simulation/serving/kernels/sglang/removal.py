"""Requests leave SGLang's engine before their end: the client has gone, or the engine has died."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.rows import leave


@part
def _slot_of(e: AnyEngine, i: int) -> int:
    """The request's slot; NONE where it has none."""
    for v in range(e.slot.shape[0]):
        if e.slot[v, st.ID] == i:
            return v
    return st.NONE


@part
def _leave_queue(e: AnyEngine, i: int) -> None:
    """The request no longer waits, among those who have come or those who are to come."""
    s, o = e.scalar, e.own
    for which in range(2):
        before, at = st.NONE, s[st.READY] if which == 0 else s[st.WAIT_HEAD]
        n = o[sg.N_READY] if which == 0 else st.FOREVER
        while at >= 0 and at != i and n > 0:
            before, at, n = at, e.request[at, st.NEXT_WAITING], n - 1
        if at != i or n <= 0:
            continue
        after = e.request[i, st.NEXT_WAITING]
        if before >= 0:
            e.request[before, st.NEXT_WAITING] = after
        elif which == 0:
            s[st.READY] = after
        else:
            s[st.WAIT_HEAD] = after
        if which == 0:
            o[sg.N_READY] -= 1
            if after < 0:
                o[sg.READY_TAIL] = before
        elif after < 0:
            s[st.WAIT_TAIL] = before
        return


@rare
def abort(e: AnyEngine, i: int) -> None:
    """The request leaves between two decisions, wherever it is; whoever waits may now fit."""
    v = _slot_of(e, i)
    if v >= 0:
        leave(e, v)
    else:
        _leave_queue(e, i)
    e.scalar[st.OUTSTANDING] -= 1
    e.own[sg.FULL] = 0


@rare
def spend(e: AnyEngine, until: int) -> None:
    """The engine dies at this instant: busy until then, with all that is on the way lost."""
    s = e.scalar
    if s[st.N_RUNNING] == 0:
        return
    if s[st.NOW] < until:
        used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
        account(e.scalar, e.bins, until, used, (0.0, 0.0))
    s[st.NOW], s[st.FRAC] = until, 0


@rare
def empty(e: AnyEngine, now: int) -> None:
    """A fresh engine at this instant; what it has counted stays."""
    s, o = e.scalar, e.own
    s[st.HEAD] = s[st.TAIL] = s[st.WAIT_HEAD] = s[st.WAIT_TAIL] = s[st.READY] = st.NONE
    s[st.NOW], s[st.FRAC], s[st.STOP] = max(s[st.NOW], now), 0, st.FOREVER
    s[st.FREE], s[st.FREE_SLOT] = e.limit[st.N_BLOCKS], 0
    s[st.N_DECODES] = s[st.CONTEXT] = s[st.N_RUNNING] = s[st.OUTSTANDING] = s[st.IN_FLIGHT] = 0
    n = e.limit[st.MAX_SEQUENCES]
    for v in range(n):
        e.slot[v, st.ID], e.slot[v, st.AFTER] = st.NONE, v + 1
    e.slot[n - 1, st.AFTER] = st.NONE
    s[st.PHASES :] = 0
    e.ring[:] = st.NONE
    e.word[:] = 0
    o[: sg.STAMP] = 0
    o[sg.CHUNKED] = o[sg.READY_TAIL] = o[sg.NODE_SPARE] = st.NONE
    o[sg.NODE_TOP] = 1
    e.table[:] = st.NONE
    e.real[sg.RATIO] = e.real[sg.INIT]
