"""The cache of prefixes of one engine: full blocks, found from the start, evicted oldest first.

As in vLLM V1: a block is entered when it is scheduled; a prompt is found up to its last token at
most; what is freed queues for eviction, the end of a text before its start; blocks that were never
full are reused first [vLLM-V1-scheduler]. One rule differs: a request that
finds its text written by another enters no further block of that segment.

Free blocks are runs of a segment. Every holder of a block holds all before it, and every free
block is older than those before it, so that runs are cut at their ends only.
"""

from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.entries import (
    add_node,
    drop_if_empty,
    find_entry,
    make_entry,
    reach,
    unlink_holder,
)
from gpuplan.simulation.serving.kernels.featured import (
    AT_NODE,
    BASE,
    CACHED,
    COVERED,
    EARLIER,
    ELEMENT,
    EXTENT,
    HELD,
    HIGH,
    HOLDER,
    INNER,
    IS_APART,
    LOW,
    N_SHARED,
    NEWER,
    NODE_ENTRY,
    NODES,
    OLDER,
    OUTER,
    RUN_ENTRY,
    RUN_INNERMOST,
    RUN_OUTERMOST,
    SEGMENT,
    STAMP,
    WRITER,
    AnyEngine,
)
from gpuplan.simulation.serving.kernels.held import far, near
from gpuplan.simulation.serving.kernels.state import (
    BARE,
    BLOCK_BITS,
    FREE,
    GAIN,
    ID,
    IS_CACHING,
    IS_WALKING,
    N_EVICTED,
    NEWEST,
    NODE_SPARE,
    NONE,
    OFFSET,
    OLDEST,
    RUN_SPARE,
    RUN_TOP,
    STEP,
    TICK,
    ZERO,
)

UNBOUNDED = 1 << 40


@part
def _leave_queue(e: AnyEngine, r: int) -> None:
    s, run = e.scalar, e.run
    older, newer = run[r, OLDER], run[r, NEWER]
    if older >= 0:
        run[older, NEWER] = newer
    else:
        s[OLDEST] = newer
    if newer >= 0:
        run[newer, OLDER] = older
    else:
        s[NEWEST] = older
    run[r, NEWER] = s[RUN_SPARE]
    s[RUN_SPARE] = r


@part
def _free_run(e: AnyEngine, x: int, low: int, high: int) -> None:
    """Blocks that nobody uses any more are the last to be evicted."""
    s, run, row = e.scalar, e.run, e.entry[x]
    r = s[RUN_SPARE]
    if r >= 0:
        s[RUN_SPARE] = run[r, NEWER]
    else:
        r = s[RUN_TOP]
        s[RUN_TOP] += 1
    outer = row[RUN_INNERMOST]
    run[r, RUN_ENTRY], run[r, LOW], run[r, HIGH] = x, low, high
    run[r, OLDER], run[r, NEWER], run[r, INNER], run[r, OUTER] = s[NEWEST], NONE, NONE, outer
    if s[NEWEST] >= 0:
        run[s[NEWEST], NEWER] = r
    else:
        s[OLDEST] = r
    s[NEWEST] = r
    row[RUN_INNERMOST] = r
    if outer >= 0:
        run[outer, INNER] = r
    else:
        row[RUN_OUTERMOST] = r


@rare
def _evict(e: AnyEngine, n: int) -> None:
    e = near(e)
    s, run = e.scalar, e.run
    s[N_EVICTED] += n
    while n > 0:
        r = s[OLDEST]
        x, low = run[r, RUN_ENTRY], run[r, LOW]
        gone = min(n, run[r, HIGH] - low)
        n -= gone
        run[r, HIGH] -= gone
        e.entry[x, CACHED] = run[r, HIGH]
        if run[r, HIGH] == low:
            inner = run[r, INNER]
            e.entry[x, RUN_OUTERMOST] = inner
            if inner >= 0:
                run[inner, OUTER] = NONE
            else:
                e.entry[x, RUN_INNERMOST] = NONE
            _leave_queue(e, r)
            drop_if_empty(e, x)


@part
def take(e: AnyEngine, n: int) -> None:
    """So many free blocks are used from now on; the oldest text goes first."""
    s = e.scalar
    s[FREE] -= n
    if n <= s[BARE]:
        s[BARE] -= n
        return
    missing = n - s[BARE]
    s[BARE] = 0
    _evict(far(e), missing)


@part
def _claim(e: AnyEngine, x: int, extent: int) -> None:
    """Free blocks of a segment, up to here, are used again."""
    s, run, row = e.scalar, e.run, e.entry[x]
    if extent <= row[HELD]:
        return
    s[FREE] -= extent - row[HELD]
    row[HELD] = extent
    while True:
        r = row[RUN_INNERMOST]
        if r < 0 or run[r, LOW] >= extent:
            return
        if run[r, HIGH] > extent:
            run[r, LOW] = extent
            return
        outer = run[r, OUTER]
        row[RUN_INNERMOST] = outer
        if outer >= 0:
            run[outer, INNER] = NONE
        else:
            row[RUN_OUTERMOST] = NONE
        _leave_queue(e, r)


@part
def _write_up_to(e: AnyEngine, w: int, n_tokens: int) -> None:
    """What the decode has filled of its own segment is in the cache."""
    n = e.slot[w, NODES]
    extent = (n_tokens >> e.limit[BLOCK_BITS]) - e.extra[e.slot[w, ID], BASE]
    if extent > e.node[n, EXTENT]:
        reach(e, n, extent)


