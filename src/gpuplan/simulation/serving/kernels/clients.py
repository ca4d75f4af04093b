"""What clients do: lose patience, ask again after a pause, and come back after a while."""

from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.elastic_state import (
    ASKED_AT,
    BACKOFF,
    DELAYED,
    DUE,
    ENDED_AT,
    HELD,
    HELD_HEAD,
    HELD_TAIL,
    IS_LATE_LISTED,
    LATE_AFTER,
    LATE_BEFORE,
    LATE_HEAD,
    LATE_TAIL,
    MAX_BACKOFF,
    MAX_RETRIES,
    N_DELAYED,
    N_HELD,
    N_RETRIES,
    N_TRIES,
    NEVER,
    NEXT_HELD,
    NEXT_TURN,
    NOW,
    ON,
    SERVED,
    STATE,
    THINK,
    TIMEOUT,
    Elastic,
)
from gpuplan.simulation.serving.kernels.held import far
from gpuplan.simulation.serving.kernels.state import END, NONE, ZERO, Engines, Ints

WHEN, WHO = range(2)


@part
def _is_before(heap: Ints, a: int, b: int) -> bool:
    if heap[a, WHEN] == heap[b, WHEN]:
        return bool(heap[a, WHO] < heap[b, WHO])
    return bool(heap[a, WHEN] < heap[b, WHEN])


@part
def _swap(heap: Ints, a: int, b: int) -> None:
    for column in range(2):
        kept = heap[a, column]
        heap[a, column] = heap[b, column]
        heap[b, column] = kept


@rare
def wait_until(f: Elastic, i: int, instant: int) -> None:
    """The job comes at this instant."""
    heap, at = f.delayed, f.scalar[N_DELAYED]
    f.job[i, STATE], f.job[i, DUE] = DELAYED, instant
    heap[at, WHEN], heap[at, WHO] = instant, i
    f.scalar[N_DELAYED] += 1
    while at > 0 and _is_before(heap, at, (at - 1) >> 1):
        _swap(heap, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@part
def next_delayed(f: Elastic) -> int:
    """When the first of those that are to come comes."""
    return int(f.delayed[0, WHEN]) if f.scalar[N_DELAYED] > 0 else NEVER


@rare
def pop_delayed(f: Elastic) -> int:
    """The job that comes now; NONE where it no longer wants to."""
    heap = f.delayed
    instant, i = heap[0, WHEN], heap[0, WHO]
    f.scalar[N_DELAYED] -= 1
    n, at = f.scalar[N_DELAYED], ZERO
    _swap(heap, ZERO, n)
    while 2 * at + 1 < n:
        least = 2 * at + 1
        if least + 1 < n and _is_before(heap, least + 1, least):
            least += 1
        if _is_before(heap, at, least):
            break
        _swap(heap, at, least)
        at = least
    is_stale = f.job[i, STATE] != DELAYED or f.job[i, DUE] != instant
    return NONE if is_stale else int(i)


@part
def retry(f: Elastic, i: int, since: int) -> bool:
    """The client asks again after a pause that doubles each time; False where it has had enough."""
    row, s = f.job[i], f.scalar
    if row[N_TRIES] >= s[MAX_RETRIES]:
        return False
    pause = min(s[BACKOFF] << min(row[N_TRIES], 20), s[MAX_BACKOFF])
    row[N_TRIES] += 1
    s[N_RETRIES] += 1
    wait_until(far(f), i, max(since + pause, s[NOW]))
    return True


@part
def come_again(f: Elastic, i: int) -> None:
    """Who has an answer, or none, thinks and asks the next question."""
    following = f.job[i, NEXT_TURN]
    if following >= 0:
        wait_until(far(f), following, f.scalar[NOW] + f.job[following, THINK])


@part
def gave_up(f: Elastic, i: int, state: int) -> None:
    """The job ends here, without its answer."""
    drop_late(f, i)
    f.job[i, STATE], f.job[i, ENDED_AT] = state, f.scalar[NOW]
    come_again(f, i)


@part
def list_late(f: Elastic, i: int) -> None:
    """The client's patience is counted from when it asked; all have the same."""
    row, s = f.job[i], f.scalar
    if s[TIMEOUT] == NEVER or row[IS_LATE_LISTED]:
        return
    row[IS_LATE_LISTED], row[LATE_BEFORE], row[LATE_AFTER] = 1, s[LATE_TAIL], NONE
    if s[LATE_TAIL] >= 0:
        f.job[s[LATE_TAIL], LATE_AFTER] = i
    else:
        s[LATE_HEAD] = i
    s[LATE_TAIL] = i


@part
def drop_late(f: Elastic, i: int) -> None:
    """Nobody counts this job's patience any more."""
    row, s = f.job[i], f.scalar
    if not row[IS_LATE_LISTED]:
        return
    before, after = row[LATE_BEFORE], row[LATE_AFTER]
    if before >= 0:
        f.job[before, LATE_AFTER] = after
    else:
        s[LATE_HEAD] = after
    if after >= 0:
        f.job[after, LATE_BEFORE] = before
    else:
        s[LATE_TAIL] = before
    row[IS_LATE_LISTED] = 0


@part
def next_late(engines: Engines, f: Elastic) -> int:
    """When the patience of the first unanswered client ends."""
    while f.scalar[LATE_HEAD] >= 0:
        i = f.scalar[LATE_HEAD]
        if f.job[i, STATE] != SERVED or engines.request[i, END] < 0:
            return int(f.job[i, ASKED_AT] + f.scalar[TIMEOUT])
        drop_late(f, i)
    return NEVER


@part
def unhold(f: Elastic, i: int) -> None:
    """The job no longer waits before its pool."""
    p = f.job[i, ON]
    before, at = NONE, f.pool[p, HELD_HEAD]
    while at != i:
        before, at = at, f.job[at, NEXT_HELD]
    after = f.job[i, NEXT_HELD]
    if before >= 0:
        f.job[before, NEXT_HELD] = after
    else:
        f.pool[p, HELD_HEAD] = after
    if after < 0:
        f.pool[p, HELD_TAIL] = before
    f.pool[p, HELD] -= 1
    f.scalar[N_HELD] -= 1
