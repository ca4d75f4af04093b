"""Segments in one engine's cache: found by number, made when first written, dropped when empty."""

from gpuplan.simulation.serving.kernels.compiled import part
from gpuplan.simulation.serving.kernels.featured import (
    CACHED,
    EARLIER,
    EXTENT,
    FARTHER,
    HELD,
    HOLDER,
    IS_APART,
    KEY,
    NEARER,
    NODE_ENTRY,
    NODES,
    RUN_INNERMOST,
    RUN_OUTERMOST,
    WRITER,
    AnyEngine,
)
from gpuplan.simulation.serving.kernels.state import (
    ENTRY_SPARE,
    ENTRY_TOP,
    MINUS_ONE,
    NODE_SPARE,
    NODE_TOP,
    NONE,
)

SPREAD = 2654435761  # 2^32 / golden ratio: neighbours land far apart


@part
def _home(e: AnyEngine, key: int) -> int:
    mixed = (key * SPREAD) & 0xFFFFFFFF
    return int((mixed ^ (mixed >> 15)) & (e.table.shape[0] - 1))


@part
def _place(e: AnyEngine, key: int) -> int:
    """Where in the table the segment is, or would be."""
    mask = e.table.shape[0] - 1
    at = _home(e, key)
    while e.table[at] >= 0 and e.entry[e.table[at], KEY] != key:
        at = (at + 1) & mask
    return at


@part
def find_entry(e: AnyEngine, key: int) -> int:
    """The segment's entry, or NONE."""
    return int(e.table[_place(e, key)])


@part
def make_entry(e: AnyEngine, key: int) -> int:
    """The segment's entry, new where there was none."""
    s, at = e.scalar, _place(e, key)
    if e.table[at] >= 0:
        return int(e.table[at])
    x = s[ENTRY_SPARE]
    if x >= 0:
        s[ENTRY_SPARE] = e.entry[x, KEY]
    else:
        x = s[ENTRY_TOP]
        s[ENTRY_TOP] += 1
    row = e.entry[x]
    row[KEY], row[CACHED], row[HELD] = key, 0, 0
    row[HOLDER], row[WRITER], row[RUN_INNERMOST], row[RUN_OUTERMOST] = NONE, NONE, NONE, NONE
    e.table[at] = x
    return int(x)


@part
def drop_if_empty(e: AnyEngine, x: int) -> None:
    """A segment of which nothing is left leaves the table; those it displaced move up."""
    if e.entry[x, CACHED] > 0 or e.entry[x, HOLDER] >= 0:
        return
    mask = e.table.shape[0] - 1
    hole = _place(e, e.entry[x, KEY])
    at = (hole + 1) & mask
    while e.table[at] >= 0:
        home = _home(e, e.entry[e.table[at], KEY])
        if ((at - home) & mask) >= ((at - hole) & mask):
            e.table[hole] = e.table[at]
            hole = at
        at = (at + 1) & mask
    e.table[hole] = NONE
    e.entry[x, KEY] = e.scalar[ENTRY_SPARE]
    e.scalar[ENTRY_SPARE] = x


@part
def add_node(e: AnyEngine, v: int, x: int, extent: int) -> int:
    """The slot holds the first blocks of a segment from now on."""
    s, node = e.scalar, e.node
    n = s[NODE_SPARE]
    if n >= 0:
        s[NODE_SPARE] = node[n, EARLIER]
    else:
        n = s[NODE_TOP]
        s[NODE_TOP] += 1
    node[n, NODE_ENTRY], node[n, EXTENT], node[n, IS_APART] = x, extent, 0
    node[n, EARLIER] = e.slot[v, NODES]
    e.slot[v, NODES] = n
    farther, nearer = MINUS_ONE, e.entry[x, HOLDER]
    while nearer >= 0 and node[nearer, EXTENT] > extent:
        farther, nearer = nearer, node[nearer, NEARER]
    _link_holder(e, n, farther, nearer)
    return int(n)


@part
def _link_holder(e: AnyEngine, n: int, farther: int, nearer: int) -> None:
    node = e.node
    node[n, FARTHER], node[n, NEARER] = farther, nearer
    if farther >= 0:
        node[farther, NEARER] = n
    else:
        e.entry[node[n, NODE_ENTRY], HOLDER] = n
    if nearer >= 0:
        node[nearer, FARTHER] = n


@part
def unlink_holder(e: AnyEngine, n: int) -> None:
    """The node is no longer among those that hold its segment."""
    node = e.node
    farther, nearer = node[n, FARTHER], node[n, NEARER]
    if farther >= 0:
        node[farther, NEARER] = nearer
    else:
        e.entry[node[n, NODE_ENTRY], HOLDER] = nearer
    if nearer >= 0:
        node[nearer, FARTHER] = farther


@part
def reach(e: AnyEngine, n: int, extent: int) -> None:
    """The node, which held all that is cached of its segment, holds so many blocks now.

    Whoever else was about to write there has been overtaken.
    """
    x, node = e.node[n, NODE_ENTRY], e.node
    if e.entry[x, HOLDER] != n:
        unlink_holder(e, n)
        _link_holder(e, n, MINUS_ONE, e.entry[x, HOLDER])
    node[n, EXTENT] = e.entry[x, CACHED] = e.entry[x, HELD] = extent
    other = node[n, NEARER]
    while other >= 0:
        node[other, IS_APART] = 1
        other = node[other, NEARER]
