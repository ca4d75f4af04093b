"""An engine with more policies through time: steps and jumps over unchanged batches."""

from gpuplan.simulation.serving.kernels.account import account
from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.cost import peaks_of_s
from gpuplan.simulation.serving.kernels.engine import MUST_SCHEDULE, TAKEN
from gpuplan.simulation.serving.kernels.featured import CHUNK, DONE, ORDER, AnyEngine
from gpuplan.simulation.serving.kernels.held import far
from gpuplan.simulation.serving.kernels.policy import (
    begin_featured,
    count_decode,
    n_drafts,
    n_total,
)
from gpuplan.simulation.serving.kernels.positions import moved, plan_featured, position
from gpuplan.simulation.serving.kernels.prefix import give_back, start_writing, take
from gpuplan.simulation.serving.kernels.priority import next_to_admit, see_arrivals
from gpuplan.simulation.serving.kernels.state import (
    AFTER,
    ARRIVE,
    BLOCKED,
    CHECKED,
    COMPUTED,
    CONTEXT,
    END,
    FIRST,
    FLIGHT_END,
    FLIGHT_FRAC,
    FOREVER,
    FRAC,
    FRAC_BITS,
    FRAC_MASK,
    FREE,
    GAIN,
    ID,
    IN_FLIGHT,
    INPUT,
    IS_JUMPING,
    KNOWN,
    MADE,
    MARK,
    MINUS_ONE,
    N_BLOCKS,
    N_DECODES,
    N_PARTIALS,
    N_RUNNING,
    N_STEPS,
    NONE,
    NOW,
    OFFSET,
    ONE,
    OUTPUT,
    OUTSTANDING,
    PARKED,
    PEER_AFTER,
    PREFILL_TOKENS,
    READY,
    STEP,
    TICK,
    USED_BEFORE,
    WAIT_HEAD,
    forget_finish,
    learn,
    n_blocks,
    note_finish,
    unlink_running,
)


@part
def _release(e: AnyEngine, v: int) -> None:
    """The slot's request has all its tokens."""
    s = e.scalar
    i = e.slot[v, ID]
    e.request[i, END] = s[NOW]
    e.request[i, MADE] = e.request[i, OUTPUT]
    n_seen = e.slot[v, OFFSET] + s[STEP] - s[GAIN]
    n_written = min(n_seen, e.request[i, INPUT] + e.request[i, OUTPUT] - 1)
    give_back(far(e), v, n_blocks(e.limit, n_seen + n_drafts(e.limit)), n_written)
    unlink_running(e.scalar, e.slot, v)
    s[OUTSTANDING] -= 1
    s[BLOCKED] = 0


@part
def _first_finished(e: AnyEngine, after: int) -> int:
    """Of the slots that have finished past this position, the first admitted."""
    s, slot, best = e.scalar, e.slot, NONE
    for at in range(after + 1, s[STEP] + 1):
        v = e.ring[at & (e.ring.shape[0] - 1)]
        while v >= 0:
            if best < 0 or slot[v, ORDER] < slot[best, ORDER]:
                best = v
            v = slot[v, PEER_AFTER]
    return best


@part
def _finish_decodes(e: AnyEngine) -> None:
    """Whatever has all its tokens leaves, in order of admission: so its text grows old."""
    s, slot = e.scalar, e.slot
    after = s[STEP] - s[GAIN]
    v = _first_finished(e, after)
    while v >= 0:
        count_decode(e, v, MINUS_ONE)
        s[N_DECODES] -= 1
        s[CONTEXT] -= slot[v, OFFSET] + s[STEP]
        forget_finish(e.ring, e.word, e.slot, v)
        _release(e, v)
        v = _first_finished(e, after)


@part
def _decode(e: AnyEngine, v: int, n_tokens: int) -> None:
    """The slot has so many tokens now and goes on from there."""
    s, i = e.scalar, e.slot[v, ID]
    e.slot[v, OFFSET] = n_tokens - s[STEP]
    count_decode(e, v, ONE)
    s[N_DECODES] += 1
    s[CONTEXT] += n_tokens
    note_finish(
        e.ring, e.word, e.slot, v, s[STEP] + e.request[i, INPUT] + e.request[i, OUTPUT] - n_tokens
    )


