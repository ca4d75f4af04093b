"""One engine through time: steps, and jumps over unchanged batches.

A step is begun (blocks taken, prompts admitted, end computed) and later completed (tokens gained,
finished requests released). While nothing but decoding can happen, many steps are taken at once;
the result is the same as stepping, to the last bit. Rules and invariants: docs/model.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import peaks_s
from gpuplan.simulation.serving.kernels.engine.holding import n_held, owe
from gpuplan.simulation.serving.kernels.engine.jump import plan_jump
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.leaving import (
    decode,
    forget_decode,
    hold_back,
    leave,
    may_go,
    unpark,
    wake,
)
from gpuplan.simulation.serving.kernels.engine.lists import learn, n_total
from gpuplan.simulation.serving.kernels.engine.positions import move, moved, n_draft_tokens
from gpuplan.simulation.serving.kernels.engine.queue import next_to_admit, see_arrivals
from gpuplan.simulation.serving.kernels.engine.schedule import begin
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part
from gpuplan.simulation.serving.kernels.prefix.cache import start_writing, take

TAKEN = 0
MUST_SCHEDULE = -1


@part
def _release(e: AnyEngine, v: int) -> None:
    """The slot's request has all its tokens."""
    s = e.scalar
    i = e.slot[v, st.ID]
    e.request[i, st.END] = s[st.NOW]
    n_seen = e.slot[v, st.OFFSET] + s[st.STEP] - s[st.GAIN]
    n_written = e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - 1
    s[st.OUTSTANDING] -= 1
    if e.limit[st.IS_AHEAD]:
        # All of it has been entered by then; otherwise only what was known when it was scheduled.
        hold_back(e, v, n_written)
    else:
        n = n_held(e, v)
        forget_decode(e, v)
        leave(e, v, n, min(n_seen, n_written))
    e.request[i, st.MADE] = e.request[i, st.OUTPUT]


def _any_finished(e: AnyEngine, _: int) -> int:
    return int(e.ring[e.scalar[st.STEP] & (e.ring.shape[0] - 1)])


@policy(otherwise=_any_finished)
def _first_finished(e: AnyEngine, after: int) -> int:
    """Of the slots that have finished past this position, the first admitted."""
    s, slot, best = e.scalar, e.slot, st.NONE
    for at in range(after + 1, s[st.STEP] + 1):
        v = e.ring[at & (e.ring.shape[0] - 1)]
        while v >= 0:
            if best < 0 or slot[v, st.ORDER] < slot[best, st.ORDER]:
                best = v
            v = slot[v, st.PEER_AFTER]
    return best


@part
def finish_decodes(e: AnyEngine) -> None:
    """Whatever has all its tokens leaves, in order of admission: so its text grows old."""
    after = e.scalar[st.STEP] - e.scalar[st.GAIN]
    while True:
        v = _first_finished(e, after)
        if v < 0:
            return
        _release(e, v)


@part
def _start_decodes(e: AnyEngine) -> None:
    """Prompts that were computed to their end have one more token, and decode from now on."""
    s, slot = e.scalar, e.slot
    v = s[st.MARK]
    while v >= 0:
        if slot[v, st.DONE] >= 0:
            i, done = slot[v, st.ID], slot[v, st.DONE] + slot[v, st.CHUNK]
            n_tokens = n_total(e.request, i)
            if done < n_tokens:
                slot[v, st.DONE], slot[v, st.CHUNK] = done, 0
            else:
                slot[v, st.DONE] = st.NONE
                s[st.N_PARTIALS] -= 1
                s[st.N_STALLED] = 0
                e.request[i, st.MADE] += 1
                if e.request[i, st.FIRST] < 0:
                    e.request[i, st.FIRST] = s[st.NOW]
                decode(e, v, n_tokens + 1)
                owe(e, v, st.ONE)
                start_writing(e, v)
        v = slot[v, st.AFTER]


@part
def complete(e: AnyEngine) -> None:
    """The step in flight ends: the clock moves, tokens appear, finished requests leave."""
    s = e.scalar
    used = 0.5 * (s[st.USED_BEFORE] + e.limit[st.N_BLOCKS] - s[st.FREE])
    account(e.scalar, e.bins, s[st.FLIGHT_END], used, (e.flight_s[0], e.flight_s[1]))
    s[st.COMPUTED] += s[st.FLIGHT_TOKENS]
    s[st.N_STEPS] += min(1, s[st.FLIGHT_TOKENS])
    begun = s[st.NOW]
    s[st.NOW], s[st.FRAC] = s[st.FLIGHT_END], s[st.FLIGHT_FRAC]
    s[st.IN_FLIGHT] = 0
    before = s[st.STEP]
    move(e, st.ONE)
    unpark(e, before)
    _start_decodes(e)
    finish_decodes(e)
    learn(e.scalar, e.limit, begun)


