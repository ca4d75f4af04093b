"""The radix tree: prefixes by whole pages, the least recently used leaf evicted first.

A node is found by its first page. Leaves wait in a heap by the time they were listed with; one
that was used since is listed anew when its turn comes.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.text import agreeing, owner

SPREAD = 0x9E3779B97F4A7C1
DEPTH_BITS = 20  # a time holds the tick and, below it, how far up the path a node stands


@part
def _bucket(e: AnyEngine, who: int, page: int) -> int:
    mixed = (who * 0x2545F491 + page) * SPREAD
    return int((mixed >> 20) & (e.table.shape[0] - 1))


@rare
def _find(e: AnyEngine, who: int, page: int) -> int:
    """The node that begins with this page; NONE where there is none."""
    x = e.table[_bucket(e, who, page)]
    while x >= 0:
        if e.node[x, sg.BEGIN] == page and owner(e, e.node[x, sg.TEXT], page) == who:
            return int(x)
        x = e.node[x, sg.CHAIN]
    return st.NONE


@rare
def _chain(e: AnyEngine, x: int) -> None:
    """The node can be found by its first page."""
    page = e.node[x, sg.BEGIN]
    b = _bucket(e, owner(e, e.node[x, sg.TEXT], page), page)
    e.node[x, sg.CHAIN] = e.table[b]
    e.table[b] = x


@rare
def _unchain(e: AnyEngine, x: int) -> None:
    page = e.node[x, sg.BEGIN]
    b = _bucket(e, owner(e, e.node[x, sg.TEXT], page), page)
    at, before = e.table[b], st.MINUS_ONE
    while at != x:
        before, at = at, e.node[at, sg.CHAIN]
    if before >= 0:
        e.node[before, sg.CHAIN] = e.node[x, sg.CHAIN]
    else:
        e.table[b] = e.node[x, sg.CHAIN]


@part
def _tick(e: AnyEngine) -> int:
    e.own[sg.CLOCK] += 1
    return int(e.own[sg.CLOCK] << DEPTH_BITS)


@part
def _new_node(e: AnyEngine) -> int:
    """A node without content; the last one again, and noted, where there are no more."""
    o = e.own
    x = o[sg.NODE_SPARE]
    if x >= 0:
        o[sg.NODE_SPARE] = e.node[x, sg.CHAIN]
        return int(x)
    if o[sg.NODE_TOP] == e.node.shape[0]:
        o[sg.IS_SHORT] = 1
        return int(o[sg.NODE_TOP] - 1)
    o[sg.NODE_TOP] += 1
    return int(o[sg.NODE_TOP] - 1)


@rare
def _split(e: AnyEngine, x: int, page: int) -> int:
    """The part of a node before this page, which is now a node of its own."""
    node, top = e.node, _new_node(e)
    _unchain(e, x)
    for column in (sg.TEXT, sg.BEGIN, sg.PARENT, sg.LOCKS, sg.AT):
        node[top, column] = node[x, column]
    node[top, sg.STOP], node[top, sg.N_CHILDREN], node[top, sg.IS_LISTED] = page, 1, 0
    node[x, sg.BEGIN], node[x, sg.PARENT], node[x, sg.AT] = page, top, _tick(e)
    _chain(e, top)
    _chain(e, x)
    return int(top)


@part
def _reach(e: AnyEngine, x: int, i: int, n: int) -> int:
    """How far the text of request i, of n pages, goes on along a node that it begins."""
    end = min(n, e.node[x, sg.STOP])
    text = e.node[x, sg.TEXT]
    return int(end if text == i else min(end, agreeing(e, text, i)))


@rare
def match(e: AnyEngine, i: int, n: int) -> int:
    """The node where the first n pages of a request's text end that the tree knows."""
    x, page = sg.ROOT, st.ZERO
    while page < n:
        child = _find(e, owner(e, i, page), page)
        if child < 0:
            break
        page = _reach(e, child, i, n)
        if page < e.node[child, sg.STOP]:
            x = _split(e, child, page)
            break
        x = child
    at, up = _tick(e), x
    while up != sg.ROOT:
        e.node[up, sg.AT] = at
        at, up = at - 1, e.node[up, sg.PARENT]
    return x


@rare
def insert(e: AnyEngine, i: int, n: int) -> int:
    """The node where the first n pages of a request's text end, which the tree now knows."""
    x, page = sg.ROOT, st.ZERO
    while page < n:
        child = _find(e, owner(e, i, page), page)
        if child < 0:
            break
        page = _reach(e, child, i, n)
        e.node[child, sg.AT] = _tick(e)
        x = _split(e, child, page) if page < e.node[child, sg.STOP] else child
    if page < n:
        x = _add_leaf(e, i, x, page, n)
    return x


