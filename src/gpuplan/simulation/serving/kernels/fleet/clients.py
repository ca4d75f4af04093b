"""What clients do: time out, retry after a backoff, and come back with their next turn."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Engines, Ints
from gpuplan.simulation.serving.kernels.fleet import state as el
from gpuplan.simulation.serving.kernels.fleet.state import Elastic
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare

WHEN, WHO = range(2)


@part
def _is_before(heap: Ints, a: int, b: int) -> bool:
    if heap[a, WHEN] == heap[b, WHEN]:
        return bool(heap[a, WHO] < heap[b, WHO])
    return bool(heap[a, WHEN] < heap[b, WHEN])


@part
def _swap(heap: Ints, a: int, b: int) -> None:
    for column in range(2):
        retained = heap[a, column]
        heap[a, column] = heap[b, column]
        heap[b, column] = retained


@rare
def wait_until(f: Elastic, i: int, instant: int) -> None:
    """The job comes at this instant."""
    heap, at = f.delayed, f.scalar[el.N_DELAYED]
    f.job[i, el.STATE], f.job[i, el.DUE] = el.DELAYED, instant
    heap[at, WHEN], heap[at, WHO] = instant, i
    f.scalar[el.N_DELAYED] += 1
    while at > 0 and _is_before(heap, at, (at - 1) >> 1):
        _swap(heap, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@part
def next_delayed(f: Elastic) -> int:
    """When the first of those that are to come comes."""
    return int(f.delayed[0, WHEN]) if f.scalar[el.N_DELAYED] > 0 else el.NEVER


@rare
def pop_delayed(f: Elastic) -> int:
    """The job that comes now; NONE where it no longer wants to."""
    heap = f.delayed
    instant, i = heap[0, WHEN], heap[0, WHO]
    f.scalar[el.N_DELAYED] -= 1
    n, at = f.scalar[el.N_DELAYED], st.ZERO
    _swap(heap, st.ZERO, n)
    while 2 * at + 1 < n:
        least = 2 * at + 1
        if least + 1 < n and _is_before(heap, least + 1, least):
            least += 1
        if _is_before(heap, at, least):
            break
        _swap(heap, at, least)
        at = least
    is_stale = f.job[i, el.STATE] != el.DELAYED or f.job[i, el.DUE] != instant
    return st.NONE if is_stale else int(i)


@part
def retry(f: Elastic, i: int, since: int) -> bool:
    """The client retries after a backoff that doubles each time; False where no retry is left."""
    row, s = f.job[i], f.scalar
    if row[el.N_TRIES] >= s[el.MAX_RETRIES]:
        return False
    pause = min(s[el.BACKOFF] << min(row[el.N_TRIES], 20), s[el.MAX_BACKOFF])
    row[el.N_TRIES] += 1
    s[el.N_RETRIES] += 1
    wait_until(far(f), i, max(since + pause, s[el.NOW]))
    return True


@part
def come_again(f: Elastic, i: int) -> None:
    """A client that has its response, or none, thinks and sends its next turn."""
    following = f.job[i, el.NEXT_TURN]
    if following >= 0:
        wait_until(far(f), following, f.scalar[el.NOW] + f.job[following, el.THINK])


@part
def gave_up(f: Elastic, i: int, state: int) -> None:
    """The job ends here, without its response."""
    drop_late(f, i)
    f.job[i, el.STATE], f.job[i, el.ENDED_AT] = state, f.scalar[el.NOW]
    come_again(f, i)


@part
def list_late(f: Elastic, i: int) -> None:
    """The client's timeout counts from when it asked; all have the same."""
    row, s = f.job[i], f.scalar
    if s[el.TIMEOUT] == el.NEVER or row[el.IS_LATE_LISTED]:
        return
    row[el.IS_LATE_LISTED], row[el.LATE_BEFORE], row[el.LATE_AFTER] = 1, s[el.LATE_TAIL], st.NONE
    if s[el.LATE_TAIL] >= 0:
        f.job[s[el.LATE_TAIL], el.LATE_AFTER] = i
    else:
        s[el.LATE_HEAD] = i
    s[el.LATE_TAIL] = i


@part
def drop_late(f: Elastic, i: int) -> None:
    """The job's timeout no longer counts."""
    row, s = f.job[i], f.scalar
    if not row[el.IS_LATE_LISTED]:
        return
    before, after = row[el.LATE_BEFORE], row[el.LATE_AFTER]
    if before >= 0:
        f.job[before, el.LATE_AFTER] = after
    else:
        s[el.LATE_HEAD] = after
    if after >= 0:
        f.job[after, el.LATE_BEFORE] = before
    else:
        s[el.LATE_TAIL] = before
    row[el.IS_LATE_LISTED] = 0


@part
def next_late(engines: Engines, f: Elastic) -> int:
    """When the first client without a response times out."""
    while f.scalar[el.LATE_HEAD] >= 0:
        i = f.scalar[el.LATE_HEAD]
        if f.job[i, el.STATE] != el.SERVED or engines.request[i, st.END] < 0:
            return int(f.job[i, el.ASKED_AT] + f.scalar[el.TIMEOUT])
        drop_late(f, i)
    return el.NEVER


@part
def unhold(f: Elastic, i: int) -> None:
    """The job no longer waits before its pool."""
    p = f.job[i, el.ON]
    before, at = st.NONE, f.pool[p, el.HELD_HEAD]
    while at != i:
        before, at = at, f.job[at, el.NEXT_HELD]
    after = f.job[i, el.NEXT_HELD]
    if before >= 0:
        f.job[before, el.NEXT_HELD] = after
    else:
        f.pool[p, el.HELD_HEAD] = after
    if after < 0:
        f.pool[p, el.HELD_TAIL] = before
    f.pool[p, el.HELD] -= 1
    f.scalar[el.N_HELD] -= 1