@part
def _is_plan_known(e: AnyEngine) -> bool:
    """Nothing has come or gone since a jump was planned."""
    s = e.scalar
    if s[st.PLAN_AT] != s[st.STEP]:
        return False
    is_same_queue = s[st.PLAN_HEAD] == s[st.WAIT_HEAD] and s[st.PLAN_STOP] == s[st.STOP]
    return bool(is_same_queue and s[st.PLAN_CONTEXT] == s[st.CONTEXT])


@part
def _known_plan(e: AnyEngine) -> tuple[int, int, int, int, int]:
    s = e.scalar
    k, lasts, needed = s[st.PLAN_STEPS], s[st.PLAN_LASTS], s[st.PLAN_BLOCKS]
    return k, lasts, needed, s[st.PLAN_REGIME], s[st.PLAN_EARLIER]


@part
def _note_plan(e: AnyEngine, plan: tuple[int, int, int, int, int]) -> None:
    """The jump ends later than asked for; unless something changes, it will be taken as it is."""
    s = e.scalar
    s[st.PLAN_STEPS], s[st.PLAN_LASTS], s[st.PLAN_BLOCKS] = plan[0], plan[1], plan[2]
    s[st.PLAN_REGIME], s[st.PLAN_EARLIER] = plan[3], plan[4]
    s[st.PLAN_AT], s[st.PLAN_CONTEXT] = s[st.STEP], s[st.CONTEXT]
    s[st.PLAN_HEAD], s[st.PLAN_STOP] = s[st.WAIT_HEAD], s[st.STOP]


@part
def _jump(e: AnyEngine, until: int) -> int:
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
    skip(e, (k, needed, regime), (end, (lasts + s[st.FRAC]) & st.FRAC_MASK), begun)
    return TAKEN


@part
def skip(e: AnyEngine, plan: tuple[int, int, int], end: tuple[int, int], begun: int) -> None:
    """So many decode steps are taken at once, with their blocks; the last of them begins there."""
    s, (k, needed, regime) = e.scalar, plan
    used = e.limit[st.N_BLOCKS] - s[st.FREE] + 0.5 * needed
    account(e.scalar, e.bins, end[0], used, peaks_s(e, regime, k, moved(e, k)))
    s[st.NOW], s[st.FRAC] = end
    s[st.COMPUTED] += k * s[st.N_DECODES] * (n_draft_tokens(e) + 1)
    s[st.N_STEPS] += k
    take(e, needed)
    move(e, k)
    finish_decodes(e)
    learn(e.scalar, e.limit, begun)


@part
def has_no_prompt(e: AnyEngine) -> bool:
    """No prompt is half computed, and nobody waits who might be admitted."""
    s = e.scalar
    is_open = s[st.BLOCKED] == 0 and s[st.CLOSED] != s[st.TICK]
    return bool(s[st.N_PARTIALS] == 0 and not (is_open and next_to_admit(e) >= 0))


@part
def is_idle(e: AnyEngine) -> bool:
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
def advance(e: AnyEngine, until: int) -> int:
    """Bring one engine up to this instant; the result is when it next has something to report.

    A step that begins at `until` or later is left alone: what arrives then must be seen first.
    """
    s = e.scalar
    while True:
        if s[st.IN_FLIGHT]:
            if s[st.FLIGHT_END] > until:
                return int(s[st.FLIGHT_END])
            complete(e)
        see_arrivals(e)
        wake(e)
        if is_idle(e):
            return st.FOREVER
        if s[st.NOW] >= until:
            return int(s[st.NOW])
        planned = MUST_SCHEDULE
        is_quiet = s[st.N_DECODES] > 0 and has_no_prompt(e)
        if e.limit[st.IS_JUMPING] and is_quiet and may_go(e):
            planned = _jump(e, until)
        if planned > TAKEN:
            return planned
        if planned == MUST_SCHEDULE:
            begin(e)
