"""One step of an engine with more policies: vLLM V1's scheduler with its options.

Prefixes are found and entered, the urgent come first, long prompts take a share of a step, drafts
are checked along. Where nothing is short, a step costs as little as that of the plain scheduler;
otherwise what runs is walked in order.
"""

from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.engine import schedule_end
from gpuplan.simulation.serving.kernels.featured import (
    AT_NODE,
    CHUNK,
    DONE,
    HIT,
    NODES,
    ORDER,
    STAMP,
    AnyEngine,
)
from gpuplan.simulation.serving.kernels.held import far
from gpuplan.simulation.serving.kernels.positions import coming_gain, due_blocks
from gpuplan.simulation.serving.kernels.prefix import enter, find, give_back, hold, take
from gpuplan.simulation.serving.kernels.priority import (
    BY_BLOCKS,
    BY_SEQUENCES,
    leave_queue,
    next_to_admit,
    queue_again,
    victim,
)
from gpuplan.simulation.serving.kernels.state import (
    AFTER,
    ASKED_TOKENS,
    BLOCK_BITS,
    BLOCKED,
    CHECKED,
    CONTEXT,
    FLIGHT_END,
    FLIGHT_FRAC,
    FRAC,
    FRAC_BITS,
    FRAC_MASK,
    FREE,
    GAIN,
    GIVEN,
    HEAD,
    HIT_TOKENS,
    ID,
    IN_FLIGHT,
    INPUT,
    IS_RESERVING,
    IS_WALKING,
    LONG_PREFILL,
    MADE,
    MARK,
    MAX_SEQUENCES,
    MAX_TOKENS,
    MINUS_ONE,
    N_BLOCKS,
    N_DECODES,
    N_ENDED,
    N_PARTIALS,
    N_PREEMPTIONS,
    N_RUNNING,
    NONE,
    NOW,
    OFFSET,
    ONE,
    ORDERED,
    PARKED,
    PREEMPTED,
    PREFILL_PAIRS,
    PREFILL_TOKENS,
    START,
    STEP,
    TAIL,
    TICK,
    USED_BEFORE,
    Ints,
    count_phase,
    forget_finish,
    link_running,
    n_blocks,
    unlink_running,
)


@part
def n_drafts(limit: Ints) -> int:
    """Tokens that a decode checks beyond its own."""
    return int(limit[CHECKED] - 1)


@part
def n_total(request: Ints, i: int) -> int:
    """Tokens that the request must have read before its next one."""
    return int(request[i, INPUT] + request[i, MADE])


@part
def count_decode(e: AnyEngine, v: int, more: int) -> None:
    """So many decodes more, or less, that need a block at the same positions as this one."""
    count_phase(e.scalar, e.limit, e.slot[v, OFFSET] + n_drafts(e.limit), more)


@part
def _room(e: AnyEngine, i: int, end: int) -> int:
    """Blocks of a prompt read so far; one that ends has room for its drafts as decodes have."""
    if end < n_total(e.request, i):
        return n_blocks(e.limit, end)
    return n_blocks(e.limit, end + 1 - coming_gain(e) + n_drafts(e.limit))


@part
def _share(e: AnyEngine, n_left: int, budget: int) -> int:
    """Tokens of one prompt in this step."""
    longest = e.limit[LONG_PREFILL]
    if 0 < longest < n_left:
        n_left = longest
    return min(n_left, budget)


@part
def _count_prompt(e: AnyEngine, v: int, sign: int) -> None:
    """What the slot's chunk adds to the step, or takes from it again."""
    s, done, chunk = e.scalar, e.slot[v, DONE], e.slot[v, CHUNK]
    s[PREFILL_TOKENS] += sign * chunk
    s[PREFILL_PAIRS] += sign * chunk * (2 * done + chunk)
    if chunk > 0 and done + chunk == n_total(e.request, e.slot[v, ID]):
        s[N_ENDED] += sign


@part
def _read(e: AnyEngine, v: int, chunk: int, n_new_blocks: int) -> None:
    """So many further tokens of the slot's prompt are read in this step."""
    s, slot = e.scalar, e.slot
    take(e, n_new_blocks)
    slot[v, CHUNK] = chunk
    _count_prompt(e, v, ONE)
    enter(e, v, slot[v, DONE] + chunk)
    if s[MARK] < 0:
        s[MARK] = v


