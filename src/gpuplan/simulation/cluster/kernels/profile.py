"""Conservative backfill: every waiting job has a reservation in the profile of free GPUs."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.jobs import limit_left
from gpuplan.simulation.cluster.kernels.lists import item_at
from gpuplan.simulation.cluster.kernels.starting import is_allowed, start_in
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part

LEAST_S = 1.0  # of a running job past its limit: how long it is expected to go on


@part
def _begin_profile(s: Sim) -> None:
    """Free GPUs of every pool over time, by the limits of what runs."""
    running, now = s.rule[st.N_QUEUES] + 1, s.clock[st.NOW]
    s.breaks[0, 0] = now
    for p in range(s.pool.shape[0]):
        s.breaks[1 + p, 0] = s.pool[p, st.POOL_FREE]
    n = 1
    for i in range(s.list_of[running, st.COUNT]):
        j = item_at(s, running, i)
        at = max(s.work[j, st.LIMIT_END], now + LEAST_S)
        if at > s.breaks[0, n - 1]:
            for k in range(s.breaks.shape[0]):
                s.breaks[k, n] = s.breaks[k, n - 1]
            s.breaks[0, n] = at
            n += 1
        if s.job[j, st.SHARE] == 0:
            s.breaks[1 + s.job[j, st.POOL], n - 1] += s.job[j, st.HELD]
    s.counter[st.N_BREAKS] = n


@part
def _earliest(s: Sim, p: int, need: tuple[int, float], first: int) -> int:
    """The first break, not before `first`, from which so many GPUs stay free for so long."""
    n, gpus, lasts = s.counter[st.N_BREAKS], need[0], need[1] / s.real[st.N_REAL + p]
    at = first
    while at < n:
        end, k = s.breaks[0, at] + lasts, at
        while k < n and s.breaks[0, k] < end and s.breaks[1 + p, k] >= gpus:
            k += 1
        if k == n or s.breaks[0, k] >= end:
            return at
        at = k + 1
    return -1


@part
def _split(s: Sim, at: float) -> int:
    """The break at this time, made where there is none."""
    n = s.counter[st.N_BREAKS]
    k = n
    while k > 0 and s.breaks[0, k - 1] >= at:
        k -= 1
    if k < n and s.breaks[0, k] == at:
        return int(k)
    for i in range(n, k, -1):
        for row in range(s.breaks.shape[0]):
            s.breaks[row, i] = s.breaks[row, i - 1]
    for row in range(s.breaks.shape[0]):
        s.breaks[row, k] = s.breaks[row, k - 1]
    s.breaks[0, k] = at
    s.counter[st.N_BREAKS] = n + 1
    return int(k)


@part
def _book(s: Sim, p: int, at: int, need: tuple[int, float]) -> None:
    """The GPUs are not free between the break and the end of the job."""
    last = _split(s, s.breaks[0, at] + need[1] / s.real[st.N_REAL + p])
    for k in range(at, last):
        s.breaks[1 + p, k] -= need[0]


@part
def _best_pool(s: Sim, j: int, need: tuple[int, float], first: int) -> tuple[int, int]:
    """The pool with the earliest start, and that start's break; -1 where there is none."""
    best, when = -1, -1
    for p in range(s.pool.shape[0]):
        if is_allowed(s, j, p):
            at = _earliest(s, p, need, first)
            if at >= 0 and (best < 0 or at < when):
                best, when = p, at
    return best, when


@part
def _could_start(s: Sim, first: int, end: int) -> bool:
    """Whether the profile leaves enough GPUs at this instant for a job of these places."""
    for at in range(end - 1, first - 1, -1):
        j = item_at(s, 0, at)
        for p in range(s.pool.shape[0]):
            if s.breaks[1 + p, 0] >= s.job[j, st.GPUS] and is_allowed(s, j, p):
                return True
    return False


@part
def conservative_pass(s: Sim) -> int:
    """Reserve job by job in the order of the queue; whoever's turn is now starts, if it fits."""
    _begin_profile(s)
    at, why = 0, st.NOBODY_WAITS
    n_tested = 0
    while at < s.list_of[0, st.COUNT] and n_tested < s.rule[st.DEPTH]:
        n_tested += 1
        j = item_at(s, 0, at)
        pause = s.work[j, st.RESTART] if s.job[j, st.N_STARTS] > 0 else 0.0
        need = (s.job[j, st.GPUS], max(pause + limit_left(s, j), LEAST_S))
        p, when = _best_pool(s, j, need, 0)
        s.counter[st.WHY] = st.NOBODY_WAITS if when == 0 else st.TOO_FEW
        if when == 0:
            if start_in(s, j, p, False):
                _book(s, p, 0, need)
                continue
            if s.counter[st.N_BREAKS] > 1:
                p, when = _best_pool(s, j, need, 1)
        why = s.counter[st.WHY] if why == st.NOBODY_WAITS else why
        if when > 0 and s.counter[st.WHY] != st.BY_QUOTA:
            _book(s, p, when, need)
        at += 1
        if not _could_start(s, at, min(s.list_of[0, st.COUNT], at + s.rule[st.DEPTH] - n_tested)):
            return why  # reservations alone keep nobody from starting now
    return why
