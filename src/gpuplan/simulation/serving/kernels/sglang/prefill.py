"""A prefill batch: who is let in, by what is asked for and what is set aside for those who run."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.queue import order, pop_ready
from gpuplan.simulation.serving.kernels.sglang.room import (
    fits_in_time,
    room_tokens,
    set_aside,
)
from gpuplan.simulation.serving.kernels.sglang.rows import take_slot, target
from gpuplan.simulation.serving.kernels.sglang.tree import lock, match, unlock

GO_ON, NO_TOKEN, OTHER = range(3)


@part
def _state(e: AnyEngine) -> int:
    """Whether more may join the batch."""
    room, o = room_tokens(e), e.own
    if room - e.real[sg.TOTAL] <= 0.0 or room <= o[sg.CURRENT]:
        return NO_TOKEN
    if o[sg.REM_IN] <= 0 or (e.rule[sg.CHUNK] and o[sg.REM_CHUNK] <= 0):
        return OTHER
    return GO_ON


@part
def _paged(e: AnyEngine, n: int) -> int:
    return int(n_blocks(e.limit, n) << e.limit[st.BLOCK_BITS])


@part
def _take(e: AnyEngine, v: int, n: int, is_cut: bool) -> None:
    """So many tokens of the slot are part of the batch."""
    o, page, i = e.own, 1 << e.limit[st.BLOCK_BITS], e.slot[v, st.ID]
    (
        e.batch[1 - o[sg.BACK], o[sg.N_BATCH], sg.ROW_SLOT],
        e.batch[1 - o[sg.BACK], o[sg.N_BATCH], sg.ROW_ID],
        e.batch[1 - o[sg.BACK], o[sg.N_BATCH], sg.TOKENS],
        e.batch[1 - o[sg.BACK], o[sg.N_BATCH], sg.ENDS],
    ) = v, i, n, int(not is_cut)
    o[sg.N_BATCH] += 1
    paged = _paged(e, n)
    new = 0 if is_cut else min(e.requested[i, sg.ASKED], sg.CLIP)
    e.real[sg.TOTAL] += paged + page + new
    o[sg.CURRENT] += paged + page
    o[sg.REM_IN] -= paged
    o[sg.REM_CHUNK] -= paged


@part
def _go_on(e: AnyEngine) -> None:
    """The request that was cut has its next chunk."""
    o, v = e.own, e.own[sg.CHUNKED]
    left = target(e, e.slot[v, st.ID]) - e.slot[v, st.DONE]
    most = min(o[sg.REM_CHUNK], int(room_tokens(e) - e.real[sg.TOTAL]))
    if most <= 0:
        most = o[sg.REM_CHUNK]
    _take(e, v, min(left, most), left > most)
    o[sg.CHUNKED] = v if left > most else st.NONE


@part
def _is_fitting(e: AnyEngine, i: int, n: int) -> bool:
    """The request and its whole answer fit beside what is set aside."""
    if e.rule[sg.IGNORES_EOS] and e.rule[sg.HAS_TREE] == 0:
        return fits_in_time(far(e), i)
    answer = min(max(e.requested[i, sg.ASKED] - e.request[i, st.MADE], 0), sg.CLIP)
    need = n + answer + (1 << e.limit[st.BLOCK_BITS])
    return bool(need < room_tokens(e) - e.real[sg.TOTAL])


@part
def _chunk(e: AnyEngine, n: int) -> int:
    """Tokens of a prompt that the batch has room for; NONE where it must wait for the next."""
    o, bits = e.own, e.limit[st.BLOCK_BITS]
    is_simulated = e.rule[sg.IGNORES_EOS] and e.rule[sg.HAS_TREE] == 0
    if e.rule[sg.CHUNK] == 0:
        is_late = not is_simulated and o[sg.N_BATCH] > 0 and _paged(e, n) >= o[sg.REM_IN]
        return st.NONE if is_late else n
    if (n if is_simulated else _paged(e, n)) <= o[sg.REM_CHUNK]:
        return n
    most = o[sg.REM_CHUNK] if is_simulated else (o[sg.REM_CHUNK] >> bits) << bits
    return most if most > 0 else st.NONE


@part
def _begin(e: AnyEngine, i: int, x: int, n: int, is_cut: bool) -> None:
    """The request has a slot, with the text that was found and locked for it."""
    s, found, begins = e.scalar, e.node[x, sg.STOP], e.scalar[st.NOW]
    pop_ready(e)
    v = take_slot(e, i)
    e.slot[v, sg.NODE], e.slot[v, sg.SAFE] = x, found
    e.slot[v, st.DONE] = found << e.limit[st.BLOCK_BITS]
    if e.request[i, st.START] < 0:
        if e.own[sg.N_PENDING] > 0:
            begins = e.flight[e.own[sg.BACK], sg.END]
        e.request[i, st.START] = begins
        e.requested[i, sg.HIT] = e.slot[v, st.DONE]
        s[st.ASKED_TOKENS] += e.request[i, st.INPUT]
        s[st.HIT_TOKENS] += e.slot[v, st.DONE]
    _take(e, v, n, is_cut)
    if is_cut:
        e.own[sg.CHUNKED] = v


@part
def _let_in(e: AnyEngine, most: int, n_run: int) -> None:
    """Those who wait join the batch in order while they fit."""
    s, o, bits = e.scalar, e.own, e.limit[st.BLOCK_BITS]
    while o[sg.N_READY] > 0:
        if _state(e) == OTHER:
            return
        if o[sg.N_BATCH] >= most:
            o[sg.FULL] = 1
        if o[sg.FULL]:
            return
        i = s[st.READY]
        n_tokens, x = target(e, i), sg.ROOT
        if e.rule[sg.HAS_TREE]:
            x = match(far(e), i, (n_tokens - 1) >> bits)
            lock(far(e), x)
        n = n_tokens - (e.node[x, sg.STOP] << bits)
        is_fitting = _is_fitting(e, i, n)
        chunk = _chunk(e, n) if is_fitting else st.NONE
        if chunk < 0:
            if not is_fitting:
                o[sg.FULL] = int(o[sg.N_BATCH] > 0 or n_run > 0)
            unlock(far(e), x)
            return
        _begin(e, i, x, chunk, chunk < n)
        now = _state(e)
        if now != GO_ON:
            if now == NO_TOKEN:
                o[sg.FULL] = 1
            return


@rare
def draw_prefill(e: AnyEngine) -> bool:
    """Draw up a prefill batch; False where nobody can be let in."""
    s, o, rule = e.scalar, e.own, e.rule
    n_run, n_rows = s[st.N_DECODES] + o[sg.N_GONE], e.limit[st.MAX_SEQUENCES]
    if n_run == 0 and rule[sg.KNOWS_ENDS]:
        o[sg.FULL] = 0
    resident = int(o[sg.CHUNKED] >= 0)
    if (o[sg.FULL] or o[sg.N_READY] == 0) and not resident:
        return False
    most = min(n_rows - n_run, n_rows - s[st.N_RUNNING] + resident)
    if min(n_rows - n_run, n_rows - s[st.N_RUNNING]) <= 0 and not resident:
        o[sg.FULL] = 1
        return False
    mixed = n_run if rule[sg.IS_MIXING] and rule[sg.CHUNK] else 0
    e.real[sg.TOTAL] = mixed + set_aside(e)
    o[sg.CURRENT], o[sg.REM_IN] = mixed, rule[sg.MAX_PREFILL] - mixed
    o[sg.REM_CHUNK] = rule[sg.CHUNK] - mixed
    o[sg.N_BATCH], o[sg.N_STATES] = 0, st.NONE
    order(e)
    if resident:
        _go_on(e)
    _let_in(e, most, n_run)
    return bool(o[sg.N_BATCH] > 0)
