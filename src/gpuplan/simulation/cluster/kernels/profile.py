"""Conservative backfill: every waiting job has a reservation in the profile of free GPUs.

The profile is a chain of instants (`after`), each with the GPUs of every pool that are free from
then on. A pass ends as soon as nobody who is left could start now: reservations alone keep nobody
from starting. While jobs only arrive, the profile of the last pass is taken up where it was left.
"""

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
            s.after[n - 1] = n
            n += 1
        if s.job[j, st.SHARE] == 0:
            s.breaks[1 + s.job[j, st.POOL], n - 1] += s.job[j, st.HELD]
    s.after[n - 1] = -1
    s.counter[st.N_BREAKS] = n


@part
def _need(s: Sim, j: int) -> tuple[int, float]:
    """GPUs of the job, and for how long as far as the scheduler knows."""
    pause = s.work[j, st.RESTART] if s.job[j, st.N_STARTS] > 0 else 0.0
    return s.job[j, st.GPUS], max(pause + limit_left(s, j), LEAST_S)


@part
def _too_few(s: Sim, p: int, need: tuple[int, float], at: int) -> int:
    """The first break at which a job that began at `at` would lack GPUs; -1 where none."""
    end, k = s.breaks[0, at] + need[1] / s.real[st.N_REAL + p], at
    while k >= 0 and s.breaks[0, k] < end:
        if s.breaks[1 + p, k] < need[0]:
            return int(k)
        k = s.after[k]
    return -1


@part
def _earliest(s: Sim, p: int, need: tuple[int, float], before: float) -> int:
    """The first break after now from which so many GPUs stay free for so long; -1 where none."""
    at = s.after[0]
    while at >= 0 and s.breaks[0, at] < before:
        k = _too_few(s, p, need, at)
        if k < 0:
            return int(at)
        at = s.after[k]
    return -1


@part
def _split(s: Sim, at: float, k: int) -> None:
    """Make a break at this time, which is not before break k, where there is none."""
    while s.after[k] >= 0 and s.breaks[0, s.after[k]] <= at:
        k = s.after[k]
    if s.breaks[0, k] == at:
        return
    n = s.counter[st.N_BREAKS]
    for row in range(s.breaks.shape[0]):
        s.breaks[row, n] = s.breaks[row, k]
    s.breaks[0, n] = at
    s.after[n], s.after[k] = s.after[k], n
    s.counter[st.N_BREAKS] = n + 1


@part
def _book(s: Sim, p: int, at: int, need: tuple[int, float]) -> None:
    """The GPUs are not free between the break and the end of the job."""
    end = s.breaks[0, at] + need[1] / s.real[st.N_REAL + p]
    _split(s, end, at)
    k = at
    while k >= 0 and s.breaks[0, k] < end:
        s.breaks[1 + p, k] -= need[0]
        k = s.after[k]


@part
def _reserve(s: Sim, j: int, need: tuple[int, float]) -> None:
    """Book the earliest start after now, in the pool that has it."""
    best, when, before = -1, -1, st.NEVER
    for p in range(s.pool.shape[0]):
        at = _earliest(s, p, need, before) if is_allowed(s, j, p) else -1
        if at >= 0:
            best, when, before = p, at, s.breaks[0, at]
    if best >= 0:
        _book(s, best, when, need)


@part
def _start_now(s: Sim, j: int, need: tuple[int, float]) -> bool:
    """Start the job in the first pool that the profile leaves to it from now on, if it fits."""
    is_left = False
    s.counter[st.WHY] = st.NOBODY_WAITS
    for p in range(s.pool.shape[0]):
        if not is_allowed(s, j, p) or _too_few(s, p, need, 0) >= 0:
            continue
        is_left = True
        if start_in(s, j, p, False):
            _book(s, p, 0, need)
            # Whoever was passed over for nodes or quota alone would be judged anew by its end,
            # and a job on part of a GPU may have joined one that was taken before.
            if s.counter[st.IS_PASSED_OVER] or s.job[j, st.SHARE] > 0:
                s.counter[st.HAS_PROFILE] = 0
            return True
    if is_left:
        s.counter[st.IS_PASSED_OVER] = 1
    else:
        s.counter[st.WHY] = st.TOO_FEW
    return False


@part
def _could_start(s: Sim, end: int) -> bool:
    """Whether the profile leaves a job of the places before `end` enough GPUs from now on.

    It only gets tighter, so whoever could not start is not looked at again.
    """
    c = s.counter
    c[st.CANDIDATE] = min(c[st.CANDIDATE], end - 1)
    while c[st.CANDIDATE] >= c[st.PASS_AT]:
        j = item_at(s, 0, c[st.CANDIDATE])
        for p in range(s.pool.shape[0]):
            if is_allowed(s, j, p) and _too_few(s, p, _need(s, j), 0) < 0:
                return True
        c[st.CANDIDATE] -= 1
    return False


@part
def _is_profile_good(s: Sim) -> bool:
    """Whether the profile of the last pass still holds: jobs came since, and nothing else.

    It then has every reservation that this pass would make anew; a running job about to pass its
    limit would move one.
    """
    if not s.counter[st.HAS_PROFILE] or s.rule[st.ORDER] != st.FIFO or s.curve.shape[0] > 1:
        return False
    running, now = s.rule[st.N_QUEUES] + 1, s.clock[st.NOW]
    if s.list_of[running, st.COUNT] == 0:
        return True
    return bool(s.work[item_at(s, running, 0), st.LIMIT_END] >= now + LEAST_S)


@part
def conservative_pass(s: Sim) -> int:
    """Reserve job by job in the order of the queue; whoever's turn is now starts, if it fits."""
    c, n_started = s.counter, 0
    if _is_profile_good(s):
        s.breaks[0, 0] = s.clock[st.NOW]
    else:
        _begin_profile(s)
        c[st.PASS_AT] = c[st.IS_PASSED_OVER] = 0
        c[st.PASS_WHY] = st.NOBODY_WAITS
    c[st.HAS_PROFILE], c[st.CANDIDATE] = 1, s.list_of[0, st.COUNT]
    while True:
        end = min(s.list_of[0, st.COUNT], s.rule[st.DEPTH] - n_started)
        is_first = c[st.PASS_WHY] == st.NOBODY_WAITS
        if c[st.PASS_AT] >= end or not (_could_start(s, end) or is_first):
            return int(c[st.PASS_WHY])
        j = item_at(s, 0, c[st.PASS_AT])
        need = _need(s, j)
        if _start_now(s, j, need):
            n_started += 1
            c[st.CANDIDATE] -= 1
            continue
        if c[st.WHY] != st.BY_QUOTA:
            _reserve(s, j, need)
        c[st.PASS_WHY] = c[st.WHY] if is_first else c[st.PASS_WHY]
        c[st.PASS_AT] += 1
