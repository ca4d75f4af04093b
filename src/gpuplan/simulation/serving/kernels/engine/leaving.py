"""Who has the last token and has not left yet.

An engine that schedules ahead draws up a step when the one before it begins. Whoever gets the last
token in that one still holds its slot and its blocks in the step drawn up meanwhile; where the end
could not be known from the requested length, it is even given one more token there.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.holding import (
    age,
    due,
    n_held,
    n_held_next,
    owe,
    owed_next,
)
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.lists import (
    count_phase,
    forget_finish,
    n_total,
    note_finish,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.engine.positions import (
    blocks_ahead,
    n_beyond,
    n_draft_tokens,
)
from gpuplan.simulation.serving.kernels.engine.queue import next_to_admit, see_arrivals
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.prefix.cache import give_back


@part
def count_decode(e: AnyEngine, v: int, more: int) -> None:
    """So many decodes more, or less, that need a block at the same positions as this one."""
    count_phase(e.scalar, e.limit, e.slot[v, st.OFFSET] + n_beyond(e), more)


@part
def decode(e: AnyEngine, v: int, n_tokens: int) -> None:
    """The slot has so many tokens now and decodes from there."""
    s, i = e.scalar, e.slot[v, st.ID]
    e.slot[v, st.OFFSET] = n_tokens - s[st.STEP]
    count_decode(e, v, st.ONE)
    s[st.N_DECODES] += 1
    s[st.CONTEXT] += n_tokens
    n_left = e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - n_tokens
    note_finish(e.ring, e.word, e.slot, v, s[st.STEP] + n_left)


@part
def leave_decodes(e: AnyEngine, v: int) -> None:
    """The slot is no longer one of those that get a token a step."""
    owe(e, v, st.MINUS_ONE)
    _count_out(e, v)


@part
def _count_out(e: AnyEngine, v: int) -> None:
    s = e.scalar
    count_decode(e, v, st.MINUS_ONE)
    s[st.N_DECODES] -= 1
    s[st.CONTEXT] -= e.slot[v, st.OFFSET] + s[st.STEP]


@part
def forget_decode(e: AnyEngine, v: int) -> None:
    """The slot no longer decodes."""
    leave_decodes(e, v)
    forget_finish(e.ring, e.word, e.slot, v)


def _nobody_parked(_: AnyEngine, __: int) -> None:
    # Every sequence has a token of the budget unless a limit on long prefills breaks the order.
    pass


@policy(otherwise=_nobody_parked)
def unpark(e: AnyEngine, before: int) -> None:
    """Decodes that went without a token have as many as before."""
    if e.scalar[st.PARKED] >= 0:
        _unpark_all(far(e), before)


@rare
def _unpark_all(e: AnyEngine, before: int) -> None:
    s, slot = e.scalar, e.slot
    v = s[st.PARKED]
    while v >= 0:
        if slot[v, st.DONE] == st.NONE:
            decode(e, v, slot[v, st.OFFSET] + before)
        v = slot[v, st.AFTER]
    s[st.PARKED] = st.NONE


@part
def leave(e: AnyEngine, v: int, n_held_: int, n_written: int) -> None:
    """The slot is free; it held so many blocks, and so many tokens may be found again."""
    give_back(e, v, n_held_, n_written)
    unlink_running(e.scalar, e.slot, v)
    e.scalar[st.BLOCKED] = 0


def _ends_as_all_do(e: AnyEngine, _: int) -> bool:
    return bool(e.limit[st.ENDS_BY_EOS])


@policy(otherwise=_ends_as_all_do)
def _ends_unforeseen(e: AnyEngine, v: int) -> bool:
    """By EOS, or since drafts were accepted up to the last token, which was not sure to come."""
    i, s = e.slot[v, st.ID], e.scalar
    if e.extra[i, st.ENDS_LATE]:
        return True
    n_before = e.slot[v, st.OFFSET] + s[st.STEP] - min(s[st.GAIN], max(1, age(e, v)))
    return bool(e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - n_before > 1)


@part
def hold_back(e: AnyEngine, v: int, n_written: int) -> None:
    """The slot has its last token, and leaves when the step drawn up meanwhile has begun."""
    s, slot = e.scalar, e.slot
    if _ends_unforeseen(e, v):
        forget_finish(e.ring, e.word, e.slot, v)
        slot[v, st.DONE] = st.LEAVING_ROW
    else:
        forget_decode(e, v)
        slot[v, st.DONE] = st.LEAVING
    slot[v, st.FINISH], slot[v, st.PEER_AFTER] = n_written, st.NONE
    slot[v, st.PEER_BEFORE] = n_total(e.request, slot[v, st.ID])
    if s[st.LEAVE_TAIL] >= 0:
        slot[s[st.LEAVE_TAIL], st.PEER_AFTER] = v
    else:
        s[st.LEAVE_HEAD] = v
    s[st.LEAVE_TAIL] = v
    s[st.N_LEAVING] += 1


@part
def drop_leaving(e: AnyEngine, v: int, is_scheduled: bool) -> int:
    """The slot is preempted though its request has ended; the tokens of this step that it had."""
    s, refund, n = e.scalar, 0, n_held(e, v)
    n_seen = e.slot[v, st.OFFSET] + s[st.STEP] - s[st.GAIN]
    if e.slot[v, st.DONE] == st.LEAVING_ROW:
        if is_scheduled:
            refund, n = n_draft_tokens(e) + 1, n_held_next(e, v)
            n_seen += s[st.GAIN]
        leave_decodes(e, v)
    e.request[e.slot[v, st.ID], st.PREEMPTED] += 1
    leave(e, v, n, n_seen - 1)
    s[st.N_PREEMPTIONS] += 1
    s[st.N_LEAVING] -= 1
    e.slot[v, st.DONE] = st.LEFT
    return int(refund)


@part
def let_go(e: AnyEngine) -> None:
    """Whoever was leaving has left, in order of admission: so its text grows old."""
    if e.scalar[st.LEAVE_HEAD] >= 0:
        _let_go(far(e))


@rare
def _let_go(e: AnyEngine) -> None:
    s, slot, v = e.scalar, e.slot, e.scalar[st.LEAVE_HEAD]
    while v >= 0:
        following, kind = slot[v, st.PEER_AFTER], slot[v, st.DONE]
        if kind != st.LEFT:
            n = n_held(e, v)
            if kind == st.LEAVING_ROW:
                n = n_held_next(e, v)
                s[st.DEBT] -= owed_next(e, v)
                _count_out(e, v)
            if s[st.PARKED] == v:
                s[st.PARKED] = slot[v, st.AFTER]
            if s[st.MARK] == v:
                s[st.MARK] = slot[v, st.AFTER]
            leave(e, v, n, slot[v, st.FINISH])
        v = following
    s[st.LEAVE_HEAD] = s[st.LEAVE_TAIL] = st.NONE
    s[st.N_LEAVING] = 0


@part
def look_again(e: AnyEngine) -> None:
    """The step drawn up ahead is empty: the next is drawn up now, with all that is known now."""
    unpark(e, e.scalar[st.STEP])
    let_go(e)
    e.scalar[st.KNOWN] = e.scalar[st.NOW]
    see_arrivals(e)


@part
def wake(e: AnyEngine) -> None:
    """Where nothing is left to run and nobody was known, the engine knows all that is now."""
    s = e.scalar
    if s[st.N_RUNNING] == s[st.N_LEAVING] and s[st.N_DECODES] == 0 and next_to_admit(e) < 0:
        look_again(e)


def _by_eos(e: AnyEngine) -> bool:
    return bool(e.limit[st.ENDS_BY_EOS])


@policy(otherwise=_by_eos)
def _has_row(e: AnyEngine) -> bool:
    """Of those who are leaving, one is given tokens in the step to come."""
    v = e.scalar[st.LEAVE_HEAD]
    while v >= 0 and e.slot[v, st.DONE] != st.LEAVING_ROW:
        v = e.slot[v, st.PEER_AFTER]
    return bool(v >= 0)


def _free(e: AnyEngine) -> int:
    return int(e.scalar[st.FREE])


@policy(otherwise=_free)
def _n_spare(e: AnyEngine) -> int:
    """Free blocks of which the choice does not depend on who leaves."""
    is_sorted = e.limit[st.IS_CACHING] and e.limit[st.BARE_FIRST]
    return int(e.scalar[st.BARE] if is_sorted else e.scalar[st.FREE])


@part
def may_go(e: AnyEngine) -> bool:
    """Nobody is leaving whose slot or blocks could matter to the step to come; they have left.

    Only asked where nobody is admitted to that step.
    """
    s = e.scalar
    if s[st.N_LEAVING] == 0:
        return True
    if _has_row(e) or blocks_ahead(e, st.ONE) + due(e) > _n_spare(e):
        return False
    let_go(e)
    s[st.CLOSED] = s[st.TICK]
    return True
