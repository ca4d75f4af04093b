"""One step of an engine: vLLM V1's scheduler with its options [vLLM-V1-scheduler].

Decodes get their tokens and blocks, prompts are computed in chunks, waiting requests are admitted;
with policies, cached prefixes are found and entered, priorities decide, long prefills take a share
of a step, and draft tokens are verified along. Where nothing is short, a step takes no walk over
what runs; otherwise what runs is walked in order.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.adapters import (
    count_adapters,
    forget_adapters,
    lacks_adapter,
    take_adapter,
)
from gpuplan.simulation.serving.kernels.engine.cost import decode_line, mixed_step_s, peaks_s, ticks
from gpuplan.simulation.serving.kernels.engine.holding import (
    due,
    lacking,
    must_walk,
    n_held,
    n_held_next,
    owed_next,
    pay,
    to_admit,
)
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.leaving import (
    drop_leaving,
    forget_decode,
    leave_decodes,
    let_go,
    look_again,
)
from gpuplan.simulation.serving.kernels.engine.lists import (
    link_running,
    n_blocks,
    n_total,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.engine.positions import (
    blocks_ahead,
    n_draft_tokens,
)
from gpuplan.simulation.serving.kernels.engine.queue import (
    BY_BLOCKS,
    BY_SEQUENCES,
    leave_queue,
    next_to_admit,
    put_back,
    queue_again,
    set_aside,
    victim,
)
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.prefix.cache import (
    count_hit,
    enter,
    find,
    give_back,
    hold,
    take,
    take_for,
)


def _share_of_budget(_: AnyEngine, n_left: int, budget: int) -> int:
    return min(n_left, budget)


@policy(otherwise=_share_of_budget)
def share(e: AnyEngine, n_left: int, budget: int) -> int:
    """Tokens of one prompt in this step."""
    longest = e.limit[st.LONG_PREFILL]
    if 0 < longest < n_left and not e.scalar[st.IS_LONE]:
        n_left = longest
    return min(n_left, budget)


def _no_padding(_: AnyEngine, __: int, ___: int, ____: int) -> int:
    return 0


@policy(otherwise=_no_padding)
def padding(e: AnyEngine, i: int, done: int, n_tokens: int) -> int:
    """Drafts that are read with the only token that the request lacks, if it joins now."""
    e.extra[i, st.PAD] = 0
    if n_tokens - done != 1 or not e.limit[st.PADS] or e.scalar[st.HAD_PROMPT]:
        return 0
    if done > 0 or e.scalar[st.HAD_ROWS]:
        e.extra[i, st.PAD] = n_draft_tokens(e)
    return int(e.extra[i, st.PAD])


@part
def count_prompt(e: AnyEngine, done: int, chunk: int, n_tokens: int, sign: int) -> None:
    """What a chunk of a prompt of so many tokens adds to the step, or takes from it again."""
    s = e.scalar
    s[st.PREFILL_TOKENS] += sign * chunk
    s[st.PREFILL_PAIRS] += sign * chunk * (2 * done + chunk)
    if chunk > 0 and done + chunk >= n_tokens:
        s[st.N_ENDED] += sign


@part
def _prefill(e: AnyEngine, v: int, progress: tuple[int, int, int], n_new_blocks: int) -> None:
    """The next chunk of the slot's prompt is computed in this step.

    `progress` is the tokens computed before, those of the chunk, and those of the whole prompt.
    """
    done, chunk, n_tokens = progress
    take_for(e, v, n_new_blocks, done + chunk)
    e.slot[v, st.CHUNK] = chunk
    count_prompt(e, done, chunk, n_tokens, st.ONE)
    enter(e, v, min(done + chunk, n_tokens))
    if e.scalar[st.MARK] < 0:
        e.scalar[st.MARK] = v


def _is_never_scheduled(_: AnyEngine, __: int) -> bool:
    # The last admitted is preempted before its turn comes.
    return False


@policy(otherwise=_is_never_scheduled)
def _is_scheduled(e: AnyEngine, v: int) -> bool:
    """The slot, which decodes, has had its tokens of this step."""
    return bool(e.slot[v, st.STAMP] == e.scalar[st.TICK])


def _no_stamp(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_no_stamp)
def _stamp(e: AnyEngine, v: int) -> None:
    """The slot gets its tokens of this step."""
    e.slot[v, st.STAMP] = e.scalar[st.TICK]


@part
def _preempt(e: AnyEngine, v: int) -> int:
    """The slot's request loses its blocks and waits; the tokens of this step that it had."""
    s, slot = e.scalar, e.slot
    i, done = slot[v, st.ID], slot[v, st.DONE]
    if s[st.MARK] == v:
        s[st.MARK] = slot[v, st.AFTER]
    if done <= st.LEAVING:
        return drop_leaving(e, v, _is_scheduled(e, v))
    n_unknown = 0
    if done >= 0:
        refund = slot[v, st.CHUNK]
        n_seen, n_tokens = done + refund, n_total(e.request, i)
        n = n_blocks(e.limit, n_seen)
        count_prompt(e, done, refund, n_tokens, st.MINUS_ONE)
        s[st.N_PARTIALS] -= 1
    else:
        is_scheduled = _is_scheduled(e, v)
        refund = n_draft_tokens(e) + 1 if is_scheduled else 0
        n_tokens = slot[v, st.OFFSET] + s[st.STEP]
        n_seen = n_tokens if is_scheduled else n_tokens - s[st.GAIN]
        n = n_held_next(e, v) if is_scheduled else n_held(e, v)
        e.request[i, st.MADE] = n_tokens - e.request[i, st.INPUT]
        forget_decode(e, v)
        n_unknown = e.limit[st.IS_AHEAD] * (s[st.GAIN] if is_scheduled else 1)
    give_back(e, v, n, n_seen - n_unknown)
    unlink_running(e.scalar, e.slot, v)
    queue_again(e, i)
    e.request[i, st.PREEMPTED] += 1
    e.request[i, st.GIVEN] = 0
    s[st.N_PREEMPTIONS] += 1
    return int(refund)


