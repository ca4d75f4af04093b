"""Text by the requests that had it first: who owns a page, and how far two texts agree.

A page of equal owner and place is the same text, and so is all that stands before it.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare


@part
def owner(e: AnyEngine, i: int, page: int) -> int:
    """The request that first had this page of the text of request i."""
    at, end, covered = e.path_first[i], e.path_first[i + 1], 0
    while at < end:
        covered += e.path[at, st.N_SHARED]
        if page < covered:
            return int(e.path[at, st.SEGMENT])
        at += 1
    return i


@rare
def agreeing(e: AnyEngine, i: int, j: int) -> int:
    """Leading pages that are equal in the texts of two different requests."""
    a, b, covered = e.path_first[i], e.path_first[j], 0
    a_end, b_end = e.path_first[i + 1], e.path_first[j + 1]
    while True:
        mine = e.path[a, st.SEGMENT] if a < a_end else i
        other = e.path[b, st.SEGMENT] if b < b_end else j
        if mine != other:
            return int(covered)
        n = e.path[a, st.N_SHARED] if a < a_end else st.FOREVER
        m = e.path[b, st.N_SHARED] if b < b_end else st.FOREVER
        covered += min(n, m)
        if n != m:
            return int(covered)
        a, b = a + 1, b + 1
