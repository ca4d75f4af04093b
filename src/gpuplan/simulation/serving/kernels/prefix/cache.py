"""The cache of prefixes of one engine: full blocks, found from the start, evicted oldest first.

As in vLLM V1: a block is entered when it is scheduled, whether its text is there already or not;
a prompt is found up to its last token at most; what is freed queues for eviction, the end of a
text before its start [vLLM-V1-scheduler]. A slot holds extents as a chain from its last block to
its first; where copies of a text meet, as several. Decodes enter theirs when somebody asks.
"""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.groups import cache as groups
from gpuplan.simulation.serving.kernels.jit.compiled import far, near, part, rare
from gpuplan.simulation.serving.kernels.prefix.extents import (
    UNBOUNDED,
    drop_if_empty,
    evict,
    extend,
    find_entry,
    free,
    free_bare,
    leave_free,
    make_entry,
    oldest_at,
    split,
)


def _take_any(e: AnyEngine, n: int) -> None:
    e.scalar[st.FREE] -= n


@policy(otherwise=_take_any, grouped=_take_any)
def take(e: AnyEngine, n: int) -> None:
    """So many free blocks are used from now on; the oldest text goes first."""
    s = e.scalar
    s[st.FREE] -= n
    if not e.limit[st.IS_CACHING]:
        return
    if n <= s[st.BARE]:
        s[st.BARE] -= n
        return
    missing = n - s[st.BARE]
    s[st.BARE] = 0
    evict(far(e), missing)


@policy(grouped=groups.take_for)
def take_for(e: AnyEngine, _: int, n: int, __: int) -> None:
    """The slot takes so many free blocks, so that it has room for so many tokens in all."""
    take(e, n)


@part
def _write_up_to(e: AnyEngine, w: int, n_tokens: int) -> None:
    """What the decode has filled of its own segment is in the cache."""
    full, slot = n_tokens >> e.limit[st.BLOCK_BITS], e.slot[w]
    if full > slot[st.ENTERED]:
        covered = slot[st.COVERED]
        extend(e, w, slot[st.ID], slot[st.ENTERED] - covered, full - covered)


@part
def _settle(e: AnyEngine, segment: int) -> int:
    """The row of the segment, with all that its writer, if any, has been scheduled to write.

    An engine that schedules ahead does not know the tokens of the last step yet.
    """
    g = find_entry(e, segment)
    w = e.entry[g, st.WRITER] if g >= 0 else st.NONE
    if w >= 0:
        s, is_ahead = e.scalar, e.limit[st.IS_AHEAD]
        n_tokens = e.slot[w, st.OFFSET] + s[st.STEP] - is_ahead * s[st.GAIN]
        is_due = s[st.IS_WALKING] and e.slot[w, st.STAMP] < s[st.TICK]
        is_due = is_due or e.slot[w, st.DONE] == st.LEAVING
        n_due = 1 if is_ahead else s[st.GAIN]
        _write_up_to(e, w, n_tokens - n_due if is_due else n_tokens)
    return g


def _find_nothing(_: AnyEngine, __: int, ___: int) -> tuple[int, int, bool]:
    return 0, 0, False


@policy(otherwise=_find_nothing, grouped=groups.find)
def find(e: AnyEngine, i: int, n_tokens: int) -> tuple[int, int, bool]:
    """Blocks of the request that are cached; those of them that are free; is one being written?"""
    if not e.limit[st.IS_CACHING]:
        return 0, 0, False
    return _find(far(e), i, (n_tokens - 1) >> e.limit[st.BLOCK_BITS])


