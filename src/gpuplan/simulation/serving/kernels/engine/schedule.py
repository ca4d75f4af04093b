"""One step of an engine with more policies: vLLM V1's scheduler with its options.

Prefixes are found and entered, the urgent come first, long prompts take a share of a step, drafts
are checked along. Where nothing is short, a step costs as little as that of the plain scheduler;
otherwise what runs is walked in order.
"""

from gpuplan.simulation.serving.kernels.engine import featured as ft
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.featured import AnyEngine
from gpuplan.simulation.serving.kernels.engine.loop import schedule_end
from gpuplan.simulation.serving.kernels.engine.positions import coming_gain, due_blocks
from gpuplan.simulation.serving.kernels.engine.queue import (
    BY_BLOCKS,
    BY_SEQUENCES,
    leave_queue,
    next_to_admit,
    queue_again,
    victim,
)
from gpuplan.simulation.serving.kernels.engine.state import (
    Ints,
    count_phase,
    forget_finish,
    link_running,
    n_blocks,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.jit.held import far
from gpuplan.simulation.serving.kernels.prefix.cache import enter, find, give_back, hold, take


@part
def n_drafts(limit: Ints) -> int:
    """Tokens that a decode checks beyond its own."""
    return int(limit[st.CHECKED] - 1)


@part
def n_total(request: Ints, i: int) -> int:
    """Tokens that the request must have read before its next one."""
    return int(request[i, st.INPUT] + request[i, st.MADE])


@part
def count_decode(e: AnyEngine, v: int, more: int) -> None:
    """So many decodes more, or less, that need a block at the same positions as this one."""
    count_phase(e.scalar, e.limit, e.slot[v, st.OFFSET] + n_drafts(e.limit), more)


@part
def _room(e: AnyEngine, i: int, end: int) -> int:
    """Blocks of a prompt read so far; one that ends has room for its drafts as decodes have."""
    if end < n_total(e.request, i):
        return n_blocks(e.limit, end)
    return n_blocks(e.limit, end + 1 - coming_gain(e) + n_drafts(e.limit))


@part
def _share(e: AnyEngine, n_left: int, budget: int) -> int:
    """Tokens of one prompt in this step."""
    longest = e.limit[st.LONG_PREFILL]
    if 0 < longest < n_left:
        n_left = longest
    return min(n_left, budget)


@part
def _count_prompt(e: AnyEngine, v: int, sign: int) -> None:
    """What the slot's chunk adds to the step, or takes from it again."""
    s, done, chunk = e.scalar, e.slot[v, ft.DONE], e.slot[v, ft.CHUNK]
    s[st.PREFILL_TOKENS] += sign * chunk
    s[st.PREFILL_PAIRS] += sign * chunk * (2 * done + chunk)
    if chunk > 0 and done + chunk == n_total(e.request, e.slot[v, st.ID]):
        s[st.N_ENDED] += sign


@part
def _read(e: AnyEngine, v: int, chunk: int, n_new_blocks: int) -> None:
    """So many further tokens of the slot's prompt are read in this step."""
    s, slot = e.scalar, e.slot
    take(e, n_new_blocks)
    slot[v, ft.CHUNK] = chunk
    _count_prompt(e, v, st.ONE)
    enter(e, v, slot[v, ft.DONE] + chunk)
    if s[st.MARK] < 0:
        s[st.MARK] = v


@part
def _forget_decode(e: AnyEngine, v: int) -> None:
    s = e.scalar
    count_decode(e, v, st.MINUS_ONE)
    s[st.N_DECODES] -= 1
    s[st.CONTEXT] -= e.slot[v, st.OFFSET] + s[st.STEP]
    forget_finish(e.ring, e.word, e.slot, v)


@part
def _preempt(e: AnyEngine, v: int) -> int:
    """The slot's request loses its blocks and waits; the tokens of this step that it had."""
    s, slot = e.scalar, e.slot
    i, done = slot[v, st.ID], slot[v, ft.DONE]
    if s[st.MARK] == v:
        s[st.MARK] = slot[v, st.AFTER]
    if done >= 0:
        refund = slot[v, ft.CHUNK]
        end = done + refund
        _count_prompt(e, v, st.MINUS_ONE)
        s[st.N_PARTIALS] -= 1
        give_back(far(e), v, _room(e, i, end), end)
    else:
        is_scheduled = slot[v, ft.STAMP] == s[st.TICK]
        refund = e.limit[st.CHECKED] if is_scheduled else 0
        n_tokens = slot[v, st.OFFSET] + s[st.STEP]
        n_seen = n_tokens if is_scheduled else n_tokens - s[st.GAIN]
        e.request[i, st.MADE] = n_tokens - e.request[i, st.INPUT]
        _forget_decode(e, v)
        give_back(far(e), v, n_blocks(e.limit, n_seen + n_drafts(e.limit)), n_seen)
    unlink_running(e.scalar, e.slot, v)
    queue_again(e, i)
    e.request[i, st.PREEMPTED] += 1
    e.request[i, st.GIVEN] = 0
    s[st.N_PREEMPTIONS] += 1
    return int(refund)


@part
def drop_running(e: AnyEngine, v: int) -> None:
    """The slot's request leaves between two steps; what it wrote may be found again."""
    s, slot = e.scalar, e.slot
    done = slot[v, ft.DONE]
    if done >= 0:
        s[st.N_PARTIALS] -= 1
        give_back(far(e), v, n_blocks(e.limit, done), done)
    else:
        n_seen = slot[v, st.OFFSET] + s[st.STEP] - s[st.GAIN]
        _forget_decode(e, v)
        give_back(far(e), v, n_blocks(e.limit, n_seen + n_drafts(e.limit)), n_seen)
    unlink_running(e.scalar, e.slot, v)


@part
def _park(e: AnyEngine, v: int) -> None:
    """From this slot on nobody gets a token in this step."""
    s, slot = e.scalar, e.slot
    s[st.PARKED] = v
    while v >= 0:
        if slot[v, ft.DONE] < 0:
            _forget_decode(e, v)
        v = slot[v, st.AFTER]


@part
def _wanted(e: AnyEngine, v: int, budget: int) -> tuple[int, int]:
    """Tokens of the slot in this step, and the blocks it lacks for them."""
    s, i, done = e.scalar, e.slot[v, st.ID], e.slot[v, ft.DONE]
    if done >= 0:
        n_new = _share(e, n_total(e.request, i) - done, budget)
        return n_new, int(_room(e, i, done + n_new) - n_blocks(e.limit, done))
    n_slots = e.slot[v, st.OFFSET] + s[st.STEP] + n_drafts(e.limit)
    return e.limit[st.CHECKED], int(
        n_blocks(e.limit, n_slots) - n_blocks(e.limit, n_slots - s[st.GAIN])
    )


@rare
def _walk(e: AnyEngine) -> int:
    """What runs gets tokens and blocks in order, preempting where they lack; the budget left."""
    s, slot, budget, v = e.scalar, e.slot, e.limit[st.MAX_TOKENS], e.scalar[st.HEAD]
    s[st.IS_WALKING] = 1
    while v >= 0 and budget > 0:
        n_new, more = _wanted(e, v, budget)
        after, is_gone = st.NONE, False
        while more > s[st.FREE] and not is_gone:
            worst = victim(e)
            is_gone = worst == v
            after = slot[v, st.AFTER]
            budget += _preempt(e, worst)
        if is_gone:
            v = after
            break
        budget -= n_new
        slot[v, ft.STAMP] = s[st.TICK]
        if slot[v, ft.DONE] >= 0:
            _read(e, v, n_new, more)
        else:
            take(e, more)
        v = slot[v, st.AFTER]
    s[st.IS_WALKING] = 0
    if v >= 0:
        _park(e, v)
    return int(budget)


@part
def _go_on(e: AnyEngine) -> int:
    """What runs gets its tokens and blocks; at once where neither is short."""
    s, slot = e.scalar, e.slot
    budget = e.limit[st.MAX_TOKENS] - s[st.N_DECODES] * e.limit[st.CHECKED]
    needed = due_blocks(e)
    if s[st.N_PARTIALS] == 0 and needed <= s[st.FREE]:
        take(e, needed)
        return int(budget)
    if s[st.N_PARTIALS] == 1 and e.limit[st.LONG_PREFILL] == 0:
        # Without a limit on long prompts only the last admitted can be half read.
        v = s[st.TAIL]
        i, done = slot[v, st.ID], slot[v, ft.DONE]
        chunk = min(n_total(e.request, i) - done, budget)
        more = _room(e, i, done + chunk) - n_blocks(e.limit, done)
        if needed + more <= s[st.FREE]:
            _read(e, v, chunk, needed + more)
            return int(budget - chunk)
    return _walk(far(e))


@part
def _seat(e: AnyEngine, i: int, done: int) -> int:
    """The request runs; so many of its tokens are there already."""
    s, slot = e.scalar, e.slot
    leave_queue(e)
    v = link_running(e.scalar, e.slot, i)
    slot[v, ft.ORDER], slot[v, ft.DONE], slot[v, ft.STAMP] = s[st.ORDERED], done, st.NONE
    slot[v, ft.NODES] = slot[v, ft.AT_NODE] = st.NONE
    s[st.ORDERED] += 1
    s[st.N_PARTIALS] += 1
    if e.request[i, st.START] < 0:
        e.request[i, st.START] = s[st.NOW]
        e.extra[i, ft.HIT] = done
        s[st.HIT_TOKENS] += done
        s[st.ASKED_TOKENS] += n_total(e.request, i)
    return v


@part
def _admit(e: AnyEngine, budget: int) -> None:
    """Waiting requests join in order while tokens, sequences and blocks last."""
    s = e.scalar
    s[st.BLOCKED] = 0
    while budget > 0:
        i = next_to_admit(e)
        if i < 0:
            return
        if s[st.N_RUNNING] == e.limit[st.MAX_SEQUENCES]:
            s[st.BLOCKED] = BY_SEQUENCES
            return
        n_tokens, given = n_total(e.request, i), e.request[i, st.GIVEN]
        hit, n_free, is_growing = (0, 0, False) if given > 0 else find(e, i, n_tokens)
        done = given if given > 0 else hit << e.limit[st.BLOCK_BITS]
        chunk = _share(e, n_tokens - done, budget)
        room = _room(e, i, done + chunk)
        # The most that a draft may need: who is blocked stays so whatever the next step gains.
        end = n_tokens if e.limit[st.IS_RESERVING] else done + chunk
        must_fit = n_blocks(e.limit, end + n_drafts(e.limit))
        if must_fit - hit + n_free > s[st.FREE]:
            # A text that is being written may be found longer after any step.
            s[st.BLOCKED] = 0 if is_growing else BY_BLOCKS
            return
        v = _seat(e, i, done)
        hold(e, v, hit)
        _read(e, v, chunk, room - hit)
        budget -= chunk


@part
def begin_featured(e: AnyEngine) -> None:
    """Schedule one step from now and compute its end."""
    s = e.scalar
    s[st.MARK] = s[st.PARKED] = st.NONE
    s[st.PREFILL_TOKENS] = s[st.PREFILL_PAIRS] = s[st.N_ENDED] = 0
    s[st.USED_BEFORE] = e.limit[st.N_BLOCKS] - s[st.FREE]
    n_before = s[st.N_PREEMPTIONS]
    budget = _go_on(e)
    s[st.BLOCKED] = 0
    if s[st.N_PREEMPTIONS] == n_before:
        _admit(e, budget)
    lasts = schedule_end(e) + s[st.FRAC]
    s[st.FLIGHT_END] = s[st.NOW] + (lasts >> st.FRAC_BITS)
    s[st.FLIGHT_FRAC] = lasts & st.FRAC_MASK
    s[st.IN_FLIGHT] = 1
