"""One pass over the queues by each rule of order and blocking."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.elastic import start_by_shrinking
from gpuplan.simulation.cluster.kernels.jobs import dequeue, touch_usage, units
from gpuplan.simulation.cluster.kernels.lists import item_at
from gpuplan.simulation.cluster.kernels.preemption import preempt_for
from gpuplan.simulation.cluster.kernels.profile import conservative_pass
from gpuplan.simulation.cluster.kernels.reservation import reserve
from gpuplan.simulation.cluster.kernels.starting import is_allowed, try_start
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def _service_pass(s: Sim) -> None:
    """Services come first and take GPUs from any job that can be preempted."""
    which, at = s.rule[st.N_QUEUES], 0
    while at < s.list_of[which, st.COUNT]:
        j = item_at(s, which, at)
        if s.work[j, st.ARRIVE] + s.work[j, st.WORK] <= s.clock[st.NOW]:
            dequeue(s, j)
            s.job[j, st.STATUS] = st.EXPIRED
        elif not try_start(s, j, False) and not preempt_for(s, j):
            at += 1


@part
def _force(s: Sim, j: int) -> bool:
    """Start the first blocked job at the expense of others, where the rules let it."""
    why = s.counter[st.WHY]
    is_started = start_by_shrinking(s, j) if s.curve.shape[0] > 1 else False
    if not is_started and s.rule[st.PREEMPTS]:
        is_started = preempt_for(s, j)
    s.counter[st.WHY] = why
    return is_started


@part
def _is_full(s: Sim) -> bool:
    """Whether nothing more can start without taking GPUs from others."""
    return bool(s.counter[st.GPUS_FREE] == 0 and s.slot.shape[0] == 1)


@part
def _queue_pass(s: Sim) -> int:
    """One queue for all: strict, best effort, or EASY backfill behind the first blocked job.

    Jobs over their team's quota are passed over. Returns why the first blocked job waits.
    """
    at, blocking, why, is_reserved = 0, s.rule[st.BLOCKING], st.NOBODY_WAITS, False
    while at < min(s.list_of[0, st.COUNT], s.rule[st.DEPTH]):
        j = item_at(s, 0, at)
        if try_start(s, j, is_reserved):
            continue
        reason = s.counter[st.WHY]
        if why <= st.BY_QUOTA:
            if reason != st.BY_QUOTA and _force(s, j):
                at = 0  # those who lost their GPUs wait again, perhaps before this place
                continue
            why = reason
            s.counter[st.BLOCKED_HEAD] = j
            if reason != st.BY_QUOTA and (blocking == st.STRICT or _is_full(s)):
                break
            if reason != st.BY_QUOTA and blocking == st.EASY:
                is_reserved = reserve(s, j)
        at += 1
    return why


@part
def _score(s: Sim, t: int) -> float:
    """What a team has had already, by its weight: decayed GPU time, or its dominant share now."""
    team, weight = s.team[t], s.usage[t, st.WEIGHT]
    if s.rule[st.ORDER] == st.FAIR:
        touch_usage(s, t)
        return float(s.usage[t, st.USAGE] / weight)
    share = team[st.TEAM_GPUS] / s.rule[st.TOTAL_GPUS]
    share = max(share, team[st.TEAM_CPU] / s.rule[st.TOTAL_CPU])
    return float(max(share, team[st.TEAM_RAM] / s.rule[st.TOTAL_RAM]) / weight)


@part
def _neediest(s: Sim) -> int:
    best, least = -1, st.NEVER
    for t in range(s.rule[st.N_TEAMS]):
        if s.team[t, st.IS_BLOCKED] or s.team[t, st.CURSOR] >= s.list_of[t, st.COUNT]:
            continue
        score = _score(s, t)
        if score < least:
            best, least = t, score
    return best


@part
def _pass_over(s: Sim, t: int) -> None:
    """The team's job does not start: its next one is tried, or none."""
    s.team[t, st.CURSOR] += 1
    is_last = s.team[t, st.CURSOR] >= s.rule[st.DEPTH]
    s.team[t, st.IS_BLOCKED] = is_last or s.rule[st.BLOCKING] == st.STRICT


