"""SGLang's engine through time: batches drawn up, begun and processed; jumps over decode steps.

With overlap, a batch is drawn up while the one before it runs, and its results are known one
batch late. While nothing but decoding can happen, many steps are taken at once; times are the
same as by stepping, to the last bit.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import (
    decode_line,
    mixed_step_s,
    peaks_s,
    ticks,
)
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.decode import draw_decode, drop_ending, merge
from gpuplan.simulation.serving.kernels.sglang.jump import MUST_STEP, TAKEN, can_jump, jump
from gpuplan.simulation.serving.kernels.sglang.prefill import draw_prefill
from gpuplan.simulation.serving.kernels.sglang.queue import see_arrivals
from gpuplan.simulation.serving.kernels.sglang.rows import (
    RUNNING,
    has_pages,
    keep,
    leave,
    make_room,
    n_done,
    n_needed,
    target,
)


@part
def _send(e: AnyEngine, lasts: int, n_tokens: int, n_rows: int, position: int) -> None:
    """The batch begins when the one before it ends, or now."""
    s, o = e.scalar, e.own
    begins, frac = s[st.NOW], s[st.FRAC]
    if o[sg.N_PENDING] > 0:
        begins, frac = e.flight[o[sg.BACK], sg.END], e.flight[o[sg.BACK], sg.END_FRAC]
    o[sg.BACK] = 1 - o[sg.BACK]
    o[sg.N_PENDING] += 1
    e.flight[o[sg.BACK], sg.END] = begins + ((lasts + frac) >> st.FRAC_BITS)
    e.flight[o[sg.BACK], sg.END_FRAC] = (lasts + frac) & st.FRAC_MASK
    (
        e.flight[o[sg.BACK], sg.N_TOKENS],
        e.flight[o[sg.BACK], sg.N_ROWS],
        e.flight[o[sg.BACK], sg.POSITION],
    ) = n_tokens, n_rows, position


@part
def _go_on(e: AnyEngine) -> None:
    """All that decode have one token more on the way."""
    s = e.scalar
    s[st.FREE] -= n_needed(e)
    s[st.STEP] += 1
    s[st.CONTEXT] += s[st.N_DECODES]


@part
def _send_decode(e: AnyEngine) -> None:
    s, to = e.scalar, 2 * (1 - e.own[sg.BACK])
    make_room(e, s[st.N_DECODES] << e.limit[st.BLOCK_BITS])
    lasts, _, regime = decode_line(e)
    e.flight_s[to], e.flight_s[to + 1] = peaks_s(e, regime, st.ONE, st.ZERO)
    _go_on(e)
    _send(e, lasts, s[st.N_DECODES], st.ZERO, s[st.STEP])


@part
def _carry(e: AnyEngine) -> int:
    """Decodes that ride along with the prompts, which have their pages, where theirs fit too."""
    s, o = e.scalar, e.own
    if not (e.rule[sg.IS_MIXING] and e.rule[sg.CHUNK]):
        return st.ZERO
    if s[st.N_DECODES] + o[sg.N_GONE] == 0:
        return st.ZERO
    if drop_ending(e) > 0:
        o[sg.FULL] = 0
    o[sg.N_GONE] = o[sg.GONE_LEFT] = 0
    if not has_pages(e):
        return st.ZERO
    make_room(e, s[st.N_DECODES] << e.limit[st.BLOCK_BITS])
    return int(s[st.N_DECODES])


@part
def _count_prompts(e: AnyEngine) -> None:
    """The tokens of the batch, and the pairs of tokens that attention sees."""
    s, which = e.scalar, 1 - e.own[sg.BACK]
    s[st.PREFILL_TOKENS] = s[st.PREFILL_PAIRS] = s[st.N_ENDED] = 0
    for at in range(e.own[sg.N_BATCH]):
        done, n = e.slot[e.batch[which, at, sg.ROW_SLOT], st.DONE], e.batch[which, at, sg.TOKENS]
        s[st.PREFILL_TOKENS] += n
        s[st.PREFILL_PAIRS] += n * (2 * done + n)
        s[st.N_ENDED] += e.batch[which, at, sg.ENDS]


@part
def _compute_prompts(e: AnyEngine) -> None:
    """The tokens of the batch take their pages."""
    which = 1 - e.own[sg.BACK]
    for at in range(e.own[sg.N_BATCH]):
        v = e.batch[which, at, sg.ROW_SLOT]
        done, n = e.slot[v, st.DONE], e.batch[which, at, sg.TOKENS]
        e.scalar[st.FREE] -= n_blocks(e.limit, done + n) - n_blocks(e.limit, done)
        e.slot[v, st.DONE] = done + n


@rare
def _send_prefill(e: AnyEngine) -> None:
    s, o, bits, to = e.scalar, e.own, e.limit[st.BLOCK_BITS], 2 * (1 - e.own[sg.BACK])
    _count_prompts(e)
    make_room(e, s[st.PREFILL_TOKENS] + ((o[sg.N_BATCH] << bits) if bits > 0 else 0))
    _compute_prompts(e)
    carried = _carry(e)
    n_decodes, context = s[st.N_DECODES], s[st.CONTEXT]
    if carried == 0:
        s[st.N_DECODES] = s[st.CONTEXT] = 0
    step_s, e.flight_s[to], e.flight_s[to + 1] = mixed_step_s(e)
    s[st.N_DECODES], s[st.CONTEXT] = n_decodes, context
    position = st.MINUS_ONE
    if carried > 0:
        _go_on(e)
        position = s[st.STEP]
    o[sg.CARRIED] = carried
    _send(e, ticks(step_s), s[st.PREFILL_TOKENS] + carried, o[sg.N_BATCH], position)


@part
def _finish(e: AnyEngine, v: int) -> None:
    """The slot's request has all its tokens."""
    s, o, i = e.scalar, e.own, e.slot[v, st.ID]
    e.request[i, st.END], e.request[i, st.MADE] = s[st.NOW], e.request[i, st.OUTPUT]
    n_known = e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - 1
    # Before 0.5.22 a token that is computed once more than needed is kept too.
    keep(far(e), v, n_known if e.rule[sg.KNOWS_ENDS] else n_done(e, v))
    if e.slot[v, sg.IS_RUNNING] == RUNNING:
        if e.rule[sg.KNOWS_ENDS]:
            o[sg.FULL] = 0
        else:
            # Before 0.5.22 it stays in the way until the next decode.
            o[sg.N_GONE] += 1
            o[sg.GONE_LEFT] += e.requested[i, sg.ASKED] - e.request[i, st.OUTPUT]
    leave(e, v)
    s[st.OUTSTANDING] -= 1


