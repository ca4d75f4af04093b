"""The cache of prefixes of one engine: full blocks, found from the start, evicted oldest first.

As in vLLM V1: a block is entered when it is scheduled; a prompt is found up to its last token at
most; what is freed queues for eviction, the end of a text before its start; blocks that were never
full are reused first [vLLM-V1-scheduler]. One rule differs: a request that
finds its text written by another enters no further block of that segment.

Free blocks are runs of a segment. Every holder of a block holds all before it, and every free
block is older than those before it, so that runs are cut at their ends only.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, near, part, rare
from gpuplan.simulation.serving.kernels.prefix.entries import (
    add_node,
    drop_if_empty,
    find_entry,
    make_entry,
    reach,
    unlink_holder,
)

UNBOUNDED = 1 << 40


@part
def _leave_queue(e: AnyEngine, r: int) -> None:
    s, run = e.scalar, e.run
    older, newer = run[r, st.OLDER], run[r, st.NEWER]
    if older >= 0:
        run[older, st.NEWER] = newer
    else:
        s[st.OLDEST] = newer
    if newer >= 0:
        run[newer, st.OLDER] = older
    else:
        s[st.NEWEST] = older
    run[r, st.NEWER] = s[st.RUN_SPARE]
    s[st.RUN_SPARE] = r


@part
def _free_run(e: AnyEngine, x: int, low: int, high: int) -> None:
    """Blocks that nobody uses any more are the last to be evicted."""
    s, run, row = e.scalar, e.run, e.entry[x]
    r = s[st.RUN_SPARE]
    if r >= 0:
        s[st.RUN_SPARE] = run[r, st.NEWER]
    else:
        r = s[st.RUN_TOP]
        s[st.RUN_TOP] += 1
    outer = row[st.RUN_INNERMOST]
    run[r, st.RUN_ENTRY], run[r, st.LOW], run[r, st.HIGH] = x, low, high
    run[r, st.OLDER], run[r, st.NEWER], run[r, st.INNER], run[r, st.OUTER] = (
        s[st.NEWEST],
        st.NONE,
        st.NONE,
        outer,
    )
    if s[st.NEWEST] >= 0:
        run[s[st.NEWEST], st.NEWER] = r
    else:
        s[st.OLDEST] = r
    s[st.NEWEST] = r
    row[st.RUN_INNERMOST] = r
    if outer >= 0:
        run[outer, st.INNER] = r
    else:
        row[st.RUN_OUTERMOST] = r


@rare
def _evict(e: AnyEngine, n: int) -> None:
    e = near(e)
    s, run = e.scalar, e.run
    s[st.N_EVICTED] += n
    while n > 0:
        r = s[st.OLDEST]
        x, low = run[r, st.RUN_ENTRY], run[r, st.LOW]
        gone = min(n, run[r, st.HIGH] - low)
        n -= gone
        run[r, st.HIGH] -= gone
        e.entry[x, st.CACHED] = run[r, st.HIGH]
        if run[r, st.HIGH] == low:
            inner = run[r, st.INNER]
            e.entry[x, st.RUN_OUTERMOST] = inner
            if inner >= 0:
                run[inner, st.OUTER] = st.NONE
            else:
                e.entry[x, st.RUN_INNERMOST] = st.NONE
            _leave_queue(e, r)
            drop_if_empty(e, x)


def _take_any(e: AnyEngine, n: int) -> None:
    e.scalar[st.FREE] -= n


@policy(otherwise=_take_any)
def take(e: AnyEngine, n: int) -> None:
    """So many free blocks are used from now on; the oldest text goes first."""
    s = e.scalar
    s[st.FREE] -= n
    if n <= s[st.BARE]:
        s[st.BARE] -= n
        return
    missing = n - s[st.BARE]
    s[st.BARE] = 0
    _evict(far(e), missing)


@part
def _claim(e: AnyEngine, x: int, extent: int) -> None:
    """Free blocks of a segment, up to here, are used again."""
    s, run, row = e.scalar, e.run, e.entry[x]
    if extent <= row[st.HELD]:
        return
    s[st.FREE] -= extent - row[st.HELD]
    row[st.HELD] = extent
    while True:
        r = row[st.RUN_INNERMOST]
        if r < 0 or run[r, st.LOW] >= extent:
            return
        if run[r, st.HIGH] > extent:
            run[r, st.LOW] = extent
            return
        outer = run[r, st.OUTER]
        row[st.RUN_INNERMOST] = outer
        if outer >= 0:
            run[outer, st.INNER] = st.NONE
        else:
            row[st.RUN_OUTERMOST] = st.NONE
        _leave_queue(e, r)


@part
def _write_up_to(e: AnyEngine, w: int, n_tokens: int) -> None:
    """What the decode has filled of its own segment is in the cache."""
    n = e.slot[w, st.NODES]
    extent = (n_tokens >> e.limit[st.BLOCK_BITS]) - e.extra[e.slot[w, st.ID], st.BASE]
    if extent > e.node[n, st.EXTENT]:
        reach(e, n, extent)


@part
def _settle(e: AnyEngine, x: int) -> None:
    """The segment has all that its writer, if it has one, has been scheduled to write."""
    w = e.entry[x, st.WRITER]
    if w >= 0:
        s = e.scalar
        n_tokens = e.slot[w, st.OFFSET] + s[st.STEP]
        is_due = s[st.IS_WALKING] and e.slot[w, st.STAMP] < s[st.TICK]
        _write_up_to(e, w, n_tokens - s[st.GAIN] if is_due else n_tokens)


def _find_nothing(_: AnyEngine, __: int, ___: int) -> tuple[int, int, bool]:
    return 0, 0, False


@policy(otherwise=_find_nothing)
def find(e: AnyEngine, i: int, n_tokens: int) -> tuple[int, int, bool]:
    """Blocks of the request that are cached; those of them that are free; is one being written?"""
    hit, n_free, first = 0, 0, e.path_first[i]
    if not e.limit[st.IS_CACHING]:
        return hit, n_free, False
    most = (n_tokens - 1) >> e.limit[st.BLOCK_BITS]
    n_foreign = e.path_first[i + 1] - first
    for k in range(n_foreign + 1):
        is_own = k == n_foreign
        x = find_entry(e, i if is_own else e.path[first + k, st.SEGMENT])
        if x < 0:
            return hit, n_free, False
        _settle(e, x)
        shared = UNBOUNDED if is_own else e.path[first + k, st.N_SHARED]
        got = min(e.entry[x, st.CACHED], shared, most - hit)
        n_free += max(0, got - e.entry[x, st.HELD])
        hit += got
        if got < shared:
            return hit, n_free, bool(e.entry[x, st.WRITER] >= 0)
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
    i = e.slot[v, st.ID]
    e.slot[v, st.ORDER], e.slot[v, st.STAMP] = e.scalar[st.ORDERED], st.NONE
    e.scalar[st.ORDERED] += 1
    first, end = e.path_first[i], e.path_first[i + 1]
    k, covered, left = first, 0, hit
    e.slot[v, st.NODES] = e.slot[v, st.AT_NODE] = st.NONE
    while left > 0:
        shared = e.path[k, st.N_SHARED] if k < end else UNBOUNDED
        x = find_entry(e, e.path[k, st.SEGMENT] if k < end else i)
        got = min(shared, left)
        _claim(e, x, got)
        n = add_node(e, v, x, got)
        left -= got
        if got < shared:
            e.slot[v, st.AT_NODE] = n
            break
        k += 1
        covered += shared
    e.slot[v, st.ELEMENT], e.slot[v, st.COVERED] = k, covered


@policy(otherwise=_hold_nothing)
def enter(e: AnyEngine, v: int, n_tokens: int) -> None:
    """Full blocks of the slot's first tokens are in the cache, unless it has them already."""
    if e.limit[st.IS_CACHING]:
        _enter(far(e), v, n_tokens >> e.limit[st.BLOCK_BITS])