@rare
def _find(e: AnyEngine, i: int, most: int) -> tuple[int, int, bool]:
    e = near(e)
    hit, n_free, n, first = 0, 0, 0, e.path_first[i]
    n_foreign = e.path_first[i + 1] - first
    for k in range(n_foreign + 1):
        is_own = k == n_foreign
        segment = i if is_own else e.path[first + k, st.SEGMENT]
        end = min(UNBOUNDED if is_own else e.path[first + k, st.N_SHARED], most - hit)
        # A literal 0 would be a type of its own, and the search compiled twice.
        g, x, place = _settle(e, segment), st.NONE, int(np.int64(0))
        while place < end:
            x, until = oldest_at(e, g, x, place) if g >= 0 else (st.NONE, place)
            if x < 0:
                return hit, n_free, g >= 0 and e.entry[g, st.WRITER] >= 0
            until = min(until, end)
            e.found[n, 0], e.found[n, 1], e.found[n, 2] = x, place, until
            n_free += until - place if e.extent[x, st.USERS] == 0 else 0
            hit += until - place
            place = until
            n += 1
    return hit, n_free, False


def _count_nothing(_: AnyEngine, __: int, ___: int, ____: int) -> None:
    pass


@policy(otherwise=_count_nothing)
def count_hit(e: AnyEngine, i: int, done: int, n_tokens: int) -> None:
    """Of so many tokens of a request, so many were found when it was first admitted."""
    e.extra[i, st.HIT] = done
    e.scalar[st.HIT_TOKENS] += done
    e.scalar[st.ASKED_TOKENS] += n_tokens


def _hold_nothing(_: AnyEngine, __: int, ___: int) -> None:
    pass


@policy(otherwise=_hold_nothing, grouped=groups.hold)
def hold(e: AnyEngine, v: int, hit: int) -> None:
    """The slot, the last to be admitted, uses the blocks that were found for its request."""
    slot = e.slot[v]
    slot[st.ORDER], slot[st.STAMP] = e.scalar[st.ORDERED], st.NONE
    e.scalar[st.ORDERED] += 1
    slot[st.ENTERED] = slot[st.COVERED] = slot[st.N_CHAINED] = 0
    slot[st.LAST_EXTENT] = slot[st.CHAINS] = st.NONE
    slot[st.ELEMENT] = e.path_first[slot[st.ID]]
    if hit > 0:
        _hold(far(e), v, hit)


@rare
def _hold(e: AnyEngine, v: int, hit: int) -> None:
    e = near(e)
    slot, extent, n = e.slot[v], e.extent, 0
    while slot[st.ENTERED] < hit:
        x, low, high = e.found[n, 0], e.found[n, 1], e.found[n, 2]
        if extent[x, st.LOW] < low:
            split(e, x, low)
        if extent[x, st.HIGH] > high:
            x = split(e, x, high)
        if extent[x, st.USERS] == 0:
            leave_free(e, x)
            e.scalar[st.FREE] -= high - low
            extent[x, st.HELD_BEFORE] = slot[st.LAST_EXTENT]
        elif extent[x, st.HELD_BEFORE] != slot[st.LAST_EXTENT]:
            _end_chain(e, v)
        extent[x, st.USERS] += 1
        slot[st.LAST_EXTENT] = x
        slot[st.ENTERED] += high - low
        slot[st.N_CHAINED] += high - low
        n += 1


@part
def _end_chain(e: AnyEngine, v: int) -> None:
    """What the slot holds so far is a chain; the next extent came after another copy of it."""
    s, slot, chain = e.scalar, e.slot[v], e.chain
    if slot[st.N_CHAINED] == 0:
        return
    c = s[st.CHAIN_SPARE]
    if c >= 0:
        s[st.CHAIN_SPARE] = chain[c, st.CHAIN_BEFORE]
    else:
        c = s[st.CHAIN_TOP]
        s[st.CHAIN_TOP] += 1
    chain[c, st.CHAIN_END], chain[c, st.CHAIN_SIZE] = slot[st.LAST_EXTENT], slot[st.N_CHAINED]
    chain[c, st.CHAIN_BEFORE] = slot[st.CHAINS]
    slot[st.CHAINS], slot[st.N_CHAINED] = c, 0