@part
def _park(e: AnyEngine, v: int) -> None:
    """From this slot on nobody gets a token in this step."""
    s, slot = e.scalar, e.slot
    s[st.PARKED] = v
    while v >= 0:
        if slot[v, st.DONE] == st.NONE:
            forget_decode(e, v)
        elif slot[v, st.DONE] == st.LEAVING_ROW:
            leave_decodes(e, v)
            slot[v, st.DONE] = st.LEAVING
        v = slot[v, st.AFTER]


@part
def _wanted(e: AnyEngine, v: int, budget: int) -> tuple[int, int]:
    """Tokens of the slot in this step, and the blocks it lacks for them."""
    i, done = e.slot[v, st.ID], e.slot[v, st.DONE]
    n_new = share(e, n_total(e.request, i) - done, budget) if done >= 0 else n_draft_tokens(e) + 1
    return n_new, lacking(e, v, n_new)


@rare
def _walk(e: AnyEngine) -> int:
    """What runs gets tokens and blocks in order, preempting where they lack; the budget left."""
    s, slot, budget, v = e.scalar, e.slot, e.limit[st.MAX_TOKENS], e.scalar[st.HEAD]
    s[st.IS_WALKING], s[st.DEBT], s[st.NEXT_DEBT] = 1, 0, 0
    while v >= 0 and budget > 0:
        if slot[v, st.DONE] == st.LEAVING:
            v = slot[v, st.AFTER]
            continue
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
        _stamp(e, v)
        if slot[v, st.DONE] >= 0:
            n_tokens = n_total(e.request, slot[v, st.ID])
            _prefill(e, v, (slot[v, st.DONE], n_new, n_tokens), more)
        else:
            take_for(e, v, more, slot[v, st.OFFSET] + s[st.STEP])
            s[st.DEBT] += owed_next(e, v)
        v = slot[v, st.AFTER]
    s[st.IS_WALKING] = 0
    if v >= 0:
        _park(e, v)
    return int(budget)


@part
def _go_on(e: AnyEngine) -> int:
    """What runs gets its tokens and blocks, at once where neither is short; the budget left."""
    s, slot = e.scalar, e.slot
    if must_walk(e):
        return _walk(far(e))
    budget = e.limit[st.MAX_TOKENS] - s[st.N_DECODES] * (n_draft_tokens(e) + 1)
    needed = blocks_ahead(e, st.ONE) + due(e)
    if s[st.N_PARTIALS] == 0 and needed <= s[st.FREE]:
        take(e, needed)
        pay(e)
        return int(budget)
    if s[st.N_PARTIALS] == 1 and e.limit[st.LONG_PREFILL] == 0:
        # Without a limit on long prefills only the last admitted can be half computed.
        v = s[st.TAIL]
        i, done = slot[v, st.ID], slot[v, st.DONE]
        n_tokens = n_total(e.request, i)
        chunk = min(n_tokens - done, budget)
        more = n_blocks(e.limit, done + chunk) - n_blocks(e.limit, done)
        if needed + more <= s[st.FREE]:
            _prefill(e, v, (done, chunk, n_tokens), needed + more)
            pay(e)
            return int(budget - chunk)
    return _walk(far(e))


@part
def _seat(e: AnyEngine, i: int, done: int, hit: int) -> int:
    """The request runs; so many of its tokens, and of its blocks, are there already."""
    s = e.scalar
    leave_queue(e)
    v = link_running(e.scalar, e.slot, i)
    e.slot[v, st.DONE] = done
    s[st.N_PARTIALS] += 1
    if e.request[i, st.START] < 0:
        e.request[i, st.START] = s[st.NOW]
        count_hit(e, i, done, n_total(e.request, i))
    hold(e, v, hit)
    return v


@part
def _admit(e: AnyEngine, budget: int) -> None:
    """Waiting requests join in order while tokens, sequences, blocks and adapters last."""
    retained = st.MINUS_ONE
    count_adapters(e)
    while budget > 0:
        i = next_to_admit(e)
        if i >= 0 and e.scalar[st.N_RUNNING] < e.limit[st.MAX_SEQUENCES] and lacks_adapter(e, i):
            retained = set_aside(e, retained)
        else:
            budget = _admit_next(e, i, budget)
    put_back(e, retained)
    forget_adapters(e)