@part
def _forget_decode(e: AnyEngine, v: int) -> None:
    s = e.scalar
    count_decode(e, v, MINUS_ONE)
    s[N_DECODES] -= 1
    s[CONTEXT] -= e.slot[v, OFFSET] + s[STEP]
    forget_finish(e.ring, e.word, e.slot, v)


@part
def _preempt(e: AnyEngine, v: int) -> int:
    """The slot's request loses its blocks and waits; the tokens of this step that it had."""
    s, slot = e.scalar, e.slot
    i, done = slot[v, ID], slot[v, DONE]
    if s[MARK] == v:
        s[MARK] = slot[v, AFTER]
    if done >= 0:
        refund = slot[v, CHUNK]
        end = done + refund
        _count_prompt(e, v, MINUS_ONE)
        s[N_PARTIALS] -= 1
        give_back(far(e), v, _room(e, i, end), end)
    else:
        is_scheduled = slot[v, STAMP] == s[TICK]
        refund = e.limit[CHECKED] if is_scheduled else 0
        n_tokens = slot[v, OFFSET] + s[STEP]
        n_seen = n_tokens if is_scheduled else n_tokens - s[GAIN]
        e.request[i, MADE] = n_tokens - e.request[i, INPUT]
        _forget_decode(e, v)
        give_back(far(e), v, n_blocks(e.limit, n_seen + n_drafts(e.limit)), n_seen)
    unlink_running(e.scalar, e.slot, v)
    queue_again(e, i)
    e.request[i, PREEMPTED] += 1
    e.request[i, GIVEN] = 0
    s[N_PREEMPTIONS] += 1
    return int(refund)


@part
def drop_running(e: AnyEngine, v: int) -> None:
    """The slot's request leaves between two steps; what it wrote may be found again."""
    s, slot = e.scalar, e.slot
    done = slot[v, DONE]
    if done >= 0:
        s[N_PARTIALS] -= 1
        give_back(far(e), v, n_blocks(e.limit, done), done)
    else:
        n_seen = slot[v, OFFSET] + s[STEP] - s[GAIN]
        _forget_decode(e, v)
        give_back(far(e), v, n_blocks(e.limit, n_seen + n_drafts(e.limit)), n_seen)
    unlink_running(e.scalar, e.slot, v)


@part
def _park(e: AnyEngine, v: int) -> None:
    """From this slot on nobody gets a token in this step."""
    s, slot = e.scalar, e.slot
    s[PARKED] = v
    while v >= 0:
        if slot[v, DONE] < 0:
            _forget_decode(e, v)
        v = slot[v, AFTER]


@part
def _wanted(e: AnyEngine, v: int, budget: int) -> tuple[int, int]:
    """Tokens of the slot in this step, and the blocks it lacks for them."""
    s, i, done = e.scalar, e.slot[v, ID], e.slot[v, DONE]
    if done >= 0:
        n_new = _share(e, n_total(e.request, i) - done, budget)
        return n_new, int(_room(e, i, done + n_new) - n_blocks(e.limit, done))
    n_slots = e.slot[v, OFFSET] + s[STEP] + n_drafts(e.limit)
    return e.limit[CHECKED], int(n_blocks(e.limit, n_slots) - n_blocks(e.limit, n_slots - s[GAIN]))


@rare
def _walk(e: AnyEngine) -> int:
    """What runs gets tokens and blocks in order, preempting where they lack; the budget left."""
    s, slot, budget, v = e.scalar, e.slot, e.limit[MAX_TOKENS], e.scalar[HEAD]
    s[IS_WALKING] = 1
    while v >= 0 and budget > 0:
        n_new, more = _wanted(e, v, budget)
        after, is_gone = NONE, False
        while more > s[FREE] and not is_gone:
            worst = victim(e)
            is_gone = worst == v
            after = slot[v, AFTER]
            budget += _preempt(e, worst)
        if is_gone:
            v = after
            break
        budget -= n_new
        slot[v, STAMP] = s[TICK]
        if slot[v, DONE] >= 0:
            _read(e, v, n_new, more)
        else:
            take(e, more)
        v = slot[v, AFTER]
    s[IS_WALKING] = 0
    if v >= 0:
        _park(e, v)
    return int(budget)


