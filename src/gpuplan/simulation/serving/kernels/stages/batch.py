"""One batch of an engine with stages: vLLM V1's scheduler while others are on the way.

Who has a token on the way is passed over; a prompt goes on with its next chunk. Who is preempted
meanwhile gets that token still, and since 0.27 is not admitted again before all its batches have
come back. Before that, the tokens of all of them count, though some are of the same place. Before
0.28, a victim that stood before the request in need and was passed over costs the one after
that request its turn in this batch: vLLM's place in its list moves on by one [vLLM-V1-scheduler].
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import (
    link_running,
    n_blocks,
    n_total,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.engine.queue import (
    leave_queue,
    next_to_admit,
    put_back,
    queue_again,
    set_aside,
    victim,
)
from gpuplan.simulation.serving.kernels.engine.schedule import (
    count_prompt,
    is_lone,
    schedule_end,
    share,
)
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part
from gpuplan.simulation.serving.kernels.prefix.cache import (
    count_hit,
    enter,
    find,
    give_back,
    hold,
    take,
)
from gpuplan.simulation.serving.kernels.stages import state as sg

HALF = 1 << (st.FRAC_BITS - 1)


@part
def oldest(e: AnyEngine) -> int:
    """The number of the first batch that has not come back."""
    return int(e.scalar[st.TICK] - e.scalar[st.IN_FLIGHT])


@part
def _count(e: AnyEngine, v: int, n_tokens: int, sign: int) -> None:
    """What the slot's tokens add to the batch, or take from it again."""
    s, slot, chunk = e.scalar, e.slot[v], e.slot[v, st.CHUNK]
    if 0 <= slot[sg.READ_IN] < s[st.TICK]:
        s[st.N_DECODES] += sign
        s[st.CONTEXT] += sign * slot[st.DONE]
        s[st.PREFILL_TOKENS] += sign * (chunk - 1)
    else:
        count_prompt(e, slot[st.DONE] - chunk, chunk, n_tokens, sign)


@part
def _note_late(e: AnyEngine, i: int, b: int) -> None:
    """The batch brings a token of the request, wherever it is then."""
    n = e.scalar[st.N_LATE]
    e.late[n, sg.REQUEST], e.late[n, sg.BATCH] = i, b
    e.scalar[st.N_LATE] = n + 1


@part
def _schedule(e: AnyEngine, v: int, n_new: int, n_new_blocks: int) -> None:
    """So many tokens of the slot are in the batch."""
    tick, slot = e.scalar[st.TICK], e.slot[v]
    n_tokens = n_total(e.request, slot[st.ID])
    take(e, n_new_blocks)
    slot[st.DONE] += n_new
    slot[st.CHUNK] = n_new
    slot[sg.LAST_BEFORE], slot[st.STAMP] = slot[st.STAMP], tick
    _count(e, v, n_tokens, st.ONE)
    if slot[st.DONE] == n_tokens:
        if slot[sg.AWAITED] >= 0:
            _note_late(e, slot[st.ID], slot[sg.AWAITED])
        slot[sg.AWAITED] = tick
        if slot[sg.READ_IN] < 0:
            slot[sg.READ_IN] = tick
    enter(e, v, slot[st.DONE])


@part
def _preempt(e: AnyEngine, v: int) -> int:
    """The slot's request loses its blocks and waits; the tokens of this batch that it had."""
    s, slot, refund = e.scalar, e.slot[v], 0
    i, last, awaited, n_seen = slot[st.ID], slot[st.STAMP], slot[sg.AWAITED], slot[st.DONE]
    if last == s[st.TICK]:
        refund, last = slot[st.CHUNK], slot[sg.LAST_BEFORE]
        awaited = st.NONE if awaited == s[st.TICK] else awaited
        _count(e, v, n_total(e.request, i), st.MINUS_ONE)
    e.extra[i, st.STALE] = last
    if awaited >= 0:
        _note_late(e, i, awaited)
    give_back(e, v, n_blocks(e.limit, n_seen), n_seen)
    unlink_running(e.scalar, e.slot, v)
    queue_again(e, i)
    e.request[i, st.PREEMPTED] += 1
    e.request[i, st.GIVEN] = 0
    s[st.N_PREEMPTIONS] += 1
    return int(refund)


@part
def _is_passed_over(e: AnyEngine, worst: int, v: int) -> bool:
    """The slot runs before the other, and has no tokens in this batch."""
    if e.slot[worst, st.STAMP] == e.scalar[st.TICK]:
        return False
    while v >= 0 and v != worst:
        v = e.slot[v, st.BEFORE]
    return bool(v >= 0)