@part
def _add_leaf(e: AnyEngine, i: int, under: int, page: int, n: int) -> int:
    x = _new_node(e)
    e.node[x, sg.TEXT], e.node[x, sg.BEGIN], e.node[x, sg.STOP], e.node[x, sg.PARENT] = (
        i,
        page,
        n,
        under,
    )
    e.node[x, sg.LOCKS] = e.node[x, sg.N_CHILDREN] = e.node[x, sg.IS_LISTED] = 0
    e.node[x, sg.AT] = _tick(e)
    e.node[under, sg.N_CHILDREN] += 1
    e.own[sg.N_TREE] += n - page
    _chain(e, x)
    return x


@rare
def lock(e: AnyEngine, x: int) -> None:
    """Somebody uses the text up to this node."""
    while x != sg.ROOT:
        if e.node[x, sg.LOCKS] == 0:
            n = e.node[x, sg.STOP] - e.node[x, sg.BEGIN]
            e.own[sg.N_LOCKED] += n
            e.scalar[st.FREE] -= n
        e.node[x, sg.LOCKS] += 1
        x = e.node[x, sg.PARENT]


@rare
def unlock(e: AnyEngine, x: int) -> None:
    """Somebody no longer uses the text up to this node."""
    while x != sg.ROOT:
        e.node[x, sg.LOCKS] -= 1
        if e.node[x, sg.LOCKS] == 0:
            n = e.node[x, sg.STOP] - e.node[x, sg.BEGIN]
            e.own[sg.N_LOCKED] -= n
            e.scalar[st.FREE] += n
            _list(e, x)
        x = e.node[x, sg.PARENT]


@part
def _list(e: AnyEngine, x: int) -> None:
    """The node may be evicted, if it is a leaf that nobody uses."""
    if (
        x != sg.ROOT
        and e.node[x, sg.LOCKS] == 0
        and e.node[x, sg.N_CHILDREN] == 0
        and e.node[x, sg.IS_LISTED] == 0
    ):
        e.node[x, sg.IS_LISTED] = 1
        _push(e, e.node[x, sg.AT], x)


@rare
def _push(e: AnyEngine, at: int, x: int) -> None:
    heap, c = e.heap, e.own[sg.N_HEAP]
    e.own[sg.N_HEAP] += 1
    while c > 0 and heap[(c - 1) >> 1, 0] > at:
        up = (c - 1) >> 1
        heap[c, 0], heap[c, 1] = heap[up, 0], heap[up, 1]
        c = up
    heap[c, 0], heap[c, 1] = at, x


@rare
def _pop(e: AnyEngine) -> tuple[int, int]:
    """The time and the node at the top of the heap, which leave it."""
    heap = e.heap
    top = (int(heap[0, 0]), int(heap[0, 1]))
    e.own[sg.N_HEAP] -= 1
    n, c = e.own[sg.N_HEAP], 0
    at, x = heap[n, 0], heap[n, 1]
    while 2 * c + 1 < n:
        down = 2 * c + 1
        if down + 1 < n and heap[down + 1, 0] < heap[down, 0]:
            down += 1
        if heap[down, 0] >= at:
            break
        heap[c, 0], heap[c, 1] = heap[down, 0], heap[down, 1]
        c = down
    heap[c, 0], heap[c, 1] = at, x
    return top


@rare
def evict(e: AnyEngine, n: int) -> None:
    """Leaves go, whole and the least recently used first, until so many pages have gone."""
    while n > 0 and e.own[sg.N_HEAP] > 0:
        at, x = _pop(e)
        if e.node[x, sg.LOCKS] > 0 or e.node[x, sg.N_CHILDREN] > 0:
            e.node[x, sg.IS_LISTED] = 0
        elif e.node[x, sg.AT] != at:
            _push(e, e.node[x, sg.AT], x)
        else:
            n -= e.node[x, sg.STOP] - e.node[x, sg.BEGIN]
            _remove(e, x)


@part
def _remove(e: AnyEngine, x: int) -> None:
    up = e.node[x, sg.PARENT]
    e.own[sg.N_TREE] -= e.node[x, sg.STOP] - e.node[x, sg.BEGIN]
    _unchain(e, x)
    e.node[x, sg.CHAIN] = e.own[sg.NODE_SPARE]
    e.own[sg.NODE_SPARE] = x
    e.node[up, sg.N_CHILDREN] -= 1
    _list(e, up)