@part
def _settle(e: AnyEngine, x: int) -> None:
    """The segment has all that its writer, if it has one, has been scheduled to write."""
    w = e.entry[x, WRITER]
    if w >= 0:
        s = e.scalar
        n_tokens = e.slot[w, OFFSET] + s[STEP]
        is_due = s[IS_WALKING] and e.slot[w, STAMP] < s[TICK]
        _write_up_to(e, w, n_tokens - s[GAIN] if is_due else n_tokens)


@part
def find(e: AnyEngine, i: int, n_tokens: int) -> tuple[int, int, bool]:
    """Blocks of the request that are cached; those of them that are free; is one being written?"""
    hit, n_free, first = 0, 0, e.path_first[i]
    if not e.limit[IS_CACHING]:
        return hit, n_free, False
    most = (n_tokens - 1) >> e.limit[BLOCK_BITS]
    n_foreign = e.path_first[i + 1] - first
    for k in range(n_foreign + 1):
        is_own = k == n_foreign
        x = find_entry(e, i if is_own else e.path[first + k, SEGMENT])
        if x < 0:
            return hit, n_free, False
        _settle(e, x)
        shared = UNBOUNDED if is_own else e.path[first + k, N_SHARED]
        got = min(e.entry[x, CACHED], shared, most - hit)
        n_free += max(0, got - e.entry[x, HELD])
        hit += got
        if got < shared:
            return hit, n_free, bool(e.entry[x, WRITER] >= 0)
    return hit, n_free, False


@part
def hold(e: AnyEngine, v: int, hit: int) -> None:
    """The slot uses the blocks that were found for its request."""
    i = e.slot[v, ID]
    first, end = e.path_first[i], e.path_first[i + 1]
    k, covered, left = first, 0, hit
    e.slot[v, NODES] = e.slot[v, AT_NODE] = NONE
    while left > 0:
        shared = e.path[k, N_SHARED] if k < end else UNBOUNDED
        x = find_entry(e, e.path[k, SEGMENT] if k < end else i)
        got = min(shared, left)
        _claim(e, x, got)
        n = add_node(e, v, x, got)
        left -= got
        if got < shared:
            e.slot[v, AT_NODE] = n
            break
        k += 1
        covered += shared
    e.slot[v, ELEMENT], e.slot[v, COVERED] = k, covered


@part
def enter(e: AnyEngine, v: int, n_tokens: int) -> None:
    """Full blocks of the slot's first tokens are in the cache, unless it has them already."""
    if e.limit[IS_CACHING]:
        _enter(far(e), v, n_tokens >> e.limit[BLOCK_BITS])


@rare
def _enter(e: AnyEngine, v: int, full: int) -> None:
    e = near(e)
    i = e.slot[v, ID]
    end = e.path_first[i + 1]
    while full > e.slot[v, COVERED]:
        k = e.slot[v, ELEMENT]
        shared = e.path[k, N_SHARED] if k < end else UNBOUNDED
        n = e.slot[v, AT_NODE]
        if n < 0:
            x = make_entry(e, e.path[k, SEGMENT] if k < end else i)
            n = add_node(e, v, x, ZERO)
            e.slot[v, AT_NODE] = n
        _extend(e, n, min(full - e.slot[v, COVERED], shared))
        if full - e.slot[v, COVERED] < shared:
            return
        e.slot[v, ELEMENT] += 1
        e.slot[v, COVERED] += shared
        e.slot[v, AT_NODE] = NONE


@part
def _extend(e: AnyEngine, n: int, extent: int) -> None:
    x = e.node[n, NODE_ENTRY]
    if e.node[n, IS_APART] or extent <= e.node[n, EXTENT]:
        return
    _settle(e, x)
    if e.entry[x, CACHED] > e.node[n, EXTENT]:
        e.node[n, IS_APART] = 1
        return
    e.entry[x, WRITER] = NONE
    reach(e, n, extent)


@part
def start_writing(e: AnyEngine, v: int) -> None:
    """The slot decodes: it fills blocks of its own segment from now on."""
    if not e.limit[IS_CACHING]:
        return
    n = e.slot[v, AT_NODE]
    if n < 0:
        n = add_node(e, v, make_entry(e, e.slot[v, ID]), ZERO)
        e.slot[v, AT_NODE] = n
    x = e.node[n, NODE_ENTRY]
    if e.entry[x, CACHED] > e.node[n, EXTENT]:
        e.node[n, IS_APART] = 1
    if not e.node[n, IS_APART]:
        e.entry[x, WRITER] = v


@rare
def give_back(e: AnyEngine, v: int, n_held: int, n_written: int) -> None:
    """The slot's blocks are free; those that hold so many written tokens may be found again."""
    e = near(e)
    s, node, rest = e.scalar, e.node, n_held
    n = e.slot[v, NODES]
    if n >= 0 and e.entry[node[n, NODE_ENTRY], WRITER] == v:
        _write_up_to(e, v, n_written)
        e.entry[node[n, NODE_ENTRY], WRITER] = NONE
    while n >= 0:
        x, earlier = node[n, NODE_ENTRY], node[n, EARLIER]
        rest -= node[n, EXTENT]
        unlink_holder(e, n)
        node[n, EARLIER] = s[NODE_SPARE]
        s[NODE_SPARE] = n
        top = e.entry[x, HOLDER]
        held = node[top, EXTENT] if top >= 0 else 0
        if held < e.entry[x, HELD]:
            _free_run(e, x, held, e.entry[x, HELD])
            s[FREE] += e.entry[x, HELD] - held
            e.entry[x, HELD] = held
        else:
            drop_if_empty(e, x)
        n = earlier
    e.slot[v, NODES] = NONE
    s[FREE] += rest
    s[BARE] += rest
