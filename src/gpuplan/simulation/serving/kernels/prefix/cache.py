"""The cache of prefixes of one engine: full blocks, found from the start, evicted oldest first.

As in vLLM V1: a block is entered when it is scheduled, whether its text is there already or not;
a prompt is found up to its last token at most; what is freed queues for eviction, the end of a
text before its start [vLLM-V1-scheduler]. Which block a sequence holds is decided when its text is
entered; until then only their number counts. Decodes enter theirs when somebody asks for them.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, near, part, rare
from gpuplan.simulation.serving.kernels.prefix.blocks import (
    ROW_MASK,
    find_row,
    free,
    leave_free,
    make_row,
    pick,
    take_blocks,
    write,
)

UNBOUNDED = 1 << 40


def _take_any(e: AnyEngine, n: int) -> None:
    e.scalar[st.FREE] -= n


@policy(otherwise=_take_any)
def take(e: AnyEngine, n: int) -> None:
    """So many free blocks are used from now on; the oldest text goes first."""
    e.scalar[st.FREE] -= n
    if e.limit[st.IS_CACHING]:
        take_blocks(far(e), n)


@part
def _name(e: AnyEngine, v: int, place: int) -> int:
    """The block that the slot holds at this place of its text, from now on by number."""
    b = pick(e)
    e.own[v, place] = b
    e.block[b, st.USERS], e.block[b, st.ROW] = 1, st.NONE
    return b


@part
def _write_up_to(e: AnyEngine, w: int, n_tokens: int) -> None:
    """What the decode has filled of its own segment is in the cache."""
    full, slot = n_tokens >> e.limit[st.BLOCK_BITS], e.slot[w]
    r = st.NONE
    for place in range(slot[st.ENTERED], full):
        q = place - slot[st.COVERED]
        if r < 0 or (q & ROW_MASK) == 0:
            r = make_row(e, slot[st.ID], q)
        write(e, r, q, _name(e, w, place))
    slot[st.ENTERED] = max(slot[st.ENTERED], full)


@part
def _writer(e: AnyEngine, segment: int) -> int:
    """The slot of this engine that decodes the segment, or NONE."""
    w = e.extra[segment, st.WRITER]
    # It may have decoded on an engine that is gone, and be computed anew here.
    is_there = w >= 0 and e.slot[w, st.ID] == segment and e.slot[w, st.DONE] < 0
    return int(w) if is_there else st.NONE


@part
def _settle(e: AnyEngine, segment: int) -> None:
    """The segment has all that its writer, if it has one, has been scheduled to write.

    An engine that schedules ahead does not know the last token yet.
    """
    w = _writer(e, segment)
    if w >= 0:
        s = e.scalar
        n_tokens = e.slot[w, st.OFFSET] + s[st.STEP] - e.limit[st.IS_AHEAD]
        is_due = s[st.IS_WALKING] and e.slot[w, st.STAMP] < s[st.TICK]
        is_due = is_due or e.slot[w, st.DONE] == st.LEAVING
        _write_up_to(e, w, n_tokens - s[st.GAIN] if is_due else n_tokens)


def _find_nothing(_: AnyEngine, __: int, ___: int) -> tuple[int, int, bool]:
    return 0, 0, False


@policy(otherwise=_find_nothing)
def find(e: AnyEngine, i: int, n_tokens: int) -> tuple[int, int, bool]:
    """Blocks of the request that are cached; those of them that are free; is one being written?"""
    if not e.limit[st.IS_CACHING]:
        return 0, 0, False
    return _find(far(e), i, (n_tokens - 1) >> e.limit[st.BLOCK_BITS])


@rare
def _find(e: AnyEngine, i: int, most: int) -> tuple[int, int, bool]:
    e = near(e)
    hit, n_free, first = 0, 0, e.path_first[i]
    n_foreign, found = e.path_first[i + 1] - first, e.own[e.own.shape[0] - 1]
    for k in range(n_foreign + 1):
        is_own = k == n_foreign
        segment = i if is_own else e.path[first + k, st.SEGMENT]
        end = min(UNBOUNDED if is_own else e.path[first + k, st.N_SHARED], most - hit)
        _settle(e, segment)
        r = st.NONE
        for q in range(end):
            if (q & ROW_MASK) == 0:
                r = find_row(e, segment, q)
            b = e.row[r, st.CELLS + (q & ROW_MASK)] if r >= 0 else st.NONE
            if b < 0:
                return hit, n_free, _writer(e, segment) >= 0
            found[hit] = b
            n_free += e.block[b, st.USERS] == 0
            hit += 1
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


@policy(otherwise=_hold_nothing)
def hold(e: AnyEngine, v: int, hit: int) -> None:
    """The slot, the last to be admitted, uses the blocks that were found for its request."""
    slot, last = e.slot[v], e.own.shape[0] - 1
    slot[st.ORDER], slot[st.STAMP] = e.scalar[st.ORDERED], st.NONE
    e.scalar[st.ORDERED] += 1
    slot[st.ENTERED], slot[st.COVERED] = hit, 0
    slot[st.ELEMENT] = e.path_first[slot[st.ID]]
    for place in range(hit):
        b = e.own[v, place] = e.own[last, place]
        if e.block[b, st.USERS] == 0:
            leave_free(e, b)
            e.scalar[st.FREE] -= 1
        e.block[b, st.USERS] += 1


@policy(otherwise=_hold_nothing)
def enter(e: AnyEngine, v: int, n_tokens: int) -> None:
    """Full blocks of the slot's first tokens are in the cache."""
    if e.limit[st.IS_CACHING]:
        _enter(far(e), v, n_tokens >> e.limit[st.BLOCK_BITS])


