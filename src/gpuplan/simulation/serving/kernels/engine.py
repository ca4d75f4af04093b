"""One engine: vLLM V1's scheduler, first come first served, with jumps over unchanged batches.

A step is begun (blocks taken, prompts admitted, end computed) and later completed (tokens gained,
finished requests released). While nothing but decoding can happen, many steps are taken at once;
the result is the same as stepping, to the last bit. Rules and invariants: docs/model.
"""

from gpuplan.simulation.serving.kernels.account import account
from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.cost import decode_line, mixed_step_s, peaks_s, ticks
from gpuplan.simulation.serving.kernels.held import apart
from gpuplan.simulation.serving.kernels.jump import plan_jump
from gpuplan.simulation.serving.kernels.state import (
    AFTER,
    ARRIVE,
    BLOCK_BITS,
    BLOCKED,
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
    GIVEN,
    HEAD,
    ID,
    IN_FLIGHT,
    INPUT,
    IS_JUMPING,
    IS_RESERVING,
    KNOWN,
    MADE,
    MARK,
    MAX_SEQUENCES,
    MAX_TOKENS,
    MINUS_ONE,
    N_BLOCKS,
    N_DECODES,
    N_ENDED,
    N_PREEMPTIONS,
    N_RUNNING,
    N_STEPS,
    NONE,
    NOW,
    OFFSET,
    ONE,
    OUTPUT,
    OUTSTANDING,
    PARTIAL,
    PARTIAL_DONE,
    PEER_AFTER,
    PLAN_AT,
    PLAN_BLOCKS,
    PLAN_CONTEXT,
    PLAN_EARLIER,
    PLAN_HEAD,
    PLAN_LASTS,
    PLAN_REGIME,
    PLAN_STEPS,
    PLAN_STOP,
    PREEMPTED,
    PREFILL_PAIRS,
    PREFILL_TOKENS,
    START,
    STEP,
    STOP,
    TAIL,
    USED_BEFORE,
    WAIT_HEAD,
    WORD_BITS,
    WORD_MASK,
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

TAKEN = 0
MUST_SCHEDULE = -1


@rare
def _preempt_tail(e: Engine) -> None:
    """The last admitted loses its blocks and waits in front; it will recompute all it had."""
    s, slot = e.scalar, e.slot
    v = s[TAIL]
    i = slot[v, ID]
    if v == s[PARTIAL]:
        s[FREE] += n_blocks(e.limit, s[PARTIAL_DONE])
        s[PARTIAL] = NONE
    else:
        n_tokens = slot[v, OFFSET] + s[STEP]
        e.request[i, MADE] = n_tokens - e.request[i, INPUT]
        s[FREE] += n_blocks(e.limit, n_tokens - 1)
        count_phase(e.scalar, e.limit, slot[v, OFFSET], MINUS_ONE)
        s[N_DECODES] -= 1
        s[CONTEXT] -= n_tokens
        forget_finish(e.ring, e.word, e.slot, v)
    unlink_running(e.scalar, e.slot, v)
    prepend_waiting(e.scalar, e.request, i)
    e.request[i, PREEMPTED] += 1
    e.request[i, GIVEN] = 0
    s[N_PREEMPTIONS] += 1
    s[BLOCKED] = 0


@part
def _take_blocks(e: Engine) -> None:
    """Every decode that has filled its last block gets one, in order; the tail makes room."""
    s, slot = e.scalar, e.slot
    mask = (1 << e.limit[BLOCK_BITS]) - 1
    needed = blocks_between(e.scalar, e.limit, s[STEP], ONE)
    if needed <= s[FREE]:
        s[FREE] -= needed
        return
    v = s[HEAD]
    while v >= 0 and v != s[PARTIAL]:
        if ((slot[v, OFFSET] + s[STEP] - 1) & mask) == 0:
            while s[FREE] == 0:
                victim = s[TAIL]
                _preempt_tail(apart(e))
                if victim == v:
                    return
            s[FREE] -= 1
        v = slot[v, AFTER]


@part
def _read_chunk(e: Engine, v: int, done: int, chunk: int) -> None:
    """So many further tokens of the slot's prompt are read in this step."""
    s = e.scalar
    i = e.slot[v, ID]
    s[FREE] -= n_blocks(e.limit, done + chunk) - n_blocks(e.limit, done)
    s[PREFILL_TOKENS] += chunk
    s[PREFILL_PAIRS] += chunk * (2 * done + chunk)
    if s[MARK] < 0:
        s[MARK] = v
    if done + chunk < e.request[i, INPUT] + e.request[i, MADE]:
        s[PARTIAL], s[PARTIAL_DONE] = v, done + chunk
    else:
        s[PARTIAL] = NONE
        s[N_ENDED] += 1


@part
def _continue_partial(e: Engine, budget: int) -> int:
    """The prompt that is half read goes on; being the tail, it can only preempt itself."""
    s = e.scalar
    v, done = s[PARTIAL], s[PARTIAL_DONE]
    i = e.slot[v, ID]
    chunk = min(e.request[i, INPUT] + e.request[i, MADE] - done, budget)
    if n_blocks(e.limit, done + chunk) - n_blocks(e.limit, done) > s[FREE]:
        _preempt_tail(apart(e))
        return budget
    _read_chunk(e, v, done, chunk)
    return int(budget - chunk)


@part
def _admit(e: Engine, budget: int) -> None:
    """Waiting requests join in order while tokens, sequences and blocks last."""
    s = e.scalar
    s[BLOCKED] = 0
    while budget > 0:
        i = s[WAIT_HEAD]
        if i < 0 or e.request[i, ARRIVE] > s[KNOWN]:
            return
        n_tokens = e.request[i, INPUT] + e.request[i, MADE]
        given = e.request[i, GIVEN]
        chunk = min(n_tokens - given, budget)
        must_fit = n_tokens if e.limit[IS_RESERVING] else given + chunk
        is_full = s[N_RUNNING] == e.limit[MAX_SEQUENCES]
        if is_full or n_blocks(e.limit, must_fit) > s[FREE]:
            s[BLOCKED] = 1
            return
        pop_waiting(e.scalar, e.request)
        v = link_running(e.scalar, e.slot, i)
        if e.request[i, START] < 0:
            e.request[i, START] = s[NOW]
        s[FREE] -= n_blocks(e.limit, given)
        _read_chunk(e, v, given, chunk)
        budget -= chunk


@part
def schedule_end(e: Engine) -> int:
    """Duration of what is scheduled; its arithmetic and memory at their peaks are noted."""
    s, flight_s = e.scalar, e.flight_s
    if s[PREFILL_TOKENS] > 0:
        step_s, flight_s[0], flight_s[1] = mixed_step_s(e)
        return ticks(step_s)
    if s[N_DECODES] == 0:
        return 0
    lasts, _, regime = decode_line(e)
    flight_s[0], flight_s[1] = peaks_s(e, regime, ONE)
    return lasts


@part
def begin(e: Engine) -> None:
    """Schedule one step from now and compute its end."""
    s = e.scalar
    s[MARK] = NONE
    s[PREFILL_TOKENS] = 0
    s[PREFILL_PAIRS] = 0
    s[N_ENDED] = 0
    s[USED_BEFORE] = e.limit[N_BLOCKS] - s[FREE]
    n_before = s[N_PREEMPTIONS]
    _take_blocks(e)
    budget = e.limit[MAX_TOKENS] - s[N_DECODES]
    if s[PARTIAL] >= 0:
        budget = _continue_partial(e, budget)
    if s[N_PREEMPTIONS] == n_before:
        _admit(e, budget)
    lasts = schedule_end(e) + s[FRAC]
    s[FLIGHT_END] = s[NOW] + (lasts >> FRAC_BITS)
    s[FLIGHT_FRAC] = lasts & FRAC_MASK
    s[IN_FLIGHT] = 1


@part
def _release(e: Engine, v: int) -> None:
    """The slot's request has all its tokens."""
    s = e.scalar
    i = e.slot[v, ID]
    e.request[i, END] = s[NOW]
    e.request[i, MADE] = e.request[i, OUTPUT]
    s[FREE] += n_blocks(e.limit, e.request[i, INPUT] + e.request[i, OUTPUT] - 1)
    unlink_running(e.scalar, e.slot, v)
    s[OUTSTANDING] -= 1
    s[BLOCKED] = 0


@part
def _finish_decodes(e: Engine) -> None:
    """Whatever was noted for this step ends now."""
    s, slot = e.scalar, e.slot
    at = s[STEP] & (e.ring.shape[0] - 1)
    v = e.ring[at]
    if v < 0:
        return
    while v >= 0:
        after = slot[v, PEER_AFTER]
        count_phase(e.scalar, e.limit, slot[v, OFFSET], MINUS_ONE)
        s[N_DECODES] -= 1
        s[CONTEXT] -= slot[v, OFFSET] + s[STEP]
        _release(e, v)
        v = after
    e.ring[at] = NONE
    e.word[at >> WORD_BITS] &= ~(1 << (at & WORD_MASK))


@part
def _start_decodes(e: Engine) -> None:
    """Prompts that were read to their end have one more token, and decode from now on."""
    s, slot = e.scalar, e.slot
    v = s[MARK]
    while v >= 0:
        after = slot[v, AFTER]
        if v != s[PARTIAL]:
            i = slot[v, ID]
            e.request[i, MADE] += 1
            made = e.request[i, MADE]
            if e.request[i, FIRST] < 0:
                e.request[i, FIRST] = s[NOW]
            if made == e.request[i, OUTPUT]:
                _release(e, v)
            else:
                n_tokens = e.request[i, INPUT] + made
                slot[v, OFFSET] = n_tokens - s[STEP]
                count_phase(e.scalar, e.limit, slot[v, OFFSET], ONE)
                s[N_DECODES] += 1
                s[CONTEXT] += n_tokens
                note_finish(e.ring, e.word, e.slot, v, s[STEP] + e.request[i, OUTPUT] - made)
        v = after


@part
def complete(e: Engine) -> None:
    """The step in flight ends: the clock moves, tokens appear, finished requests leave."""
    s = e.scalar
    used = 0.5 * (s[USED_BEFORE] + e.limit[N_BLOCKS] - s[FREE])
    account(e.scalar, e.bins, s[FLIGHT_END], used, (e.flight_s[0], e.flight_s[1]))
    s[COMPUTED] += s[PREFILL_TOKENS] + s[N_DECODES]
    s[N_STEPS] += min(1, s[PREFILL_TOKENS] + s[N_DECODES])
    begun = s[NOW]
    s[NOW], s[FRAC] = s[FLIGHT_END], s[FLIGHT_FRAC]
    s[IN_FLIGHT] = 0
    s[STEP] += 1
    s[CONTEXT] += s[N_DECODES]
    _finish_decodes(e)
    _start_decodes(e)
    learn(e.scalar, e.limit, begun)


@part
def _is_plan_known(e: Engine) -> bool:
    """Nothing has come or gone since a jump was planned."""
    s = e.scalar
    if s[PLAN_AT] != s[STEP]:
        return False
    is_same_queue = s[PLAN_HEAD] == s[WAIT_HEAD] and s[PLAN_STOP] == s[STOP]
    return bool(is_same_queue and s[PLAN_CONTEXT] == s[CONTEXT])


@part
def _known_plan(e: Engine) -> tuple[int, int, int, int, int]:
    s = e.scalar
    return s[PLAN_STEPS], s[PLAN_LASTS], s[PLAN_BLOCKS], s[PLAN_REGIME], s[PLAN_EARLIER]


@part
def _note_plan(e: Engine, plan: tuple[int, int, int, int, int]) -> None:
    """The jump ends later than asked for; unless something changes, it will be taken as it is."""
    s = e.scalar
    s[PLAN_STEPS], s[PLAN_LASTS], s[PLAN_BLOCKS], s[PLAN_REGIME], s[PLAN_EARLIER] = plan
    s[PLAN_AT], s[PLAN_CONTEXT] = s[STEP], s[CONTEXT]
    s[PLAN_HEAD], s[PLAN_STOP] = s[WAIT_HEAD], s[STOP]


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
    end = s[NOW] + ((lasts + s[FRAC]) >> FRAC_BITS)
    if end > until:
        _note_plan(e, (k, lasts, needed, regime, earlier))
        return int(end)
    begun = s[NOW] + ((earlier + s[FRAC]) >> FRAC_BITS)
    lasts += s[FRAC]
    used = e.limit[N_BLOCKS] - s[FREE] + 0.5 * needed
    account(e.scalar, e.bins, end, used, peaks_s(e, regime, k))
    s[NOW], s[FRAC] = end, lasts & FRAC_MASK
    s[COMPUTED] += k * s[N_DECODES]
    s[N_STEPS] += k
    s[STEP] += k
    s[CONTEXT] += k * s[N_DECODES]
    s[FREE] -= needed
    _finish_decodes(e)
    learn(e.scalar, e.limit, begun)
    return TAKEN


@part
def _is_decoding_only(e: Engine) -> bool:
    """Nothing is half read, and nobody waits who might be admitted."""
    s = e.scalar
    head = s[WAIT_HEAD]
    is_waiting = head >= 0 and e.request[head, ARRIVE] <= s[KNOWN] and s[BLOCKED] == 0
    return bool(s[PARTIAL] < 0 and s[N_DECODES] > 0 and not is_waiting)


@part
def _is_idle(e: Engine) -> bool:
    """Nothing runs and nobody is in the queue; an engine that runs nothing sleeps until then."""
    s = e.scalar
    head = s[WAIT_HEAD]
    if s[N_RUNNING] == 0 and head >= 0 and e.request[head, ARRIVE] > s[NOW]:
        s[NOW], s[FRAC] = e.request[head, ARRIVE], 0
        s[KNOWN] = s[NOW]
    return bool(s[N_RUNNING] == 0 and head < 0)


@part
def advance(e: Engine, until: int) -> int:
    """Bring one engine up to this instant; the answer is when it next has something to tell.

    A step that begins at `until` or later is left alone: what arrives then must be seen first.
    """
    s = e.scalar
    while True:
        if s[IN_FLIGHT]:
            if s[FLIGHT_END] > until:
                return int(s[FLIGHT_END])
            complete(e)
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
            begin(e)
