"""Whose GPUs a job may take: lower priority, borrowed quota, worse order; as few as will do."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.jobs import (
    fits_now,
    limit_left,
    place,
    quota_fits,
    stop,
    units,
)
from gpuplan.simulation.cluster.kernels.lists import item_at
from gpuplan.simulation.cluster.kernels.nodes import change_free, take_host
from gpuplan.simulation.cluster.kernels.starting import is_allowed
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def _rank(s: Sim, j: int) -> float:
    """How late the running job would stand in the queue by the rule of order."""
    w = s.work[j]
    if s.rule[st.ORDER] == st.SHORTEST:
        gone = max(0.0, s.clock[st.NOW] - w[st.BEGAN] - w[st.PAUSE]) * w[st.SPEED]
        return float(max(0.0, limit_left(s, j) - gone))
    if s.rule[st.ORDER] == st.EDF:
        return float(w[st.DEADLINE])
    return -float(s.job[j, st.PRIORITY])


@part
def _is_borrowing(s: Sim, team: int, flavor: int) -> bool:
    return bool(s.quota[team, flavor, st.USED] > s.quota[team, flavor, st.NOMINAL])


@part
def _is_reclaimable(s: Sim, j: int, v: int, flavor: int) -> bool:
    """Kueue's rules: within the team by priority, in the cohort from those that borrow."""
    team, other = s.job[j, st.TEAM], s.job[v, st.TEAM]
    mine, theirs = s.job[j, st.PRIORITY], s.job[v, st.PRIORITY]
    if team == other:
        is_newer = mine == theirs and s.work[v, st.ARRIVE] > s.work[j, st.ARRIVE]
        return bool(
            s.rule[st.WITHIN] > 0 and (mine > theirs or (s.rule[st.WITHIN] > 1 and is_newer))
        )
    q = s.quota[team, flavor]
    is_own = q[st.USED] + units(s, j, s.job[j, st.LEAST]) <= q[st.NOMINAL]
    if not is_own or s.team[team, st.COHORT] < 0 or not _is_borrowing(s, other, flavor):
        return False
    if s.team[team, st.COHORT] != s.team[other, st.COHORT]:
        return False
    rule = s.rule[st.RECLAIM]
    return bool(rule == st.RECLAIM_ANY or (rule == st.RECLAIM_LOWER and mine > theirs))


@part
def _may_stop(s: Sim, j: int, v: int, flavor: int) -> bool:
    """Whether the running job v may be preempted for j."""
    if s.job[v, st.IS_SERVICE] or s.job[v, st.IS_FIXED]:
        return False
    if s.job[j, st.IS_SERVICE]:
        return True
    if s.rule[st.ORDER] == st.KUEUE:
        return _is_reclaimable(s, j, v, flavor)
    return bool(_rank(s, v) > s.work[j, st.KEY])


@part
def _is_rather(s: Sim, j: int, a: int, b: int) -> bool:
    """Whether a goes before b as a victim: other teams, later in order, the shortest run."""
    if s.rule[st.ORDER] == st.KUEUE and not s.job[j, st.IS_SERVICE]:
        mine = s.job[j, st.TEAM]
        x, y = s.job[a, st.TEAM] != mine, s.job[b, st.TEAM] != mine
        if x != y:
            return bool(x)
    if _rank(s, a) != _rank(s, b):
        return _rank(s, a) > _rank(s, b)
    return (s.work[a, st.BEGAN], a) > (s.work[b, st.BEGAN], b)


@part
def _shift(s: Sim, v: int, sign: int) -> None:
    """As if the running job had gone (1), or were back (-1)."""
    s.victim[1, v] = sign == 1
    flavor = s.pool[s.job[v, st.POOL], st.FLAVOR]
    s.quota[s.job[v, st.TEAM], flavor, st.USED] -= sign * units(s, v, s.job[v, st.HELD])
    e = s.job[v, st.ENTRY]
    while e >= 0:
        taken, node = s.entry[e, st.N_TAKEN], s.entry[e, st.ON]
        if taken > 0:
            change_free(s, node, sign * taken)
            take_host(s, v, node, -sign * taken)
        else:
            _shift_share(s, v, -taken - 1, sign)
        e = s.entry[e, st.NEXT]


@part
def _shift_share(s: Sim, v: int, slot: int, sign: int) -> None:
    row = s.slot[slot]
    if sign == -1 and row[st.N_TENANTS] == 0:
        change_free(s, row[st.SLOT_NODE], -1)
    row[st.SLOT_USED] -= sign * s.job[v, st.MASK]
    row[st.N_TENANTS] -= sign
    take_host(s, v, row[st.SLOT_NODE], -sign)
    if sign == 1 and row[st.N_TENANTS] == 0:
        change_free(s, row[st.SLOT_NODE], 1)


@part
def _fits(s: Sim, j: int, p: int) -> bool:
    least = s.job[j, st.LEAST]
    if not quota_fits(s, j, s.pool[p, st.FLAVOR], units(s, j, least)):
        return False
    return fits_now(s, j, p, least, False) != -1


@part
def _next_victim(s: Sim, j: int, p: int) -> int:
    running, best = s.rule[st.N_QUEUES] + 1, -1
    for i in range(s.list_of[running, st.COUNT]):
        v = item_at(s, running, i)
        if s.job[v, st.POOL] != p or s.victim[1, v]:
            continue
        if _may_stop(s, j, v, s.pool[p, st.FLAVOR]) and (best < 0 or _is_rather(s, j, v, best)):
            best = v
    return best


@part
def _choose(s: Sim, j: int, p: int) -> bool:
    """Choose victims in the pool until the job would fit; then spare those not needed."""
    n = 0
    is_enough = _fits(s, j, p)
    while not is_enough:
        v = _next_victim(s, j, p)
        if v < 0:
            break
        _shift(s, v, 1)
        s.victim[0, n] = v
        n += 1
        is_enough = _fits(s, j, p)
    if is_enough:
        for i in range(n - 2, -1, -1):
            _shift(s, s.victim[0, i], -1)
            if not _fits(s, j, p):
                _shift(s, s.victim[0, i], 1)
    s.counter[st.N_VICTIMS] = n
    return is_enough


@part
def preempt_for(s: Sim, j: int) -> bool:
    """Stop as few running jobs as will do, and start the job in their place."""
    for p in range(s.pool.shape[0]):
        if not is_allowed(s, j, p):
            continue
        is_enough = _choose(s, j, p)
        n_stopped = 0
        for i in range(s.counter[st.N_VICTIMS]):
            v = s.victim[0, i]
            if not s.victim[1, v]:
                continue
            _shift(s, v, -1)
            if is_enough:
                s.victim[0, n_stopped] = v
                n_stopped += 1
        if is_enough:
            for i in range(n_stopped):
                stop(s, s.victim[0, i], st.PREEMPTED)
            least = s.job[j, st.LEAST]
            place(s, j, p, least, fits_now(s, j, p, least, False))
            return True
    return False
