"""Who waits: arrivals in order, longest prefix first where asked for, retracted ones last."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import pop_waiting
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.kernels.sglang.rows import target
from gpuplan.simulation.serving.kernels.sglang.text import owner
from gpuplan.simulation.serving.kernels.sglang.tree import match


@part
def wait(e: AnyEngine, i: int) -> None:
    """The request is the last of those that wait."""
    o = e.own
    e.request[i, st.NEXT_WAITING] = st.NONE
    if o[sg.N_READY] > 0:
        e.request[o[sg.READY_TAIL], st.NEXT_WAITING] = i
    else:
        e.scalar[st.READY] = i
    o[sg.READY_TAIL] = i
    o[sg.N_READY] += 1


@part
def see_arrivals(e: AnyEngine) -> None:
    """Whoever has come by now waits."""
    s = e.scalar
    while s[st.WAIT_HEAD] >= 0 and e.request[s[st.WAIT_HEAD], st.ARRIVE] <= s[st.NOW]:
        wait(e, pop_waiting(e.scalar, e.request))


@part
def pop_ready(e: AnyEngine) -> None:
    """The first of those that wait has been let in."""
    i = e.scalar[st.READY]
    e.scalar[st.READY] = e.request[i, st.NEXT_WAITING]
    e.own[sg.N_READY] -= 1


@rare
def sort_rows(scratch: Ints, n: int) -> int:
    """The half of the scratch in which its first n rows stand by rising keys, equals as before."""
    here, width = 0, 1
    while width < n:
        for low in range(0, n, 2 * width):
            a, middle, end = low, min(low + width, n), min(low + 2 * width, n)
            b = middle
            for to in range(low, end):
                is_left = a < middle and (b >= end or scratch[here, a, 0] <= scratch[here, b, 0])
                at = a if is_left else b
                scratch[1 - here, to, 0] = scratch[here, at, 0]
                scratch[1 - here, to, 1] = scratch[here, at, 1]
                a, b = a + int(is_left), b + int(not is_left)
        here, width = 1 - here, 2 * width
    return int(here)


@part
def order(e: AnyEngine) -> None:
    """Longest prefix first, or first come first served."""
    if e.rule[sg.HAS_TREE] == 0 or e.own[sg.N_READY] == 0:
        return
    if e.rule[sg.IS_LPM] and e.own[sg.N_READY] <= sg.MOST_SORTED:
        _order_by_prefix(far(e))
        return
    if e.own[sg.PASSES] % sg.REFRESH_PASSES == 0 and e.rule[sg.KNOWS_ENDS]:
        _refresh(far(e))
    e.own[sg.PASSES] += 1


@rare
def _refresh(e: AnyEngine) -> None:
    """Those who wait keep their prefixes fresh, the first most."""
    i, n = e.scalar[st.READY], min(e.own[sg.N_READY], sg.MOST_SORTED)
    for at in range(n):
        e.scratch[0, at, 1] = i
        i = e.request[i, st.NEXT_WAITING]
    for at in range(n - 1, -1, -1):
        i = e.scratch[0, at, 1]
        match(e, i, target(e, i) >> e.limit[st.BLOCK_BITS])


@part
def _is_alike(e: AnyEngine, i: int) -> bool:
    """The request shares its beginning with one before it in this pass."""
    page = (sg.ALIKE_TOKENS - 1) >> e.limit[st.BLOCK_BITS]
    if target(e, i) < sg.ALIKE_TOKENS:
        return False
    who = owner(e, i, page)
    is_alike = e.requested[who, sg.SEEN] == e.own[sg.STAMP]
    e.requested[who, sg.SEEN] = e.own[sg.STAMP]
    return bool(is_alike)


@rare
def _order_by_prefix(e: AnyEngine) -> None:
    """Longest prefix first, as they stand where equal; of those alike without one, one only."""
    n, bits, i = e.own[sg.N_READY], e.limit[st.BLOCK_BITS], e.scalar[st.READY]
    e.own[sg.STAMP] += e.own[sg.STRIDE]
    for at in range(n):
        n_tokens = target(e, i)
        found = e.node[match(e, i, n_tokens >> bits), sg.STOP] << bits
        key = -min(found, n_tokens - 1)
        if found <= sg.ALIKE_TOKENS and _is_alike(e, i):
            key = st.FOREVER
        e.scratch[0, at, 0], e.scratch[0, at, 1] = key, i
        i = e.request[i, st.NEXT_WAITING]
    here, before = sort_rows(e.scratch, n), st.MINUS_ONE
    for at in range(n):
        i = e.scratch[here, at, 1]
        if before >= 0:
            e.request[before, st.NEXT_WAITING] = i
        else:
            e.scalar[st.READY] = i
        before = i
    if before >= 0:
        e.request[before, st.NEXT_WAITING] = st.NONE
        e.own[sg.READY_TAIL] = before