@part
def _start_decodes(e: AnyEngine) -> None:
    """Prompts that were read to their end have one more token, and decode from now on."""
    s, slot = e.scalar, e.slot
    v = s[MARK]
    while v >= 0:
        if slot[v, DONE] >= 0:
            i = slot[v, ID]
            slot[v, DONE] += slot[v, CHUNK]
            slot[v, CHUNK] = 0
            if slot[v, DONE] == n_total(e.request, i):
                slot[v, DONE] = NONE
                s[N_PARTIALS] -= 1
                e.request[i, MADE] += 1
                if e.request[i, FIRST] < 0:
                    e.request[i, FIRST] = s[NOW]
                _decode(e, v, n_total(e.request, i))
                start_writing(e, v)
        v = slot[v, AFTER]


@rare
def _unpark(e: AnyEngine, before: int) -> None:
    """Decodes that went without a token have as many as before."""
    s, slot = e.scalar, e.slot
    v = s[PARKED]
    while v >= 0:
        if slot[v, DONE] < 0:
            _decode(e, v, slot[v, OFFSET] + before)
        v = slot[v, AFTER]


@part
def _move(e: AnyEngine, k: int) -> None:
    """The decodes have taken k steps."""
    s = e.scalar
    begin = position(e, s[TICK] + k - 1)
    s[TICK] += k
    at = position(e, s[TICK])
    s[CONTEXT] += s[N_DECODES] * (at - s[STEP])
    s[STEP], s[GAIN] = at, at - begin


@part
def complete_featured(e: AnyEngine) -> None:
    """The step in flight ends: the clock moves, tokens appear, finished requests leave."""
    s = e.scalar
    used = 0.5 * (s[USED_BEFORE] + e.limit[N_BLOCKS] - s[FREE])
    account(e.scalar, e.bins, s[FLIGHT_END], used, (e.flight_s[0], e.flight_s[1]))
    n_computed = s[PREFILL_TOKENS] + s[N_DECODES] * e.limit[CHECKED]
    s[COMPUTED] += n_computed
    s[N_STEPS] += min(1, n_computed)
    begun = s[NOW]
    s[NOW], s[FRAC] = s[FLIGHT_END], s[FLIGHT_FRAC]
    s[IN_FLIGHT] = 0
    before = s[STEP]
    _move(e, ONE)
    if s[PARKED] >= 0:
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
    begun = s[NOW] + ((earlier + s[FRAC]) >> FRAC_BITS)
    lasts += s[FRAC]
    end = s[NOW] + (lasts >> FRAC_BITS)
    if end > until:
        return int(end)
    used = e.limit[N_BLOCKS] - s[FREE] + 0.5 * needed
    account(e.scalar, e.bins, end, used, peaks_of_s(e, regime, k, moved(e, k)))
    s[NOW], s[FRAC] = end, lasts & FRAC_MASK
    s[COMPUTED] += k * s[N_DECODES] * e.limit[CHECKED]
    s[N_STEPS] += k
    take(e, needed)
    _move(e, k)
    _finish_decodes(e)
    learn(e.scalar, e.limit, begun)
    return TAKEN


@part
def _is_decoding_only(e: AnyEngine) -> bool:
    """Nothing is half read, and nobody waits who might be admitted."""
    s = e.scalar
    is_waiting = s[BLOCKED] == 0 and next_to_admit(e) >= 0
    return bool(s[N_PARTIALS] == 0 and s[N_DECODES] > 0 and not is_waiting)


@part
def _is_idle(e: AnyEngine) -> bool:
    """Nothing runs and nobody is in the queue; an engine that runs nothing sleeps until then."""
    s = e.scalar
    head = s[WAIT_HEAD]
    if s[N_RUNNING] > 0 or s[READY] >= 0:
        return False
    if head >= 0 and e.request[head, ARRIVE] > s[NOW]:
        s[NOW], s[FRAC] = e.request[head, ARRIVE], 0
        s[KNOWN] = s[NOW]
        see_arrivals(e)
    return bool(head < 0)


@part
def advance_featured(e: AnyEngine, until: int) -> int:
    """Bring one engine up to this instant; the answer is when it next has something to tell.

    It is called, not inlined: every loop over such engines would else compile all of it again.
    """
    s = e.scalar
    while True:
        if s[IN_FLIGHT]:
            if s[FLIGHT_END] > until:
                return int(s[FLIGHT_END])
            complete_featured(e)
        see_arrivals(e)
        if _is_idle(e):
            return FOREVER
        if s[NOW] >= until:
            return int(s[NOW])
        planned = MUST_SCHEDULE
        if e.limit[IS_JUMPING] and _is_decoding_only(e):
            planned = _jump(e, until)
        if planned > TAKEN:
            return planned
        if planned == MUST_SCHEDULE:
            begin_featured(e)