@policy(otherwise=_hold_nothing, grouped=groups.enter)
def enter(e: AnyEngine, v: int, n_tokens: int) -> None:
    """Full blocks of the slot's first tokens are in the cache."""
    if e.limit[st.IS_CACHING]:
        full = n_tokens >> e.limit[st.BLOCK_BITS]
        if full > e.slot[v, st.ENTERED]:
            _enter(far(e), v, full)


@rare
def _enter(e: AnyEngine, v: int, full: int) -> None:
    e = near(e)
    slot, end = e.slot[v], e.path_first[e.slot[v, st.ID] + 1]
    while slot[st.ENTERED] < full:
        k, low = slot[st.ELEMENT], slot[st.ENTERED] - slot[st.COVERED]
        if k == end:
            extend(e, v, slot[st.ID], low, full - slot[st.COVERED])
            return
        high = min(full - slot[st.COVERED], e.path[k, st.N_SHARED])
        if low < high:
            _settle(e, e.path[k, st.SEGMENT])
            extend(e, v, e.path[k, st.SEGMENT], low, high)
        if high == e.path[k, st.N_SHARED]:
            slot[st.COVERED] += high
            slot[st.ELEMENT] += 1


def _write_nothing(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_write_nothing, grouped=_write_nothing)
def start_writing(e: AnyEngine, v: int) -> None:
    """The slot decodes: it fills blocks of its own segment from now on."""
    if not e.limit[st.IS_CACHING]:
        return
    slot = e.slot[v]
    for k in range(slot[st.ELEMENT], e.path_first[slot[st.ID] + 1]):
        slot[st.COVERED] += e.path[k, st.N_SHARED]
    slot[st.ELEMENT] = e.path_first[slot[st.ID] + 1]
    e.entry[make_entry(e, slot[st.ID]), st.WRITER] = v
    # Whoever waits for blocks and begins with this text may find more of it from now on.
    e.scalar[st.BLOCKED] = 0


def _give_back_any(e: AnyEngine, _: int, n_held: int, __: int) -> None:
    e.scalar[st.FREE] += n_held


@policy(otherwise=_give_back_any, grouped=groups.give_back)
def give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    """The slot's blocks are free; those that hold so many written tokens may be found again."""
    if e.limit[st.IS_CACHING]:
        _give_back(far(e), v, n_held, n_written)
    else:
        e.scalar[st.FREE] += n_held


@rare
def _give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    e = near(e)
    slot = e.slot[v]
    g = find_entry(e, slot[st.ID])
    if g >= 0 and e.entry[g, st.WRITER] == v:
        _write_up_to(e, v, n_written)
        e.entry[g, st.WRITER] = st.NONE
        drop_if_empty(e, g)
    free_bare(e, n_held - slot[st.ENTERED])
    x, left = slot[st.LAST_EXTENT], slot[st.N_CHAINED]
    while x >= 0:
        before = e.extent[x, st.HELD_BEFORE]
        left -= e.extent[x, st.HIGH] - e.extent[x, st.LOW]
        e.extent[x, st.USERS] -= 1
        if e.extent[x, st.USERS] == 0:
            free(e, x)
        x = before
        if left == 0:
            x, left = _earlier_chain(e, v)
    slot[st.ID] = st.NONE


@part
def _earlier_chain(e: AnyEngine, v: int) -> tuple[int, int]:
    """The chain that the slot held before the last one, and no longer counts; its blocks."""
    c = e.slot[v, st.CHAINS]
    if c < 0:
        return st.NONE, 0
    e.slot[v, st.CHAINS] = e.chain[c, st.CHAIN_BEFORE]
    e.chain[c, st.CHAIN_BEFORE] = e.scalar[st.CHAIN_SPARE]
    e.scalar[st.CHAIN_SPARE] = c
    return e.chain[c, st.CHAIN_END], e.chain[c, st.CHAIN_SIZE]
