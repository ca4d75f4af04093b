"""One engine: vLLM V1's scheduler, first come first served, with jumps over unchanged batches.

A step is begun (blocks taken, prompts admitted, end computed) and later completed (tokens gained,
finished requests released). While nothing but decoding can happen, many steps are taken at once;
the result is the same as stepping, to the last bit. Rules and invariants: docs/model.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import decode_line, mixed_step_s, peaks_s, ticks
from gpuplan.simulation.serving.kernels.engine.jump import plan_jump
from gpuplan.simulation.serving.kernels.engine.state import (
    Engine,
    blocks_between,
    count_phase,
    forget_finish,
    learn,
    link_running,
    n_blocks,
    note_finish,
    pop_waiting,
    prepend_waiting,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.jit.held import apart

TAKEN = 0
MUST_SCHEDULE = -1


@rare
def _preempt_tail(e: Engine) -> None:
    """The last admitted loses its blocks and waits in front; it will recompute all it had."""
    s, slot = e.scalar, e.slot
    v = s[st.TAIL]
    i = slot[v, st.ID]
    if v == s[st.PARTIAL]:
        s[st.FREE] += n_blocks(e.limit, s[st.PARTIAL_DONE])
        s[st.PARTIAL] = st.NONE
    else:
        n_tokens = slot[v, st.OFFSET] + s[st.STEP]
        e.request[i, st.MADE] = n_tokens - e.request[i, st.INPUT]
        s[st.FREE] += n_blocks(e.limit, n_tokens - 1)
        count_phase(e.scalar, e.limit, slot[v, st.OFFSET], st.MINUS_ONE)
        s[st.N_DECODES] -= 1
        s[st.CONTEXT] -= n_tokens
        forget_finish(e.ring, e.word, e.slot, v)
    unlink_running(e.scalar, e.slot, v)
    prepend_waiting(e.scalar, e.request, i)
    e.request[i, st.PREEMPTED] += 1
    e.request[i, st.GIVEN] = 0
    s[st.N_PREEMPTIONS] += 1
    s[st.BLOCKED] = 0


@part
def _take_blocks(e: Engine) -> None:
    """Every decode that has filled its last block gets one, in order; the tail makes room."""
    s, slot = e.scalar, e.slot
    mask = (1 << e.limit[st.BLOCK_BITS]) - 1
    needed = blocks_between(e.scalar, e.limit, s[st.STEP], st.ONE)
    if needed <= s[st.FREE]:
        s[st.FREE] -= needed
        return
    v = s[st.HEAD]
    while v >= 0 and v != s[st.PARTIAL]:
        if ((slot[v, st.OFFSET] + s[st.STEP] - 1) & mask) == 0:
            while s[st.FREE] == 0:
                victim = s[st.TAIL]
                _preempt_tail(apart(e))
                if victim == v:
                    return
            s[st.FREE] -= 1
        v = slot[v, st.AFTER]


@part
def _read_chunk(e: Engine, v: int, done: int, chunk: int) -> None:
    """So many further tokens of the slot's prompt are read in this step."""
    s = e.scalar
    i = e.slot[v, st.ID]
    s[st.FREE] -= n_blocks(e.limit, done + chunk) - n_blocks(e.limit, done)
    s[st.PREFILL_TOKENS] += chunk
    s[st.PREFILL_PAIRS] += chunk * (2 * done + chunk)
    if s[st.MARK] < 0:
        s[st.MARK] = v
    if done + chunk < e.request[i, st.INPUT] + e.request[i, st.MADE]:
        s[st.PARTIAL], s[st.PARTIAL_DONE] = v, done + chunk
    else:
        s[st.PARTIAL] = st.NONE
        s[st.N_ENDED] += 1


@part
def _continue_partial(e: Engine, budget: int) -> int:
    """The prompt that is half read goes on; being the tail, it can only preempt itself."""
    s = e.scalar
    v, done = s[st.PARTIAL], s[st.PARTIAL_DONE]
    i = e.slot[v, st.ID]
    chunk = min(e.request[i, st.INPUT] + e.request[i, st.MADE] - done, budget)
    if n_blocks(e.limit, done + chunk) - n_blocks(e.limit, done) > s[st.FREE]:
        _preempt_tail(apart(e))
        return budget
    _read_chunk(e, v, done, chunk)
    return int(budget - chunk)