@rare
def _enter(e: AnyEngine, v: int, full: int) -> None:
    e = near(e)
    i = e.slot[v, st.ID]
    end = e.path_first[i + 1]
    while full > e.slot[v, st.COVERED]:
        k = e.slot[v, st.ELEMENT]
        shared = e.path[k, st.N_SHARED] if k < end else UNBOUNDED
        n = e.slot[v, st.AT_NODE]
        if n < 0:
            x = make_entry(e, e.path[k, st.SEGMENT] if k < end else i)
            n = add_node(e, v, x, st.ZERO)
            e.slot[v, st.AT_NODE] = n
        _extend(e, n, min(full - e.slot[v, st.COVERED], shared))
        if full - e.slot[v, st.COVERED] < shared:
            return
        e.slot[v, st.ELEMENT] += 1
        e.slot[v, st.COVERED] += shared
        e.slot[v, st.AT_NODE] = st.NONE


@part
def _extend(e: AnyEngine, n: int, extent: int) -> None:
    x = e.node[n, st.NODE_ENTRY]
    if e.node[n, st.IS_APART] or extent <= e.node[n, st.EXTENT]:
        return
    _settle(e, x)
    if e.entry[x, st.CACHED] > e.node[n, st.EXTENT]:
        e.node[n, st.IS_APART] = 1
        return
    e.entry[x, st.WRITER] = st.NONE
    reach(e, n, extent)


