"""An engine with more policies through time: steps and jumps over unchanged batches."""

from gpuplan.simulation.serving.kernels.engine import featured as ft
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import peaks_of_s
from gpuplan.simulation.serving.kernels.engine.featured import AnyEngine
from gpuplan.simulation.serving.kernels.engine.loop import MUST_SCHEDULE, TAKEN
from gpuplan.simulation.serving.kernels.engine.positions import moved, plan_featured, position
from gpuplan.simulation.serving.kernels.engine.queue import next_to_admit, see_arrivals
from gpuplan.simulation.serving.kernels.engine.schedule import (
    begin_featured,
    count_decode,
    n_drafts,
    n_total,
)
from gpuplan.simulation.serving.kernels.engine.state import (
    forget_finish,
    learn,
    n_blocks,
    note_finish,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.jit.held import far
from gpuplan.simulation.serving.kernels.prefix.cache import give_back, start_writing, take


@part
def _release(e: AnyEngine, v: int) -> None:
    """The slot's request has all its tokens."""
    s = e.scalar
    i = e.slot[v, st.ID]
    e.request[i, st.END] = s[st.NOW]
    e.request[i, st.MADE] = e.request[i, st.OUTPUT]
    n_seen = e.slot[v, st.OFFSET] + s[st.STEP] - s[st.GAIN]
    n_written = min(n_seen, e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - 1)
    give_back(far(e), v, n_blocks(e.limit, n_seen + n_drafts(e.limit)), n_written)
    unlink_running(e.scalar, e.slot, v)
    s[st.OUTSTANDING] -= 1
    s[st.BLOCKED] = 0


@part
def _first_finished(e: AnyEngine, after: int) -> int:
    """Of the slots that have finished past this position, the first admitted."""
    s, slot, best = e.scalar, e.slot, st.NONE
    for at in range(after + 1, s[st.STEP] + 1):
        v = e.ring[at & (e.ring.shape[0] - 1)]
        while v >= 0:
            if best < 0 or slot[v, ft.ORDER] < slot[best, ft.ORDER]:
                best = v
            v = slot[v, st.PEER_AFTER]
    return best


@part
def _finish_decodes(e: AnyEngine) -> None:
    """Whatever has all its tokens leaves, in order of admission: so its text grows old."""
    s, slot = e.scalar, e.slot
    after = s[st.STEP] - s[st.GAIN]
    v = _first_finished(e, after)
    while v >= 0:
        count_decode(e, v, st.MINUS_ONE)
        s[st.N_DECODES] -= 1
        s[st.CONTEXT] -= slot[v, st.OFFSET] + s[st.STEP]
        forget_finish(e.ring, e.word, e.slot, v)
        _release(e, v)
        v = _first_finished(e, after)


@part
def _decode(e: AnyEngine, v: int, n_tokens: int) -> None:
    """The slot has so many tokens now and goes on from there."""
    s, i = e.scalar, e.slot[v, st.ID]
    e.slot[v, st.OFFSET] = n_tokens - s[st.STEP]
    count_decode(e, v, st.ONE)
    s[st.N_DECODES] += 1
    s[st.CONTEXT] += n_tokens
    note_finish(
        e.ring,
        e.word,
        e.slot,
        v,
        s[st.STEP] + e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - n_tokens,
    )


@part
def _start_decodes(e: AnyEngine) -> None:
    """Prompts that were read to their end have one more token, and decode from now on."""
    s, slot = e.scalar, e.slot
    v = s[st.MARK]
    while v >= 0:
        if slot[v, ft.DONE] >= 0:
            i = slot[v, st.ID]
            slot[v, ft.DONE] += slot[v, ft.CHUNK]
            slot[v, ft.CHUNK] = 0
            if slot[v, ft.DONE] == n_total(e.request, i):
                slot[v, ft.DONE] = st.NONE
                s[st.N_PARTIALS] -= 1
                e.request[i, st.MADE] += 1
                if e.request[i, st.FIRST] < 0:
                    e.request[i, st.FIRST] = s[st.NOW]
                _decode(e, v, n_total(e.request, i))
                start_writing(e, v)
        v = slot[v, st.AFTER]


@rare
def _unpark(e: AnyEngine, before: int) -> None:
    """Decodes that went without a token have as many as before."""
    s, slot = e.scalar, e.slot
    v = s[st.PARKED]
    while v >= 0:
        if slot[v, ft.DONE] < 0:
            _decode(e, v, slot[v, st.OFFSET] + before)
        v = slot[v, st.AFTER]


@part
def _move(e: AnyEngine, k: int) -> None:
    """The decodes have taken k steps."""
    s = e.scalar
    begin = position(e, s[st.TICK] + k - 1)
    s[st.TICK] += k
    at = position(e, s[st.TICK])
    s[st.CONTEXT] += s[st.N_DECODES] * (at - s[st.STEP])
    s[st.STEP], s[st.GAIN] = at, at - begin


@part
def complete_featured(e: AnyEngine) -> None:
    """The step in flight ends: the clock moves, tokens appear, finished requests leave."""
    s = e.scalar
    used = 0.5 * (s[st.USED_BEFORE] + e.limit[st.N_BLOCKS] - s[st.FREE])
    account(e.scalar, e.bins, s[st.FLIGHT_END], used, (e.flight_s[0], e.flight_s[1]))
    n_computed = s[st.PREFILL_TOKENS] + s[st.N_DECODES] * e.limit[st.CHECKED]
    s[st.COMPUTED] += n_computed
    s[st.N_STEPS] += min(1, n_computed)
    begun = s[st.NOW]
    s[st.NOW], s[st.FRAC] = s[st.FLIGHT_END], s[st.FLIGHT_FRAC]
    s[st.IN_FLIGHT] = 0
    before = s[st.STEP]
    _move(e, st.ONE)
    if s[st.PARKED] >= 0:
        _unpark(far(e), before)
    _start_decodes(e)
    _finish_decodes(e)
    learn(e.scalar, e.limit, begun)


@part
def _jump(e: AnyEngine, until: int) -> int:
    """As the plain engine: TAKEN, MUST_SCHEDULE, or the instant at which a planned jump ends."""
    s = e.scalar
    k, lasts, needed, regime, earlier = plan_featured(e)
    if k == 0:
        return MUST_SCHEDULE
    begun = s[st.NOW] + ((earlier + s[st.FRAC]) >> st.FRAC_BITS)
    lasts += s[st.FRAC]
    end = s[st.NOW] + (lasts >> st.FRAC_BITS)
    if end > until:
        return int(end)
    used = e.limit[st.N_BLOCKS] - s[st.FREE] + 0.5 * needed
    account(e.scalar, e.bins, end, used, peaks_of_s(e, regime, k, moved(e, k)))
    s[st.NOW], s[st.FRAC] = end, lasts & st.FRAC_MASK
    s[st.COMPUTED] += k * s[st.N_DECODES] * e.limit[st.CHECKED]
    s[st.N_STEPS] += k
    take(e, needed)
    _move(e, k)
    _finish_decodes(e)
    learn(e.scalar, e.limit, begun)
    return TAKEN


@part
def _is_decoding_only(e: AnyEngine) -> bool:
    """Nothing is half read, and nobody waits who might be admitted."""
    s = e.scalar
    is_waiting = s[st.BLOCKED] == 0 and next_to_admit(e) >= 0
    return bool(s[st.N_PARTIALS] == 0 and s[st.N_DECODES] > 0 and not is_waiting)


@part
def _is_idle(e: AnyEngine) -> bool:
    """Nothing runs and nobody is in the queue; an engine that runs nothing sleeps until then."""
    s = e.scalar
    head = s[st.WAIT_HEAD]
    if s[st.N_RUNNING] > 0 or s[st.READY] >= 0:
        return False
    if head >= 0 and e.request[head, st.ARRIVE] > s[st.NOW]:
        s[st.NOW], s[st.FRAC] = e.request[head, st.ARRIVE], 0
        s[st.KNOWN] = s[st.NOW]
        see_arrivals(e)
    return bool(head < 0)


@part
def advance_featured(e: AnyEngine, until: int) -> int:
    """Bring one engine up to this instant; the answer is when it next has something to tell.

    It is called, not inlined: every loop over such engines would else compile all of it again.
    """
    s = e.scalar
    while True:
        if s[st.IN_FLIGHT]:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            complete_featured(e)
        see_arrivals(e)
        if _is_idle(e):
            return st.FOREVER
        if s[st.NOW] >= until:
            return int(s[st.NOW])
        planned = MUST_SCHEDULE
        if e.limit[st.IS_JUMPING] and _is_decoding_only(e):
            planned = _jump(e, until)
        if planned > TAKEN:
            return planned
        if planned == MUST_SCHEDULE:
            begin_featured(e)