@part
def _go_on(e: AnyEngine) -> int:
    """What runs gets its tokens and blocks; at once where neither is short."""
    s, slot = e.scalar, e.slot
    budget = e.limit[MAX_TOKENS] - s[N_DECODES] * e.limit[CHECKED]
    needed = due_blocks(e)
    if s[N_PARTIALS] == 0 and needed <= s[FREE]:
        take(e, needed)
        return int(budget)
    if s[N_PARTIALS] == 1 and e.limit[LONG_PREFILL] == 0:
        # Without a limit on long prompts only the last admitted can be half read.
        v = s[TAIL]
        i, done = slot[v, ID], slot[v, DONE]
        chunk = min(n_total(e.request, i) - done, budget)
        more = _room(e, i, done + chunk) - n_blocks(e.limit, done)
        if needed + more <= s[FREE]:
            _read(e, v, chunk, needed + more)
            return int(budget - chunk)
    return _walk(far(e))


@part
def _seat(e: AnyEngine, i: int, done: int) -> int:
    """The request runs; so many of its tokens are there already."""
    s, slot = e.scalar, e.slot
    leave_queue(e)
    v = link_running(e.scalar, e.slot, i)
    slot[v, ORDER], slot[v, DONE], slot[v, STAMP] = s[ORDERED], done, NONE
    slot[v, NODES] = slot[v, AT_NODE] = NONE
    s[ORDERED] += 1
    s[N_PARTIALS] += 1
    if e.request[i, START] < 0:
        e.request[i, START] = s[NOW]
        e.extra[i, HIT] = done
        s[HIT_TOKENS] += done
        s[ASKED_TOKENS] += n_total(e.request, i)
    return v


@part
def _admit(e: AnyEngine, budget: int) -> None:
    """Waiting requests join in order while tokens, sequences and blocks last."""
    s = e.scalar
    s[BLOCKED] = 0
    while budget > 0:
        i = next_to_admit(e)
        if i < 0:
            return
        if s[N_RUNNING] == e.limit[MAX_SEQUENCES]:
            s[BLOCKED] = BY_SEQUENCES
            return
        n_tokens, given = n_total(e.request, i), e.request[i, GIVEN]
        hit, n_free, is_growing = (0, 0, False) if given > 0 else find(e, i, n_tokens)
        done = given if given > 0 else hit << e.limit[BLOCK_BITS]
        chunk = _share(e, n_tokens - done, budget)
        room = _room(e, i, done + chunk)
        # The most that a draft may need: who is blocked stays so whatever the next step gains.
        end = n_tokens if e.limit[IS_RESERVING] else done + chunk
        must_fit = n_blocks(e.limit, end + n_drafts(e.limit))
        if must_fit - hit + n_free > s[FREE]:
            # A text that is being written may be found longer after any step.
            s[BLOCKED] = 0 if is_growing else BY_BLOCKS
            return
        v = _seat(e, i, done)
        hold(e, v, hit)
        _read(e, v, chunk, room - hit)
        budget -= chunk


@part
def begin_featured(e: AnyEngine) -> None:
    """Schedule one step from now and compute its end."""
    s = e.scalar
    s[MARK] = s[PARKED] = NONE
    s[PREFILL_TOKENS] = s[PREFILL_PAIRS] = s[N_ENDED] = 0
    s[USED_BEFORE] = e.limit[N_BLOCKS] - s[FREE]
    n_before = s[N_PREEMPTIONS]
    budget = _go_on(e)
    s[BLOCKED] = 0
    if s[N_PREEMPTIONS] == n_before:
        _admit(e, budget)
    lasts = schedule_end(e) + s[FRAC]
    s[FLIGHT_END] = s[NOW] + (lasts >> FRAC_BITS)
    s[FLIGHT_FRAC] = lasts & FRAC_MASK
    s[IN_FLIGHT] = 1
