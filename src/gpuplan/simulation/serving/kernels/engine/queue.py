"""Who is admitted next: first come first served, or by priority, then the first to come.

The queue by priority is a pairing heap whose links are columns of the requests.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.lists import pop_waiting, prepend_waiting
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare

BY_BLOCKS, BY_SEQUENCES = 1, 2  # why nobody is admitted


@part
def _is_before(e: AnyEngine, a: int, b: int) -> bool:
    pa, pb = e.extra[a, st.PRIORITY], e.extra[b, st.PRIORITY]
    if pa != pb:
        return bool(pa < pb)
    came, other = e.request[a, st.ARRIVE], e.request[b, st.ARRIVE]
    is_tie = came == other
    return bool(came < other or (is_tie and e.extra[a, st.NUMBER] < e.extra[b, st.NUMBER]))


@part
def _meld(e: AnyEngine, a: int, b: int) -> int:
    """Two heaps become one; a lower number goes first, of equals who came first."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _is_before(e, b, a):
        a, b = b, a
    e.request[b, st.NEXT_WAITING] = e.extra[a, st.CHILD]
    e.extra[a, st.CHILD] = b
    return a


@rare
def _push(e: AnyEngine, i: int) -> None:
    e.request[i, st.NEXT_WAITING] = e.extra[i, st.CHILD] = st.NONE
    e.scalar[st.READY] = _meld(e, e.scalar[st.READY], i)


@rare
def _pop(e: AnyEngine) -> None:
    request, done, c = e.request, st.MINUS_ONE, e.extra[e.scalar[st.READY], st.CHILD]
    while c >= 0:
        one, other = c, request[c, st.NEXT_WAITING]
        c = st.MINUS_ONE
        if other >= 0:
            c = request[other, st.NEXT_WAITING]
            one = _meld(e, one, other)
        request[one, st.NEXT_WAITING] = done
        done = one
    root = st.MINUS_ONE
    while done >= 0:
        after = request[done, st.NEXT_WAITING]
        root = _meld(e, root, done)
        done = after
    e.scalar[st.READY] = root


def _see_nobody(_: AnyEngine) -> None:
    pass


@policy(otherwise=_see_nobody)
def see_arrivals(e: AnyEngine) -> None:
    """Whoever has come by now takes a place by priority, and may fit where another did not."""
    s = e.scalar
    if not e.limit[st.IS_PRIORITY]:
        return
    while s[st.WAIT_HEAD] >= 0 and e.request[s[st.WAIT_HEAD], st.ARRIVE] <= s[st.KNOWN]:
        _push(far(e), pop_waiting(e.scalar, e.request))
        if s[st.BLOCKED] == BY_BLOCKS:
            s[st.BLOCKED] = 0


@part
def _first_come(e: AnyEngine) -> int:
    head = e.scalar[st.WAIT_HEAD]
    if head >= 0 and e.request[head, st.ARRIVE] > e.scalar[st.KNOWN]:
        return st.NONE
    return int(head)


@policy(otherwise=_first_come)
def next_to_admit(e: AnyEngine) -> int:
    """The request that would be admitted next, or NONE."""
    return int(e.scalar[st.READY]) if e.limit[st.IS_PRIORITY] else _first_come(e)


def _pop_first(e: AnyEngine) -> None:
    pop_waiting(e.scalar, e.request)


@policy(otherwise=_pop_first)
def leave_queue(e: AnyEngine) -> None:
    """The request that is next is admitted."""
    if e.limit[st.IS_PRIORITY]:
        _pop(far(e))
    else:
        pop_waiting(e.scalar, e.request)


@part
def set_aside(e: AnyEngine, retained: int) -> int:
    """Who is next is passed over in this step; a chain of all who were."""
    i = next_to_admit(e)
    leave_queue(e)
    e.request[i, st.NEXT_WAITING] = retained
    return i


@part
def put_back(e: AnyEngine, retained: int) -> None:
    """Who was passed over waits as before."""
    while retained >= 0:
        following = e.request[retained, st.NEXT_WAITING]
        queue_again(e, retained)
        retained = following


def _prepend(e: AnyEngine, i: int) -> None:
    prepend_waiting(e.scalar, e.request, i)


@policy(otherwise=_prepend)
def queue_again(e: AnyEngine, i: int) -> None:
    """A preempted request waits: in front, or where its priority puts it."""
    if e.limit[st.IS_PRIORITY]:
        _push(far(e), i)
    else:
        prepend_waiting(e.scalar, e.request, i)


def _tail(e: AnyEngine) -> int:
    return int(e.scalar[st.TAIL])


@policy(otherwise=_tail)
def victim(e: AnyEngine) -> int:
    """The slot to preempt: the last admitted, or of lowest priority, of equals the last to come."""
    s, slot = e.scalar, e.slot
    if not e.limit[st.IS_PRIORITY]:
        return int(s[st.TAIL])
    worst = s[st.HEAD]
    v = slot[worst, st.AFTER]
    while v >= 0:
        i, j = slot[v, st.ID], slot[worst, st.ID]
        pi, pj = e.extra[i, st.PRIORITY], e.extra[j, st.PRIORITY]
        if pi > pj or (pi == pj and e.request[i, st.ARRIVE] > e.request[j, st.ARRIVE]):
            worst = v
        v = slot[v, st.AFTER]
    return int(worst)


def _not_there(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_not_there)
def _leave_heap(e: AnyEngine, i: int) -> None:
    """The request leaves the heap; those before it are put back."""
    retained = st.MINUS_ONE
    while e.scalar[st.READY] != i:
        j = e.scalar[st.READY]
        _pop(far(e))
        e.request[j, st.NEXT_WAITING] = retained
        retained = j
    _pop(far(e))
    while retained >= 0:
        following = e.request[retained, st.NEXT_WAITING]
        _push(far(e), retained)
        retained = following


@part
def give_up_place(e: AnyEngine, i: int) -> None:
    """The request no longer waits, wherever in the queue it stands."""
    s = e.scalar
    before, at = st.NONE, s[st.WAIT_HEAD]
    while at >= 0 and at != i:
        before, at = at, e.request[at, st.NEXT_WAITING]
    if at < 0:
        _leave_heap(e, i)
        return
    after = e.request[i, st.NEXT_WAITING]
    if before >= 0:
        e.request[before, st.NEXT_WAITING] = after
    else:
        s[st.WAIT_HEAD] = after
    if after < 0:
        s[st.WAIT_TAIL] = before