@part
def _following(e: AnyEngine, v: int, n_skipped: int) -> int:
    """The slot whose turn is next, so many left out, or NONE."""
    v = e.slot[v, st.AFTER]
    while n_skipped > 0 and v >= 0:
        v = e.slot[v, st.AFTER]
        n_skipped -= 1
    return int(v)


@part
def _go_on(e: AnyEngine) -> int:
    """What runs and waits for nothing gets tokens and blocks in order; the budget left."""
    s, slot, budget, v = e.scalar, e.slot, e.limit[st.MAX_TOKENS], e.scalar[st.HEAD]
    while v >= 0 and budget > 0:
        done, n_skipped = slot[v, st.DONE], 0
        n_new = share(e, n_total(e.request, slot[v, st.ID]) - done, budget)
        if n_new > 0:
            more = n_blocks(e.limit, done + n_new) - n_blocks(e.limit, done)
            while more > s[st.FREE]:
                worst = victim(e)
                is_skipping = not e.limit[st.KEEPS_TURNS] and worst != v
                n_skipped += is_skipping and _is_passed_over(e, worst, v)
                budget += _preempt(e, worst)
                if worst == v:
                    return int(budget)
            _schedule(e, v, n_new, more)
            budget -= n_new
        v = _following(e, v, n_skipped)
    return int(budget)


@part
def _seat(e: AnyEngine, i: int, done: int, hit: int) -> int:
    """The request runs; so many of its tokens, and of its blocks, are there already."""
    leave_queue(e)
    v = link_running(e.scalar, e.slot, i)
    slot = e.slot[v]
    slot[st.DONE], slot[st.CHUNK] = done, 0
    slot[sg.READ_IN] = slot[sg.AWAITED] = st.NONE
    if e.request[i, st.START] < 0:
        e.request[i, st.START] = e.scalar[st.NOW]
        count_hit(e, i, done, n_total(e.request, i))
    hold(e, v, hit)
    return v


@part
def _admit_next(e: AnyEngine, budget: int) -> int:
    """The next waiting request joins; tokens of it in this batch, 0 where it cannot."""
    s, i = e.scalar, next_to_admit(e)
    if i < 0 or s[st.N_RUNNING] == e.limit[st.MAX_SEQUENCES]:
        return 0
    n_tokens, given = n_total(e.request, i), e.request[i, st.GIVEN]
    hit, n_free, _ = (0, 0, False) if given > 0 else find(e, i, n_tokens)
    done = given if given > 0 else hit << e.limit[st.BLOCK_BITS]
    chunk = share(e, n_tokens - done, budget)
    if chunk == budget and done + chunk < n_tokens and not e.limit[st.IS_CHUNKING]:
        return 0
    room = n_blocks(e.limit, done + chunk)
    must_fit = n_blocks(e.limit, n_tokens) if e.limit[st.IS_RESERVING] else room
    must_fit += e.limit[st.WATERMARK] if s[st.N_RUNNING] > 0 else 0
    if must_fit - hit + n_free > s[st.FREE]:
        return 0
    _schedule(e, _seat(e, i, done, hit), chunk, room - hit)
    return int(chunk)


@part
def draw_up(e: AnyEngine) -> int:
    """Tokens of the next batch: what runs goes on, and who waits joins."""
    s, retained = e.scalar, st.MINUS_ONE
    s[st.PREFILL_TOKENS] = s[st.PREFILL_PAIRS] = s[st.N_ENDED] = s[st.N_DECODES] = 0
    s[st.CONTEXT] = 0
    s[st.IS_LONE] = is_lone(e)
    n_before = s[st.N_PREEMPTIONS]
    budget = _go_on(e)
    is_open = s[st.N_PREEMPTIONS] == n_before
    while is_open and budget > 0:
        i = next_to_admit(e)
        if i >= 0 and e.limit[st.WAITS_FOR_LATE] and e.extra[i, st.STALE] >= oldest(e):
            retained = set_aside(e, retained)
            continue
        chunk = _admit_next(e, budget)
        is_open = chunk > 0
        budget -= chunk
    put_back(e, retained)
    n_tokens = s[st.PREFILL_TOKENS] + s[st.N_DECODES]
    s[st.N_STALLED] += n_tokens == 0 or s[st.N_PREEMPTIONS] > n_before
    return int(n_tokens)


@part
def send(e: AnyEngine, b: int) -> None:
    """What is drawn up goes through the stages from now on, in whole picoseconds: they wait."""
    n_stages, at = e.stage.shape[0], e.scalar[st.NOW]
    each = (schedule_end(e) // n_stages + HALF) >> st.FRAC_BITS
    for k in range(n_stages):
        at = max(at, e.stage[k]) + each
        e.stage[k] = at
    e.peak_s[b, 0], e.peak_s[b, 1] = e.flight_s[0], e.flight_s[1]
    e.flight[b, sg.END] = at