@part
def _admit(e: Engine, budget: int) -> None:
    """Waiting requests join in order while tokens, sequences and blocks last."""
    s = e.scalar
    s[st.BLOCKED] = 0
    while budget > 0:
        i = s[st.WAIT_HEAD]
        if i < 0 or e.request[i, st.ARRIVE] > s[st.KNOWN]:
            return
        n_tokens = e.request[i, st.INPUT] + e.request[i, st.MADE]
        given = e.request[i, st.GIVEN]
        chunk = min(n_tokens - given, budget)
        must_fit = n_tokens if e.limit[st.IS_RESERVING] else given + chunk
        is_full = s[st.N_RUNNING] == e.limit[st.MAX_SEQUENCES]
        if is_full or n_blocks(e.limit, must_fit) > s[st.FREE]:
            s[st.BLOCKED] = 1
            return
        pop_waiting(e.scalar, e.request)
        v = link_running(e.scalar, e.slot, i)
        if e.request[i, st.START] < 0:
            e.request[i, st.START] = s[st.NOW]
        s[st.FREE] -= n_blocks(e.limit, given)
        _read_chunk(e, v, given, chunk)
        budget -= chunk


@part
def schedule_end(e: Engine) -> int:
    """Duration of what is scheduled; its arithmetic and memory at their peaks are noted."""
    s, flight_s = e.scalar, e.flight_s
    if s[st.PREFILL_TOKENS] > 0:
        step_s, flight_s[0], flight_s[1] = mixed_step_s(e)
        return ticks(step_s)
    if s[st.N_DECODES] == 0:
        return 0
    lasts, _, regime = decode_line(e)
    flight_s[0], flight_s[1] = peaks_s(e, regime, st.ONE)
    return lasts


@part
def begin(e: Engine) -> None:
    """Schedule one step from now and compute its end."""
    s = e.scalar
    s[st.MARK] = st.NONE
    s[st.PREFILL_TOKENS] = 0
    s[st.PREFILL_PAIRS] = 0
    s[st.N_ENDED] = 0
    s[st.USED_BEFORE] = e.limit[st.N_BLOCKS] - s[st.FREE]
    n_before = s[st.N_PREEMPTIONS]
    _take_blocks(e)
    budget = e.limit[st.MAX_TOKENS] - s[st.N_DECODES]
    if s[st.PARTIAL] >= 0:
        budget = _continue_partial(e, budget)
    if s[st.N_PREEMPTIONS] == n_before:
        _admit(e, budget)
    lasts = schedule_end(e) + s[st.FRAC]
    s[st.FLIGHT_END] = s[st.NOW] + (lasts >> st.FRAC_BITS)
    s[st.FLIGHT_FRAC] = lasts & st.FRAC_MASK
    s[st.IN_FLIGHT] = 1


@part
def _release(e: Engine, v: int) -> None:
    """The slot's request has all its tokens."""
    s = e.scalar
    i = e.slot[v, st.ID]
    e.request[i, st.END] = s[st.NOW]
    e.request[i, st.MADE] = e.request[i, st.OUTPUT]
    s[st.FREE] += n_blocks(e.limit, e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - 1)
    unlink_running(e.scalar, e.slot, v)
    s[st.OUTSTANDING] -= 1
    s[st.BLOCKED] = 0


@part
def _finish_decodes(e: Engine) -> None:
    """Whatever was noted for this step ends now."""
    s, slot = e.scalar, e.slot
    at = s[st.STEP] & (e.ring.shape[0] - 1)
    v = e.ring[at]
    if v < 0:
        return
    while v >= 0:
        after = slot[v, st.PEER_AFTER]
        count_phase(e.scalar, e.limit, slot[v, st.OFFSET], st.MINUS_ONE)
        s[st.N_DECODES] -= 1
        s[st.CONTEXT] -= slot[v, st.OFFSET] + s[st.STEP]
        _release(e, v)
        v = after
    e.ring[at] = st.NONE
    e.word[at >> st.WORD_BITS] &= ~(1 << (at & st.WORD_MASK))


@part
def _start_decodes(e: Engine) -> None:
    """Prompts that were read to their end have one more token, and decode from now on."""
    s, slot = e.scalar, e.slot
    v = s[st.MARK]
    while v >= 0:
        after = slot[v, st.AFTER]
        if v != s[st.PARTIAL]:
            i = slot[v, st.ID]
            e.request[i, st.MADE] += 1
            made = e.request[i, st.MADE]
            if e.request[i, st.FIRST] < 0:
                e.request[i, st.FIRST] = s[st.NOW]
            if made == e.request[i, st.OUTPUT]:
                _release(e, v)
            else:
                n_tokens = e.request[i, st.INPUT] + made
                slot[v, st.OFFSET] = n_tokens - s[st.STEP]
                count_phase(e.scalar, e.limit, slot[v, st.OFFSET], st.ONE)
                s[st.N_DECODES] += 1
                s[st.CONTEXT] += n_tokens
                note_finish(e.ring, e.word, e.slot, v, s[st.STEP] + e.request[i, st.OUTPUT] - made)
        v = after


