"""How much room there is for those who wait, beside what those who run may still ask for."""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.queue import sort_rows
from gpuplan.simulation.serving.kernels.sglang.rows import is_lagging, n_made, target

CLOSE = 1e-6  # a sum this close to a whole number is summed anew, one by one


@part
def room_tokens(e: AnyEngine) -> int:
    """Tokens whose pages are free, or hold text that nobody uses."""
    return int(e.scalar[st.FREE] << e.limit[st.BLOCK_BITS])


@part
def decay(e: AnyEngine) -> None:
    """The ratio has fallen with every decode step since it was last asked for."""
    ratio, least = e.real[sg.RATIO], e.real[sg.LEAST]
    n = e.own[sg.DECAYS]
    while n > 0 and ratio > least:
        ratio = max(ratio - e.real[sg.DECAY], least)
        n -= 1
    e.real[sg.RATIO], e.own[sg.DECAYS] = ratio, 0


@part
def set_aside(e: AnyEngine) -> float:
    """Tokens that those who run are expected to take yet."""
    s, o = e.scalar, e.own
    n_pending = s[st.N_DECODES] if is_lagging(e) else o[sg.N_FRESH]
    left = o[sg.COMMITTED] - s[st.N_DECODES] * s[st.STEP] + n_pending + o[sg.GONE_LEFT]
    ratio = 1.0
    if not (e.rule[sg.IGNORES_EOS] and e.rule[sg.KNOWS_ENDS]):
        decay(e)
        ratio = e.real[sg.RATIO]
    total = left * ratio
    is_close = ratio < 1.0 and abs(total - np.rint(total)) < CLOSE
    if o[sg.N_LONG] > 0 or is_close:
        return _summed(e, ratio)
    return float(total)


@rare
def _summed(e: AnyEngine, ratio: float) -> float:
    """As above, request by request."""
    total, v = 0.0, e.scalar[st.HEAD]
    while v >= 0:
        left = e.requested[e.slot[v, st.ID], sg.ASKED] - n_made(e, v)
        total += min(left, sg.CLIP) * ratio
        v = e.slot[v, st.AFTER]
    return float(total + e.own[sg.GONE_LEFT] * ratio)


@part
def _note(e: AnyEngine, more: int, has: int) -> None:
    if more > 0:
        at = e.own[sg.N_STATES]
        e.scratch[0, at, 0], e.scratch[0, at, 1] = more, has
        e.own[sg.N_STATES] += 1


@part
def _note_all(e: AnyEngine, i: int) -> None:
    """Tokens to come and tokens there, of the request, those who run and those of the batch."""
    request, o = e.request, e.own
    o[sg.N_STATES] = 0
    _note(e, e.requested[i, sg.ASKED] - request[i, st.MADE], target(e, i))
    v = e.scalar[st.HEAD]
    while v >= 0:
        j, made = e.slot[v, st.ID], n_made(e, v)
        _note(e, e.requested[j, sg.ASKED] - made, request[j, st.INPUT] + made)
        v = e.slot[v, st.AFTER]
    for at in range(o[sg.N_BATCH]):
        j = e.batch[1 - o[sg.BACK], at, sg.ROW_ID]
        _note(e, e.requested[j, sg.ASKED] - request[j, st.MADE], target(e, j))
    if sort_rows(e.scratch, o[sg.N_STATES]) == 1:
        for at in range(o[sg.N_STATES]):
            for column in range(2):
                e.scratch[0, at, column] = e.scratch[1, at, column]


@part
def _note_in_place(e: AnyEngine, more: int, has: int) -> None:
    """One more among those who end later; one who ends last of all stands before the last."""
    n, at = e.own[sg.N_STATES], 0
    if more <= 0:
        return
    while at < n - 1 and more > e.scratch[0, at, 0]:
        at += 1
    for other in range(n, at, -1):
        for column in range(2):
            e.scratch[0, other, column] = e.scratch[0, other - 1, column]
    e.scratch[0, at, 0], e.scratch[0, at, 1] = more, has
    e.own[sg.N_STATES] += 1


@rare
def fits_in_time(e: AnyEngine, i: int) -> bool:
    """Known lengths without a tree: play forward who ends when, and what that frees."""
    o, bits = e.own, e.limit[st.BLOCK_BITS]
    takes = (n_blocks(e.limit, target(e, i)) + 1) << bits
    current, room = room_tokens(e) - o[sg.CURRENT], room_tokens(e)
    if takes > current or takes > room - e.real[sg.TOTAL]:
        return False
    if o[sg.N_STATES] < 0:
        _note_all(e, i)
    else:
        _note_in_place(e, e.requested[i, sg.ASKED] - e.request[i, st.MADE], target(e, i))
    left, freed, n = current - takes, 0, o[sg.N_STATES]
    for at in range(n):
        if left + freed - e.scratch[0, at, 0] * (n - at) <= n - at:
            return False
        freed += e.scratch[0, at, 1]
    return True