@part
def _first_finished(e: AnyEngine, position: int) -> int:
    """Of the slots that end with this decode step, the first in order."""
    v, best = e.ring[position & (e.ring.shape[0] - 1)], st.MINUS_ONE
    while v >= 0:
        if best < 0 or e.slot[v, sg.ORDER] < e.slot[best, sg.ORDER]:
            best = v
        v = e.slot[v, st.PEER_AFTER]
    return int(best)


@part
def _prompts_done(e: AnyEngine, which: int) -> None:
    """Prompts that were computed to their end have a token more."""
    s, o = e.scalar, e.own
    for at in range(e.flight[which, sg.N_ROWS]):
        v, i = e.batch[which, at, sg.ROW_SLOT], e.batch[which, at, sg.ROW_ID]
        if e.batch[which, at, sg.ENDS] == 0 or e.slot[v, st.ID] != i:
            continue
        if e.slot[v, sg.IS_FRESH]:
            e.slot[v, sg.IS_FRESH] = 0
            o[sg.N_FRESH] -= int(e.slot[v, sg.IS_RUNNING] == RUNNING)
        if e.request[i, st.FIRST] < 0:
            e.request[i, st.FIRST] = s[st.NOW]
        if e.request[i, st.MADE] + 1 >= e.request[i, st.OUTPUT]:
            _finish(e, v)
        else:
            keep(far(e), v, target(e, i))


@rare
def finish_all(e: AnyEngine, which: int, position: int) -> None:
    """Prompts of a batch that was processed, and decodes that end with it."""
    if which >= 0:
        _prompts_done(e, which)
    while position >= 0:
        v = _first_finished(e, position)
        if v < 0:
            return
        _finish(e, v)


