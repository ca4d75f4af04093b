"""Decode steps that nothing can interrupt, taken at once."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import peaks_s
from gpuplan.simulation.serving.kernels.engine.jump import (
    LONGEST_GAP,
    fewest_reaching,
    fitting,
    lasting,
    on_line,
)
from gpuplan.simulation.serving.kernels.engine.lists import blocks_between, next_finish
from gpuplan.simulation.serving.kernels.engine.positions import moved
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.rows import is_lagging, make_room

TAKEN = 0
MUST_STEP = -1


@part
def can_jump(e: AnyEngine) -> bool:
    """All that run decode, nobody is tried, and nobody's last token is on the way."""
    s, o = e.scalar, e.own
    if s[st.N_DECODES] == 0 or o[sg.CHUNKED] >= 0 or o[sg.N_GONE] > 0:
        return False
    if o[sg.N_READY] > 0 and o[sg.FULL] == 0:
        return False
    if e.limit[st.IS_AHEAD]:
        has_rows = e.flight[o[sg.BACK], sg.N_ROWS] > 0
        if o[sg.N_PENDING] == 0 or has_rows or not is_lagging(e):
            return False
    return bool(e.ring[s[st.STEP] & (e.ring.shape[0] - 1)] < 0)


@part
def _start(e: AnyEngine) -> tuple[int, int]:
    """When the first of the steps begins."""
    if e.own[sg.N_PENDING] > 0:
        return int(e.flight[e.own[sg.BACK], sg.END]), int(e.flight[e.own[sg.BACK], sg.END_FRAC])
    return int(e.scalar[st.NOW]), int(e.scalar[st.FRAC])


@part
def _until(e: AnyEngine, at: int, k: int, line: tuple[int, int], start: tuple[int, int]) -> int:
    """Steps, up to k, none but the first of which is drawn up at this instant or later."""
    n_more = int(e.own[sg.N_PENDING])  # drawn up one step before it begins
    ahead = at - start[0]
    if ahead >= LONGEST_GAP or k <= n_more:
        return k
    gap = (ahead << st.FRAC_BITS) - start[1]
    if gap <= 0:
        return 1
    if gap >= lasting(e, k - n_more, line[0], line[1]):
        return k
    return fewest_reaching(e, gap, k - n_more, line[0], line[1]) + n_more


@part
def jump(e: AnyEngine, until: int) -> int:
    """Take as many decode steps at once as nothing can interrupt.

    TAKEN; MUST_STEP where not one is possible; where the last is drawn up after `until`, that
    instant, and nothing is taken.
    """
    s, o = e.scalar, e.own
    most, _ = fitting(e, next_finish(e.scalar, e.word) - s[st.STEP])
    if most == 0:
        return MUST_STEP
    k, first, growth, regime = on_line(e, most)
    line, start = (first, growth), _start(e)
    head = s[st.WAIT_HEAD]
    is_heard = head >= 0 and o[sg.FULL] == 0
    # One place that calls, two instants: what must stop the engine, and who comes.
    for which in range(2):
        at = s[st.STOP]
        if which == 1:
            at = e.request[head, st.ARRIVE] if is_heard else st.FOREVER
        k = min(k, _until(e, at, k, line, start))
    known = k - int(o[sg.N_PENDING])
    lasts = lasting(e, known, first, growth) + start[1]
    now = start[0] + (lasts >> st.FRAC_BITS)
    if now > until:
        return int(now)
    _skip(e, k, regime, (now, lasts & st.FRAC_MASK))
    last = first + growth * (k - 1)
    _settle(e, last, (now, lasts & st.FRAC_MASK))
    return TAKEN


@part
def _skip(e: AnyEngine, k: int, regime: int, now: tuple[int, int]) -> None:
    """So many steps are begun; all that are known by then are accounted for."""
    s, o, n = e.scalar, e.own, e.scalar[st.N_DECODES]
    used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
    known = k - o[sg.N_PENDING]
    compute_s, memory_s = peaks_s(e, regime, known, moved(e, known))
    all_s = peaks_s(e, regime, k, moved(e, k))
    at = 2 * o[sg.BACK]
    if o[sg.N_PENDING] > 0:
        rest_s = (all_s[0] - compute_s, all_s[1] - memory_s)
        compute_s, memory_s = compute_s + e.flight_s[at], memory_s + e.flight_s[at + 1]
        e.flight_s[at], e.flight_s[at + 1] = rest_s
        s[st.COMPUTED] += e.flight[o[sg.BACK], sg.N_TOKENS] - n
        e.flight[o[sg.BACK], sg.N_TOKENS] = n
    account(e.scalar, e.bins, now[0], used, (compute_s, memory_s))
    s[st.COMPUTED] += k * n
    s[st.N_STEPS] += k
    needed = blocks_between(e.scalar, e.limit, s[st.STEP], k)
    earlier = blocks_between(e.scalar, e.limit, s[st.STEP], k - 1)
    s[st.FREE] -= earlier
    make_room(e, n << e.limit[st.BLOCK_BITS])
    s[st.FREE] -= needed - earlier
    s[st.STEP] += k
    s[st.CONTEXT] += k * n
    o[sg.DECAYS] += k


@part
def _settle(e: AnyEngine, last: int, now: tuple[int, int]) -> None:
    """The clock stands where the last of them was drawn up; it is on the way, or over."""
    s, o = e.scalar, e.own
    s[st.NOW], s[st.FRAC] = now
    if o[sg.N_PENDING] > 0:
        e.flight[o[sg.BACK], sg.END] = now[0] + ((last + now[1]) >> st.FRAC_BITS)
        e.flight[o[sg.BACK], sg.END_FRAC] = (last + now[1]) & st.FRAC_MASK
        e.flight[o[sg.BACK], sg.POSITION] = s[st.STEP]
