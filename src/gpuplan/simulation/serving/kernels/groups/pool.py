"""Blocks of a pool one by one: free ones in a queue, those whose text may be found in buckets.

As in vLLM V1: the front of the queue is given out first, and its text is forgotten then. Of copies
of a text the oldest is found [vLLM-V1-scheduler].
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.groups import state as gr
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.prefix.extents import SPREAD


@part
def _bucket(e: AnyEngine, text: int) -> int:
    mixed = (text * SPREAD) & 0xFFFFFFFF
    return int((mixed ^ (mixed >> 15)) & (e.bucket.shape[0] - 1))


@part
def holder(e: AnyEngine, text: int) -> int:
    """The oldest block with this text, or NONE."""
    x = e.bucket[_bucket(e, text)]
    while x >= 0 and e.extent[x, gr.TEXT] != text:
        x = e.extent[x, gr.MET]
    return int(x)


@rare
def keep(e: AnyEngine, x: int, text: int) -> None:
    """The block, which holds this text, may be found from now on."""
    at = _bucket(e, text)
    e.extent[x, gr.TEXT], e.extent[x, gr.MET] = text, st.NONE
    y = e.bucket[at]
    if y < 0:
        e.bucket[at] = x
        return
    while e.extent[y, gr.MET] >= 0:
        y = e.extent[y, gr.MET]
    e.extent[y, gr.MET] = x


@part
def _forget(e: AnyEngine, x: int) -> None:
    """What the block holds is found no longer."""
    at, after = _bucket(e, e.extent[x, gr.TEXT]), e.extent[x, gr.MET]
    y = e.bucket[at]
    if y == x:
        e.bucket[at] = after
    else:
        while e.extent[y, gr.MET] != x:
            y = e.extent[y, gr.MET]
        e.extent[y, gr.MET] = after
    e.extent[x, gr.TEXT] = st.NONE
    e.scalar[st.N_EVICTED] += 1


@part
def _link(e: AnyEngine, before: int, after: int) -> None:
    """In the queue of free blocks one comes after the other; NONE is an end of it."""
    if before >= 0:
        e.extent[before, gr.FREE_AFTER] = after
    else:
        e.scalar[st.OLDEST] = after
    if after >= 0:
        e.extent[after, gr.FREE_BEFORE] = before
    else:
        e.scalar[st.NEWEST] = before


@part
def use(e: AnyEngine, x: int) -> None:
    """One more has the block."""
    row = e.extent[x]
    if row[gr.USERS] == 0:
        _link(e, row[gr.FREE_BEFORE], row[gr.FREE_AFTER])
        e.scalar[st.FREE] -= 1
    row[gr.USERS] += 1


@rare
def fresh(e: AnyEngine) -> int:
    """A free block to write to: the front of the queue."""
    x = e.scalar[st.OLDEST]
    use(e, x)
    if e.extent[x, gr.TEXT] >= 0:
        _forget(e, x)
    return int(x)


@rare
def drop(e: AnyEngine, x: int) -> None:
    """One less has the block; the last puts it into the queue, in front where it has no text."""
    row, s = e.extent[x], e.scalar
    row[gr.USERS] -= 1
    if row[gr.USERS] > 0:
        return
    s[st.FREE] += 1
    if row[gr.TEXT] < 0 and e.limit[st.BARE_FIRST]:
        _link(e, x, s[st.OLDEST])
        _link(e, st.MINUS_ONE, x)
    else:
        _link(e, s[st.NEWEST], x)
        _link(e, x, st.MINUS_ONE)