@part
def _process(e: AnyEngine, which: int) -> None:
    """The first batch on the way ends: its tokens are known."""
    s, end = e.scalar, e.flight[which, sg.END]
    used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
    peaks = (e.flight_s[2 * which], e.flight_s[2 * which + 1])
    account(e.scalar, e.bins, end, used, peaks)
    s[st.NOW], s[st.FRAC] = end, e.flight[which, sg.END_FRAC]
    s[st.COMPUTED] += e.flight[which, sg.N_TOKENS]
    s[st.N_STEPS] += 1
    e.own[sg.N_PENDING] -= 1
    finish_all(far(e), which, e.flight[which, sg.POSITION])


@part
def _is_idle(e: AnyEngine) -> bool:
    """Nothing runs, waits or is on the way."""
    s, o = e.scalar, e.own
    n = s[st.N_RUNNING] + o[sg.N_READY] + o[sg.N_PENDING] + o[sg.N_GONE]
    return bool(n == 0 and o[sg.LAST] == sg.NO_BATCH)


@part
def _prefill(e: AnyEngine) -> bool:
    """Prompts go first: where anyone can be let in, a batch of them begins."""
    s, o = e.scalar, e.own
    is_open = o[sg.FULL] == 0 or s[st.N_DECODES] + o[sg.N_GONE] == 0
    if o[sg.CHUNKED] < 0 and not (o[sg.N_READY] > 0 and is_open):
        return False
    if not draw_prefill(far(e)):
        return False
    _send_prefill(far(e))
    return True


@part
def _note_batch(e: AnyEngine, kind: int) -> int:
    """What is on the way is waited for; FOREVER where nothing is, and nothing can be done."""
    s, o = e.scalar, e.own
    had, is_sent = o[sg.LAST] != sg.NO_BATCH, kind != sg.NO_BATCH
    o[sg.LAST] = kind
    s[st.IN_FLIGHT] = int(had if e.limit[st.IS_AHEAD] else is_sent)
    return 0 if is_sent or had or o[sg.N_PENDING] > 0 else st.FOREVER


@part
def _decide(e: AnyEngine, until: int) -> int:
    """The next batch, or many; the instant of the next decision where it lies beyond `until`."""
    s, o, planned = e.scalar, e.own, MUST_STEP
    if o[sg.CHUNKED] >= 0:
        keep(far(e), o[sg.CHUNKED], e.slot[o[sg.CHUNKED], st.DONE])
    merge(e)
    if _prefill(e):
        return _note_batch(e, sg.EXTEND)
    if e.limit[st.IS_JUMPING] and can_jump(e):
        planned = jump(e, until)
    if planned == MUST_STEP:
        kind = sg.NO_BATCH
        if draw_decode(e):
            _send_decode(e)
            kind = sg.DECODE
        return _note_batch(e, kind)
    if planned == TAKEN:
        o[sg.LAST] = sg.DECODE
        if o[sg.N_PENDING] == 0:
            finish_all(far(e), st.MINUS_ONE, s[st.STEP])
    return planned


@part
def advance(e: AnyEngine, until: int) -> int:
    """Bring one engine up to this instant; the result is when it next has something to report.

    What is decided at `until` or later is left alone: what arrives then must be seen first.
    """
    s, o = e.scalar, e.own
    while True:
        if s[st.IN_FLIGHT]:
            which = o[sg.BACK] if o[sg.N_PENDING] == 1 else 1 - o[sg.BACK]
            if e.flight[which, sg.END] > until:
                return int(e.flight[which, sg.END])
            _process(e, which)
            s[st.IN_FLIGHT] = 0
        see_arrivals(e)
        if _is_idle(e):
            e.real[sg.RATIO], o[sg.DECAYS] = e.real[sg.INIT], 0
            head = s[st.WAIT_HEAD]
            if head < 0:
                return st.FOREVER
            s[st.NOW], s[st.FRAC] = e.request[head, st.ARRIVE], 0
            see_arrivals(e)
        if s[st.NOW] >= until:
            return int(s[st.NOW])
        planned = _decide(e, until)
        if planned > 0:
            return planned