@part
def _open_teams(s: Sim) -> None:
    for t in range(s.rule[st.N_TEAMS]):
        s.team[t, st.IS_BLOCKED] = s.team[t, st.CURSOR] = 0


@part
def _share_pass(s: Sim) -> int:
    """The team with the least first, job by job [Ghodsi2011]."""
    _open_teams(s)
    why = st.NOBODY_WAITS
    while True:
        t = _neediest(s)
        if t < 0:
            return why
        j = item_at(s, t, s.team[t, st.CURSOR])
        if try_start(s, j, False):
            continue
        if why == st.NOBODY_WAITS:
            why = s.counter[st.WHY]
        if _is_full(s):
            return why
        _pass_over(s, t)


@part
def _would_borrow(s: Sim, j: int) -> bool:
    """Whether no allowed GPU type has room for the job within its team's own quota."""
    for p in range(s.pool.shape[0]):
        q = s.quota[s.job[j, st.TEAM], s.pool[p, st.FLAVOR]]
        is_own = q[st.USED] + units(s, j, s.job[j, st.LEAST]) <= q[st.NOMINAL]
        if is_allowed(s, j, p) and is_own:
            return False
    return True


@part
def _is_next(s: Sim, a: int, b: int) -> bool:
    """Whether team a's job goes before team b's: own quota, priority, time of submission."""
    if s.team[a, st.BORROWS] != s.team[b, st.BORROWS]:
        return bool(s.team[a, st.BORROWS] < s.team[b, st.BORROWS])
    i = item_at(s, a, s.team[a, st.CURSOR])
    j = item_at(s, b, s.team[b, st.CURSOR])
    if s.job[i, st.PRIORITY] != s.job[j, st.PRIORITY]:
        return bool(s.job[i, st.PRIORITY] > s.job[j, st.PRIORITY])
    return i < j


@part
def _next_team(s: Sim) -> int:
    best = -1
    for t in range(s.rule[st.N_TEAMS]):
        if not s.team[t, st.IS_TRIED] and (best < 0 or _is_next(s, t, best)):
            best = t
    return best


@part
def _begin_cycle(s: Sim) -> None:
    for t in range(s.rule[st.N_TEAMS]):
        row = s.team[t]
        row[st.IS_TRIED] = row[st.IS_BLOCKED] or row[st.CURSOR] >= s.list_of[t, st.COUNT]
        if not row[st.IS_TRIED]:
            row[st.BORROWS] = _would_borrow(s, item_at(s, t, row[st.CURSOR]))


@part
def _kueue_pass(s: Sim) -> int:
    """Cycles over the heads of all teams' queues until nothing is admitted [Kueue]."""
    _open_teams(s)
    why, is_going = st.NOBODY_WAITS, True
    while is_going:
        is_going = False
        _begin_cycle(s)
        t = _next_team(s)
        while t >= 0:
            s.team[t, st.IS_TRIED] = 1
            j = item_at(s, t, s.team[t, st.CURSOR])
            is_started = try_start(s, j, False)
            reason = s.counter[st.WHY]
            if not is_started and s.rule[st.PREEMPTS] and preempt_for(s, j):
                is_started = True
            if not is_started:
                why = reason if why == st.NOBODY_WAITS else why
                _pass_over(s, t)
            is_going = True
            t = _next_team(s)
    return why


@part
def schedule(s: Sim) -> int:
    """Start whoever may start now; why the first blocked job waits."""
    if s.list_of[s.rule[st.N_QUEUES], st.COUNT] > 0:
        _service_pass(s)
        s.counter[st.HAS_PROFILE] = 0
    order = s.rule[st.ORDER]
    if s.counter[st.N_BATCH_QUEUED] == 0:
        s.counter[st.HAS_PROFILE] = 0
        return st.NOBODY_WAITS
    if order == st.KUEUE:
        return _kueue_pass(s)
    if order >= st.FAIR:
        return _share_pass(s)
    if s.rule[st.BLOCKING] == st.CONSERVATIVE:
        return conservative_pass(s)
    return _queue_pass(s)
