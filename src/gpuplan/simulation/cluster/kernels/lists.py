"""Sorted lists in one store, and the heap of ends.

A list is a window of its segment, sorted by key and then by job; to insert or remove shifts the
shorter side, so that first-come queues cost nothing at either end.
"""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def item_at(s: Sim, which: int, place: int) -> int:
    """The job at a place of the list."""
    return int(s.list_item[s.list_of[which, st.HEAD] + place])


@part
def place_of(s: Sim, which: int, key: float, job: int) -> int:
    """The first place whose entry is not before (key, job)."""
    head = s.list_of[which, st.HEAD]
    low, high = 0, s.list_of[which, st.COUNT]
    while low < high:
        mid = (low + high) >> 1
        k = s.list_key[head + mid]
        if k < key or (k == key and s.list_item[head + mid] < job):
            low = mid + 1
        else:
            high = mid
    return low


@part
def insert(s: Sim, which: int, key: float, job: int) -> None:
    """The job stands in the list from now on."""
    of = s.list_of[which]
    place, n, head = place_of(s, which, key, job), of[st.COUNT], of[st.HEAD]
    has_left = head > of[st.LOW]
    has_right = head + n < of[st.LOW] + of[st.CAP]
    if (place * 2 < n and has_left) or not has_right:
        for i in range(head, head + place):
            s.list_key[i - 1], s.list_item[i - 1] = s.list_key[i], s.list_item[i]
        head -= 1
        of[st.HEAD] = head
    else:
        for i in range(head + n, head + place, -1):
            s.list_key[i], s.list_item[i] = s.list_key[i - 1], s.list_item[i - 1]
    s.list_key[head + place], s.list_item[head + place] = key, job
    of[st.COUNT] = n + 1


@part
def remove(s: Sim, which: int, key: float, job: int) -> None:
    """The job, which stands in the list with this key, leaves it."""
    of = s.list_of[which]
    place, n, head = place_of(s, which, key, job), of[st.COUNT], of[st.HEAD]
    if place * 2 < n:
        for i in range(head + place, head, -1):
            s.list_key[i], s.list_item[i] = s.list_key[i - 1], s.list_item[i - 1]
        of[st.HEAD] = head + 1
    else:
        for i in range(head + place, head + n - 1):
            s.list_key[i], s.list_item[i] = s.list_key[i + 1], s.list_item[i + 1]
    of[st.COUNT] = n - 1


@part
def is_sooner(s: Sim, a: int, b: int) -> bool:
    """Whether job a ends before job b; the lower number where they end together."""
    x, y = s.work[a, st.END], s.work[b, st.END]
    return x < y or (x == y and a < b)


@part
def _put(s: Sim, at: int, job: int) -> None:
    s.heap[at] = job
    s.job[job, st.HEAP_AT] = at


@part
def _rise(s: Sim, at: int, job: int) -> int:
    while at > 0:
        above = (at - 1) >> 1
        if not is_sooner(s, job, s.heap[above]):
            break
        _put(s, at, s.heap[above])
        at = above
    return at


@part
def push_end(s: Sim, job: int) -> None:
    """The job's end is among those to come."""
    n = s.counter[st.N_HEAP]
    s.counter[st.N_HEAP] = n + 1
    _put(s, _rise(s, n, job), job)


@part
def drop_end(s: Sim, job: int) -> None:
    """The job's end is not to come any more."""
    n = s.counter[st.N_HEAP] - 1
    s.counter[st.N_HEAP] = n
    at, last = s.job[job, st.HEAP_AT], s.heap[n]
    if last == job:
        return
    at = _rise(s, at, last)
    while True:
        below = 2 * at + 1
        if below >= n:
            break
        if below + 1 < n and is_sooner(s, s.heap[below + 1], s.heap[below]):
            below += 1
        if not is_sooner(s, s.heap[below], last):
            break
        _put(s, at, s.heap[below])
        at = below
    _put(s, at, last)
