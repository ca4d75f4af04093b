"""What an engine holds: slots of requests, pages of each, and the order of those that decode."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import (
    blocks_between,
    count_phase,
    forget_finish,
    n_blocks,
    note_finish,
)
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.tree import evict, insert, lock, unlock

RUNNING, ENDING = 1, 2  # values of IS_RUNNING


@part
def target(e: AnyEngine, i: int) -> int:
    """Tokens that a prefill of the request has to reach."""
    return int(e.request[i, st.INPUT] + e.request[i, st.MADE])


@part
def n_done(e: AnyEngine, v: int) -> int:
    """Tokens of the slot in the cache, with those of batches on the way."""
    done = e.slot[v, st.DONE]
    return int(done if done >= 0 else e.slot[v, st.OFFSET] + e.scalar[st.STEP] - 1)


@part
def n_made(e: AnyEngine, v: int) -> int:
    """Tokens that a slot that decodes is known to have made."""
    n = e.slot[v, st.OFFSET] + e.scalar[st.STEP] - e.request[e.slot[v, st.ID], st.INPUT]
    return int(n - max(is_lagging(e), e.slot[v, sg.IS_FRESH]))


@part
def is_lagging(e: AnyEngine) -> int:
    """1 where a step of all that decode is on the way, else 0."""
    if e.own[sg.N_PENDING] == 0:
        return st.ZERO
    return st.ONE if e.flight[e.own[sg.BACK], sg.POSITION] >= 0 else st.ZERO


@part
def take_slot(e: AnyEngine, i: int) -> int:
    """A slot for the request."""
    s, slot = e.scalar, e.slot
    v = s[st.FREE_SLOT]
    s[st.FREE_SLOT] = slot[v, st.AFTER]
    s[st.N_RUNNING] += 1
    slot[v, st.ID], slot[v, sg.NODE], slot[v, sg.SAFE] = i, sg.ROOT, 0
    slot[v, sg.IS_RUNNING] = slot[v, sg.IS_FRESH] = 0
    return int(v)


@part
def _give_back(e: AnyEngine, v: int, done: int) -> None:
    """The slot and the pages of its tokens are free; text of the tree stays until it is evicted."""
    s, slot = e.scalar, e.slot
    s[st.FREE] += n_blocks(e.limit, done) - slot[v, sg.SAFE]
    if slot[v, sg.NODE] != sg.ROOT:
        unlock(e, slot[v, sg.NODE])
    s[st.N_RUNNING] -= 1
    slot[v, st.ID], slot[v, st.AFTER] = st.NONE, s[st.FREE_SLOT]
    s[st.FREE_SLOT] = v


@rare
def keep(e: AnyEngine, v: int, n: int) -> None:
    """The first n tokens of the slot are handed to the tree and locked for it."""
    if e.rule[sg.HAS_TREE] == 0:
        return
    i, bits = e.slot[v, st.ID], e.limit[st.BLOCK_BITS]
    pages = n >> bits
    x = insert(e, i, pages)
    if n > e.request[i, st.INPUT]:
        insert(e, i, e.request[i, st.INPUT] >> bits)  # a cut at the prompt's end
    unlock(e, e.slot[v, sg.NODE])
    lock(e, x)
    e.scalar[st.FREE] += pages - e.slot[v, sg.SAFE]
    e.slot[v, sg.NODE], e.slot[v, sg.SAFE] = x, pages


@part
def make_room(e: AnyEngine, n_tokens: int) -> None:
    """Pages for so many tokens are bare of text."""
    bits = e.limit[st.BLOCK_BITS]
    n_bare = e.scalar[st.FREE] - (e.own[sg.N_TREE] - e.own[sg.N_LOCKED])
    n = n_blocks(e.limit, n_tokens - (n_bare << bits))
    if n > 0 and e.own[sg.N_HEAP] > 0:
        evict(far(e), n)


@part
def _link(e: AnyEngine, v: int, before: int, after: int) -> None:
    s, slot = e.scalar, e.slot
    slot[v, st.BEFORE], slot[v, st.AFTER] = before, after
    if before >= 0:
        slot[before, st.AFTER] = v
    else:
        s[st.HEAD] = v
    if after >= 0:
        slot[after, st.BEFORE] = v
    else:
        s[st.TAIL] = v


@part
def run(e: AnyEngine, v: int, before: int, after: int) -> None:
    """The slot, whose prompt is computed to its end, decodes from now on, in this place."""
    s, slot, i = e.scalar, e.slot, e.slot[v, st.ID]
    _link(e, v, before, after)
    slot[v, sg.IS_FRESH] = int(e.own[sg.N_PENDING] > 0)
    slot[v, st.OFFSET], slot[v, st.DONE] = slot[v, st.DONE] + 1 - s[st.STEP], st.NONE
    slot[v, sg.IS_RUNNING] = RUNNING
    ends = e.request[i, st.INPUT] + e.request[i, st.OUTPUT] - slot[v, st.OFFSET]
    note_finish(e.ring, e.word, e.slot, v, ends)
    _count(e, v, st.ONE)


@part
def _count(e: AnyEngine, v: int, sign: int) -> None:
    """What a slot that decodes adds to the sums over all that do, or takes from them."""
    s, o, i, offset = e.scalar, e.own, e.slot[v, st.ID], e.slot[v, st.OFFSET]
    count_phase(e.scalar, e.limit, offset, sign)
    s[st.N_DECODES] += sign
    s[st.CONTEXT] += sign * (offset + s[st.STEP])
    requested = e.requested[i, sg.ASKED]
    o[sg.COMMITTED] += sign * (requested + e.request[i, st.INPUT] - offset)
    o[sg.N_LONG] += sign * int(requested > sg.CLIP)
    o[sg.N_FRESH] += sign * e.slot[v, sg.IS_FRESH]


@rare
def stop_running(e: AnyEngine, v: int) -> None:
    """The slot no longer decodes; it may hold its pages yet."""
    s, slot = e.scalar, e.slot
    before, after = slot[v, st.BEFORE], slot[v, st.AFTER]
    if before >= 0:
        slot[before, st.AFTER] = after
    else:
        s[st.HEAD] = after
    if after >= 0:
        slot[after, st.BEFORE] = before
    else:
        s[st.TAIL] = before
    _count(e, v, st.MINUS_ONE)
    slot[v, sg.IS_RUNNING] = 0


@part
def end_soon(e: AnyEngine, v: int) -> None:
    """The slot's last token is on the way: it holds its pages and decodes no more."""
    done = n_done(e, v)
    stop_running(far(e), v)
    e.slot[v, st.DONE], e.slot[v, sg.IS_RUNNING] = done, ENDING


@rare
def leave(e: AnyEngine, v: int) -> None:
    """The slot is given up, wherever it stands."""
    if e.slot[v, sg.IS_RUNNING]:
        forget_finish(e.ring, e.word, e.slot, v)
    done = n_done(e, v)
    if e.slot[v, sg.IS_RUNNING] == RUNNING:
        stop_running(e, v)
    if e.own[sg.CHUNKED] == v:
        e.own[sg.CHUNKED] = st.NONE
    _give_back(e, v, done)


@part
def n_needed(e: AnyEngine) -> int:
    """Pages that one more token of each that decodes takes."""
    return blocks_between(e.scalar, e.limit, e.scalar[st.STEP], st.ONE)


@part
def has_pages(e: AnyEngine) -> bool:
    """One more token of each that decodes has its pages: text goes for them, even in vain."""
    n = n_needed(e)
    make_room(e, n << e.limit[st.BLOCK_BITS])
    return bool(e.scalar[st.FREE] >= n)