@part
def _admit_next(e: AnyEngine, i: int, budget: int) -> int:
    """The request joins the step; the budget left, 0 where it does not fit."""
    s = e.scalar
    if i < 0:
        return 0
    if s[st.N_RUNNING] == e.limit[st.MAX_SEQUENCES]:
        s[st.BLOCKED] = BY_SEQUENCES
        return 0
    n_tokens, given = n_total(e.request, i), e.request[i, st.GIVEN]
    hit, n_free, is_growing = (0, 0, False) if given > 0 else find(e, i, n_tokens)
    done = given if given > 0 else hit << e.limit[st.BLOCK_BITS]
    chunk = share(e, n_tokens - done, budget) + padding(e, i, done, n_tokens)
    if chunk > budget:
        return 0
    if chunk == budget and done + chunk < n_tokens and not e.limit[st.IS_CHUNKING]:
        return 0
    must_fit = to_admit(e, (hit, n_free), (done, chunk, n_tokens))
    if s[st.N_RUNNING] > 0:
        must_fit += e.limit[st.WATERMARK]
    if must_fit > s[st.FREE]:
        # A text that is being written may be found longer after any step.
        s[st.BLOCKED] = 0 if is_growing else BY_BLOCKS
        return 0
    v = _seat(e, i, done, hit)
    take_adapter(e, i)
    _prefill(e, v, (done, chunk, n_tokens), n_blocks(e.limit, done + chunk) - hit)
    return budget - chunk


@part
def schedule_end(e: AnyEngine) -> int:
    """Duration of what is scheduled; its arithmetic and memory at their peaks are noted."""
    s, flight_s = e.scalar, e.flight_s
    if s[st.PREFILL_TOKENS] > 0:
        step_s, flight_s[0], flight_s[1] = mixed_step_s(e)
        return ticks(step_s)
    if s[st.N_DECODES] == 0:
        return 0
    lasts, _, regime = decode_line(e)
    flight_s[0], flight_s[1] = peaks_s(e, regime, st.ONE, st.ZERO)
    return lasts


def _is_never_lone(_: AnyEngine) -> bool:
    return False


@policy(otherwise=_is_never_lone)
def is_lone(e: AnyEngine) -> bool:
    """The engine has one request in all, and leaves a long prompt that is alone whole."""
    if not e.limit[st.LONE_IS_WHOLE] or e.scalar[st.N_RUNNING] > 1:
        return False
    i = next_to_admit(e)
    if i < 0 or e.scalar[st.N_RUNNING] == 1:
        return bool(i < 0)
    if e.limit[st.IS_PRIORITY]:
        return bool(e.extra[i, st.CHILD] < 0)
    second = e.request[i, st.NEXT_WAITING]
    return bool(second < 0 or e.request[second, st.ARRIVE] > e.scalar[st.KNOWN])


@part
def _draw_up(e: AnyEngine) -> None:
    """What runs goes on, and who waits joins, as far as tokens, sequences and blocks last."""
    s = e.scalar
    s[st.MARK] = s[st.PARKED] = st.NONE
    s[st.PREFILL_TOKENS] = s[st.PREFILL_PAIRS] = s[st.N_ENDED] = 0
    s[st.IS_LONE] = is_lone(e)
    n_before = s[st.N_PREEMPTIONS]
    s[st.HAD_PROMPT] = s[st.N_PARTIALS]
    budget = _go_on(e)
    s[st.HAD_ROWS] = budget < e.limit[st.MAX_TOKENS]
    s[st.BLOCKED] = 0
    if s[st.N_PREEMPTIONS] == n_before:
        _admit(e, budget)
    else:
        s[st.N_STALLED] += s[st.N_DECODES] == 0
    s[st.FLIGHT_TOKENS] = s[st.PREFILL_TOKENS] + s[st.N_DECODES] * (n_draft_tokens(e) + 1)


@part
def begin(e: AnyEngine) -> None:
    """Schedule one step from now and compute its end."""
    s = e.scalar
    s[st.USED_BEFORE] = e.limit[st.N_BLOCKS] - s[st.FREE]
    while True:
        _draw_up(e)
        if s[st.FLIGHT_TOKENS] > 0 or (s[st.KNOWN] == s[st.NOW] and s[st.N_LEAVING] == 0):
            break
        look_again(e)
    lasts = schedule_end(e) + s[st.FRAC]
    s[st.FLIGHT_END] = s[st.NOW] + (lasts >> st.FRAC_BITS)
    if s[st.N_STALLED] > st.MOST_STALLED:
        s[st.FLIGHT_END] = st.FOREVER + 1  # no step after it would change anything
    s[st.FLIGHT_FRAC] = lasts & st.FRAC_MASK
    s[st.IN_FLIGHT] = 1
    let_go(e)