@rare
def _enter(e: AnyEngine, v: int, full: int) -> None:
    e = near(e)
    slot, place = e.slot[v], e.slot[v, st.ENTERED]
    end, r = e.path_first[slot[st.ID] + 1], st.NONE
    while place < full:
        k, q = slot[st.ELEMENT], place - slot[st.COVERED]
        if k < end and q >= e.path[k, st.N_SHARED]:
            slot[st.COVERED] += e.path[k, st.N_SHARED]
            slot[st.ELEMENT] += 1
            r = st.NONE
            continue
        segment = e.path[k, st.SEGMENT] if k < end else slot[st.ID]
        if r < 0 and k < end:
            _settle(e, segment)
        if r < 0 or (q & ROW_MASK) == 0:
            r = make_row(e, segment, q)
        write(e, r, q, _name(e, v, place))
        place += 1
    slot[st.ENTERED] = place


def _write_nothing(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_write_nothing)
def start_writing(e: AnyEngine, v: int) -> None:
    """The slot decodes: it fills blocks of its own segment from now on."""
    if not e.limit[st.IS_CACHING]:
        return
    slot = e.slot[v]
    for k in range(slot[st.ELEMENT], e.path_first[slot[st.ID] + 1]):
        slot[st.COVERED] += e.path[k, st.N_SHARED]
    slot[st.ELEMENT] = e.path_first[slot[st.ID] + 1]
    e.extra[slot[st.ID], st.WRITER] = v
    # Whoever waits for blocks and begins with this text may find more of it from now on.
    e.scalar[st.BLOCKED] = 0


def _give_back_any(e: AnyEngine, _: int, n_held: int, __: int) -> None:
    e.scalar[st.FREE] += n_held


@policy(otherwise=_give_back_any)
def give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    """The slot's blocks are free; those that hold so many written tokens may be found again."""
    if e.limit[st.IS_CACHING]:
        _give_back(far(e), v, n_held, n_written)
    else:
        e.scalar[st.FREE] += n_held


@rare
def _give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    e = near(e)
    i, block = e.slot[v, st.ID], e.block
    if _writer(e, i) == v:
        _write_up_to(e, v, n_written)
        e.extra[i, st.WRITER] = st.NONE
    for _ in range(e.slot[v, st.ENTERED], n_held):
        b = pick(e)
        block[b, st.ROW] = st.NONE
        block[b, st.USERS] = 0
        free(e, b)
    for place in range(e.slot[v, st.ENTERED] - 1, -1, -1):
        b = e.own[v, place]
        block[b, st.USERS] -= 1
        if block[b, st.USERS] == 0:
            free(e, b)
    e.slot[v, st.ID] = st.NONE