@part
def complete(e: Engine) -> None:
    """The step in flight ends: the clock moves, tokens appear, finished requests leave."""
    s = e.scalar
    used = 0.5 * (s[st.USED_BEFORE] + e.limit[st.N_BLOCKS] - s[st.FREE])
    account(e.scalar, e.bins, s[st.FLIGHT_END], used, (e.flight_s[0], e.flight_s[1]))
    s[st.COMPUTED] += s[st.PREFILL_TOKENS] + s[st.N_DECODES]
    s[st.N_STEPS] += min(1, s[st.PREFILL_TOKENS] + s[st.N_DECODES])
    begun = s[st.NOW]
    s[st.NOW], s[st.FRAC] = s[st.FLIGHT_END], s[st.FLIGHT_FRAC]
    s[st.IN_FLIGHT] = 0
    s[st.STEP] += 1
    s[st.CONTEXT] += s[st.N_DECODES]
    _finish_decodes(e)
    _start_decodes(e)
    learn(e.scalar, e.limit, begun)


@part
def _is_plan_known(e: Engine) -> bool:
    """Nothing has come or gone since a jump was planned."""
    s = e.scalar
    if s[st.PLAN_AT] != s[st.STEP]:
        return False
    is_same_queue = s[st.PLAN_HEAD] == s[st.WAIT_HEAD] and s[st.PLAN_STOP] == s[st.STOP]
    return bool(is_same_queue and s[st.PLAN_CONTEXT] == s[st.CONTEXT])


@part
def _known_plan(e: Engine) -> tuple[int, int, int, int, int]:
    s = e.scalar
    return (
        s[st.PLAN_STEPS],
        s[st.PLAN_LASTS],
        s[st.PLAN_BLOCKS],
        s[st.PLAN_REGIME],
        s[st.PLAN_EARLIER],
    )


@part
def _note_plan(e: Engine, plan: tuple[int, int, int, int, int]) -> None:
    """The jump ends later than asked for; unless something changes, it will be taken as it is."""
    s = e.scalar
    s[st.PLAN_STEPS], s[st.PLAN_LASTS], s[st.PLAN_BLOCKS], s[st.PLAN_REGIME], s[st.PLAN_EARLIER] = (
        plan
    )
    s[st.PLAN_AT], s[st.PLAN_CONTEXT] = s[st.STEP], s[st.CONTEXT]
    s[st.PLAN_HEAD], s[st.PLAN_STOP] = s[st.WAIT_HEAD], s[st.STOP]


@part
def _jump(e: Engine, until: int) -> int:
    """Take as many decode steps at once as nothing can interrupt.

    TAKEN; MUST_SCHEDULE where not one is possible; where they end after `until`, that instant,
    and nothing is taken: what arrives before may still change the plan.
    """
    s = e.scalar
    k, lasts, needed, regime, earlier = _known_plan(e) if _is_plan_known(e) else plan_jump(e)
    if k == 0:
        return MUST_SCHEDULE
    end = s[st.NOW] + ((lasts + s[st.FRAC]) >> st.FRAC_BITS)
    if end > until:
        _note_plan(e, (k, lasts, needed, regime, earlier))
        return int(end)
    begun = s[st.NOW] + ((earlier + s[st.FRAC]) >> st.FRAC_BITS)
    lasts += s[st.FRAC]
    used = e.limit[st.N_BLOCKS] - s[st.FREE] + 0.5 * needed
    account(e.scalar, e.bins, end, used, peaks_s(e, regime, k))
    s[st.NOW], s[st.FRAC] = end, lasts & st.FRAC_MASK
    s[st.COMPUTED] += k * s[st.N_DECODES]
    s[st.N_STEPS] += k
    s[st.STEP] += k
    s[st.CONTEXT] += k * s[st.N_DECODES]
    s[st.FREE] -= needed
    _finish_decodes(e)
    learn(e.scalar, e.limit, begun)
    return TAKEN


@part
def _is_decoding_only(e: Engine) -> bool:
    """Nothing is half read, and nobody waits who might be admitted."""
    s = e.scalar
    head = s[st.WAIT_HEAD]
    is_waiting = head >= 0 and e.request[head, st.ARRIVE] <= s[st.KNOWN] and s[st.BLOCKED] == 0
    return bool(s[st.PARTIAL] < 0 and s[st.N_DECODES] > 0 and not is_waiting)


@part
def _is_idle(e: Engine) -> bool:
    """Nothing runs and nobody is in the queue; an engine that runs nothing sleeps until then."""
    s = e.scalar
    head = s[st.WAIT_HEAD]
    if s[st.N_RUNNING] == 0 and head >= 0 and e.request[head, st.ARRIVE] > s[st.NOW]:
        s[st.NOW], s[st.FRAC] = e.request[head, st.ARRIVE], 0
        s[st.KNOWN] = s[st.NOW]
    return bool(s[st.N_RUNNING] == 0 and head < 0)


@part
def advance(e: Engine, until: int) -> int:
    """Bring one engine up to this instant; the answer is when it next has something to tell.

    A step that begins at `until` or later is left alone: what arrives then must be seen first.
    """
    s = e.scalar
    while True:
        if s[st.IN_FLIGHT]:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            complete(e)
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
            begin(e)
