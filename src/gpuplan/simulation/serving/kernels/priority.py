"""Who is admitted next: first come first served, or the most urgent, then the first to come.

The queue of the urgent is a pairing heap whose links are columns of the requests.
"""

from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.featured import CHILD, NUMBER, PRIORITY, AnyEngine
from gpuplan.simulation.serving.kernels.held import far
from gpuplan.simulation.serving.kernels.state import (
    AFTER,
    ARRIVE,
    BLOCKED,
    HEAD,
    ID,
    IS_PRIORITY,
    KNOWN,
    MINUS_ONE,
    NEXT_WAITING,
    NONE,
    READY,
    TAIL,
    WAIT_HEAD,
    WAIT_TAIL,
    pop_waiting,
    prepend_waiting,
)

BY_BLOCKS, BY_SEQUENCES = 1, 2  # why nobody is admitted


@part
def _is_before(e: AnyEngine, a: int, b: int) -> bool:
    pa, pb = e.extra[a, PRIORITY], e.extra[b, PRIORITY]
    if pa != pb:
        return bool(pa < pb)
    came, other = e.request[a, ARRIVE], e.request[b, ARRIVE]
    is_tie = came == other
    return bool(came < other or (is_tie and e.extra[a, NUMBER] < e.extra[b, NUMBER]))


@part
def _meld(e: AnyEngine, a: int, b: int) -> int:
    """Two heaps become one; a lower number is more urgent, of equals who came first."""
    if a < 0:
        return b
    if b < 0:
        return a
    if _is_before(e, b, a):
        a, b = b, a
    e.request[b, NEXT_WAITING] = e.extra[a, CHILD]
    e.extra[a, CHILD] = b
    return a


@rare
def _push(e: AnyEngine, i: int) -> None:
    e.request[i, NEXT_WAITING] = e.extra[i, CHILD] = NONE
    e.scalar[READY] = _meld(e, e.scalar[READY], i)


@rare
def _pop(e: AnyEngine) -> None:
    request, done, c = e.request, MINUS_ONE, e.extra[e.scalar[READY], CHILD]
    while c >= 0:
        one, other = c, request[c, NEXT_WAITING]
        c = MINUS_ONE
        if other >= 0:
            c = request[other, NEXT_WAITING]
            one = _meld(e, one, other)
        request[one, NEXT_WAITING] = done
        done = one
    root = MINUS_ONE
    while done >= 0:
        after = request[done, NEXT_WAITING]
        root = _meld(e, root, done)
        done = after
    e.scalar[READY] = root


@part
def see_arrivals(e: AnyEngine) -> None:
    """Whoever has come by now takes a place by urgency, and may fit where another did not."""
    s = e.scalar
    if not e.limit[IS_PRIORITY]:
        return
    while s[WAIT_HEAD] >= 0 and e.request[s[WAIT_HEAD], ARRIVE] <= s[KNOWN]:
        _push(far(e), pop_waiting(e.scalar, e.request))
        if s[BLOCKED] == BY_BLOCKS:
            s[BLOCKED] = 0


@part
def next_to_admit(e: AnyEngine) -> int:
    """The request that would be admitted next, or NONE."""
    s = e.scalar
    if e.limit[IS_PRIORITY]:
        return int(s[READY])
    head = s[WAIT_HEAD]
    if head >= 0 and e.request[head, ARRIVE] > s[KNOWN]:
        return NONE
    return int(head)


@part
def leave_queue(e: AnyEngine) -> None:
    """That request is admitted."""
    if e.limit[IS_PRIORITY]:
        _pop(far(e))
    else:
        pop_waiting(e.scalar, e.request)


@part
def _leave_heap(e: AnyEngine, i: int) -> None:
    """The request leaves the heap; those before it are put back."""
    kept = MINUS_ONE
    while e.scalar[READY] != i:
        j = e.scalar[READY]
        _pop(far(e))
        e.request[j, NEXT_WAITING] = kept
        kept = j
    _pop(far(e))
    while kept >= 0:
        following = e.request[kept, NEXT_WAITING]
        _push(far(e), kept)
        kept = following


@part
def give_up_place(e: AnyEngine, i: int) -> None:
    """The request no longer waits, wherever in the queue it stands."""
    s = e.scalar
    before, at = NONE, s[WAIT_HEAD]
    while at >= 0 and at != i:
        before, at = at, e.request[at, NEXT_WAITING]
    if at < 0:
        _leave_heap(e, i)
        return
    after = e.request[i, NEXT_WAITING]
    if before >= 0:
        e.request[before, NEXT_WAITING] = after
    else:
        s[WAIT_HEAD] = after
    if after < 0:
        s[WAIT_TAIL] = before


@part
def queue_again(e: AnyEngine, i: int) -> None:
    """A preempted request waits: in front, or where its urgency puts it."""
    if e.limit[IS_PRIORITY]:
        _push(far(e), i)
    else:
        prepend_waiting(e.scalar, e.request, i)


@part
def victim(e: AnyEngine) -> int:
    """The slot to preempt: the last admitted, or the least urgent, of equals the last to come."""
    s, slot = e.scalar, e.slot
    if not e.limit[IS_PRIORITY]:
        return int(s[TAIL])
    worst = s[HEAD]
    v = slot[worst, AFTER]
    while v >= 0:
        i, j = slot[v, ID], slot[worst, ID]
        pi, pj = e.extra[i, PRIORITY], e.extra[j, PRIORITY]
        if pi > pj or (pi == pj and e.request[i, ARRIVE] > e.request[j, ARRIVE]):
            worst = v
        v = slot[v, AFTER]
    return int(worst)
