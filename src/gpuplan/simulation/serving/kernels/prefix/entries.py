"""Segments in one engine's cache: found by number, made when first written, dropped when empty."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part

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
    while e.table[at] >= 0 and e.entry[e.table[at], st.KEY] != key:
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
    x = s[st.ENTRY_SPARE]
    if x >= 0:
        s[st.ENTRY_SPARE] = e.entry[x, st.KEY]
    else:
        x = s[st.ENTRY_TOP]
        s[st.ENTRY_TOP] += 1
    row = e.entry[x]
    row[st.KEY], row[st.CACHED], row[st.HELD] = key, 0, 0
    row[st.HOLDER], row[st.WRITER], row[st.RUN_INNERMOST], row[st.RUN_OUTERMOST] = (
        st.NONE,
        st.NONE,
        st.NONE,
        st.NONE,
    )
    e.table[at] = x
    return int(x)


@part
def drop_if_empty(e: AnyEngine, x: int) -> None:
    """A segment of which nothing is left leaves the table; those it displaced move up."""
    if e.entry[x, st.CACHED] > 0 or e.entry[x, st.HOLDER] >= 0:
        return
    mask = e.table.shape[0] - 1
    hole = _place(e, e.entry[x, st.KEY])
    at = (hole + 1) & mask
    while e.table[at] >= 0:
        home = _home(e, e.entry[e.table[at], st.KEY])
        if ((at - home) & mask) >= ((at - hole) & mask):
            e.table[hole] = e.table[at]
            hole = at
        at = (at + 1) & mask
    e.table[hole] = st.NONE
    e.entry[x, st.KEY] = e.scalar[st.ENTRY_SPARE]
    e.scalar[st.ENTRY_SPARE] = x


@part
def add_node(e: AnyEngine, v: int, x: int, extent: int) -> int:
    """The slot holds the first blocks of a segment from now on."""
    s, node = e.scalar, e.node
    n = s[st.NODE_SPARE]
    if n >= 0:
        s[st.NODE_SPARE] = node[n, st.EARLIER]
    else:
        n = s[st.NODE_TOP]
        s[st.NODE_TOP] += 1
    node[n, st.NODE_ENTRY], node[n, st.EXTENT], node[n, st.IS_APART] = x, extent, 0
    node[n, st.EARLIER] = e.slot[v, st.NODES]
    e.slot[v, st.NODES] = n
    farther, nearer = st.MINUS_ONE, e.entry[x, st.HOLDER]
    while nearer >= 0 and node[nearer, st.EXTENT] > extent:
        farther, nearer = nearer, node[nearer, st.NEARER]
    _link_holder(e, n, farther, nearer)
    return int(n)


@part
def _link_holder(e: AnyEngine, n: int, farther: int, nearer: int) -> None:
    node = e.node
    node[n, st.FARTHER], node[n, st.NEARER] = farther, nearer
    if farther >= 0:
        node[farther, st.NEARER] = n
    else:
        e.entry[node[n, st.NODE_ENTRY], st.HOLDER] = n
    if nearer >= 0:
        node[nearer, st.FARTHER] = n


@part
def unlink_holder(e: AnyEngine, n: int) -> None:
    """The node is no longer among those that hold its segment."""
    node = e.node
    farther, nearer = node[n, st.FARTHER], node[n, st.NEARER]
    if farther >= 0:
        node[farther, st.NEARER] = nearer
    else:
        e.entry[node[n, st.NODE_ENTRY], st.HOLDER] = nearer
    if nearer >= 0:
        node[nearer, st.FARTHER] = farther


@part
def reach(e: AnyEngine, n: int, extent: int) -> None:
    """The node, which held all that is cached of its segment, holds so many blocks now.

    Whoever else was about to write there has been overtaken.
    """
    x, node = e.node[n, st.NODE_ENTRY], e.node
    if e.entry[x, st.HOLDER] != n:
        unlink_holder(e, n)
        _link_holder(e, n, st.MINUS_ONE, e.entry[x, st.HOLDER])
    node[n, st.EXTENT] = e.entry[x, st.CACHED] = e.entry[x, st.HELD] = extent
    other = node[n, st.NEARER]
    while other >= 0:
        node[other, st.IS_APART] = 1
        other = node[other, st.NEARER]