def _write_nothing(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_write_nothing)
def start_writing(e: AnyEngine, v: int) -> None:
    """The slot decodes: it fills blocks of its own segment from now on."""
    if not e.limit[st.IS_CACHING]:
        return
    n = e.slot[v, st.AT_NODE]
    if n < 0:
        n = add_node(e, v, make_entry(e, e.slot[v, st.ID]), st.ZERO)
        e.slot[v, st.AT_NODE] = n
    x = e.node[n, st.NODE_ENTRY]
    if e.entry[x, st.CACHED] > e.node[n, st.EXTENT]:
        e.node[n, st.IS_APART] = 1
    if not e.node[n, st.IS_APART]:
        e.entry[x, st.WRITER] = v


def _give_back_any(e: AnyEngine, _: int, n_held: int, __: int) -> None:
    e.scalar[st.FREE] += n_held


@policy(otherwise=_give_back_any)
def give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    """The slot's blocks are free; those that hold so many written tokens may be found again."""
    _give_back(far(e), v, n_held, n_written)


@rare
def _give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    e = near(e)
    s, node, rest = e.scalar, e.node, n_held
    n = e.slot[v, st.NODES]
    if n >= 0 and e.entry[node[n, st.NODE_ENTRY], st.WRITER] == v:
        _write_up_to(e, v, n_written)
        e.entry[node[n, st.NODE_ENTRY], st.WRITER] = st.NONE
    while n >= 0:
        x, earlier = node[n, st.NODE_ENTRY], node[n, st.EARLIER]
        rest -= node[n, st.EXTENT]
        unlink_holder(e, n)
        node[n, st.EARLIER] = s[st.NODE_SPARE]
        s[st.NODE_SPARE] = n
        top = e.entry[x, st.HOLDER]
        held = node[top, st.EXTENT] if top >= 0 else 0
        if held < e.entry[x, st.HELD]:
            _free_run(e, x, held, e.entry[x, st.HELD])
            s[st.FREE] += e.entry[x, st.HELD] - held
            e.entry[x, st.HELD] = held
        else:
            drop_if_empty(e, x)
        n = earlier
    e.slot[v, st.NODES] = st.NONE
    s[st.FREE] += rest
    s[st.BARE] += rest
