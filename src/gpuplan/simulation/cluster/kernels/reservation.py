"""The reservation of a blocked job: when it fits by time limits, and what others may still use."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.lists import item_at
from gpuplan.simulation.cluster.kernels.starting import is_allowed
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def _plan_node(s: Sim, node: int, gpus: int, need: int) -> None:
    """So many more GPUs of the node would be free; count nodes that are whole or enough."""
    if s.node[node, st.DOWN]:
        return
    pool = s.pool[s.node[node, st.NODE_POOL]]
    size = pool[st.SIZE]
    before = s.scratch[st.PLAN, node]
    after = before + gpus
    s.scratch[st.PLAN, node] = after
    pool[st.PLAN_FREE] += gpus
    pool[st.PLAN_FULL] += int(after == size) - int(before == size)
    rest = need % size
    pool[st.PLAN_ENOUGH] += int(after >= rest) - int(before >= rest)


@part
def _begin_plan(s: Sim, gpus: int) -> None:
    """The plan as of now: what is free."""
    for p in range(s.pool.shape[0]):
        s.pool[p, st.PLAN_FREE] = s.pool[p, st.PLAN_FULL] = s.pool[p, st.PLAN_ENOUGH] = 0
    for node in range(s.node.shape[0]):
        s.scratch[st.PLAN, node] = -1
        if s.node[node, st.DOWN] == 0:
            _plan_node(s, node, s.node[node, st.FREE] + 1, gpus)
            s.pool[s.node[node, st.NODE_POOL], st.PLAN_FREE] -= 1
    for i in range(s.counter[st.N_SLOTS]):
        s.slot[i, st.PLAN_TENANTS] = s.slot[i, st.N_TENANTS]


@part
def _plan_end(s: Sim, j: int, gpus: int) -> None:
    """The running job would have ended."""
    e = s.job[j, st.ENTRY]
    while e >= 0:
        taken, node = s.entry[e, st.N_TAKEN], s.entry[e, st.ON]
        if taken < 0:
            slot = s.slot[-taken - 1]
            slot[st.PLAN_TENANTS] -= 1
            taken = 1 if slot[st.PLAN_TENANTS] == 0 else 0
        if taken > 0:
            _plan_node(s, node, taken, gpus)
        e = s.entry[e, st.NEXT]


@part
def _planned_pool(s: Sim, j: int, gpus: int) -> int:
    """The first pool in which the blocked job would fit by the plan; -1 where none."""
    for p in range(s.pool.shape[0]):
        pool = s.pool[p]
        if not is_allowed(s, j, p) or pool[st.PLAN_FREE] < gpus:
            continue
        n_full, rest = gpus // pool[st.SIZE], gpus % pool[st.SIZE]
        is_scattered = s.rule[st.PLACEMENT] == st.SCATTER and s.job[j, st.LEVEL] == 0
        is_enough = rest == 0 or pool[st.PLAN_ENOUGH] > n_full
        if is_scattered or (pool[st.PLAN_FULL] >= n_full and is_enough):
            return p
    return -1


@part
def _hold(s: Sim, j: int, p: int, gpus: int) -> None:
    """What others may still use past the reservation: the plan less the blocked job's pieces."""
    size, left = s.pool[p, st.SIZE], gpus
    is_scattered = s.rule[st.PLACEMENT] == st.SCATTER and s.job[j, st.LEVEL] == 0
    best, best_free = -1, size + 1
    for node in range(s.node.shape[0]):
        s.scratch[st.EXTRA, node] = free = s.scratch[st.PLAN, node]
        if s.node[node, st.NODE_POOL] != p or free <= 0:
            continue
        some = min(left, free) if is_scattered else (size if left >= size == free else 0)
        if some > 0:
            s.scratch[st.EXTRA, node] -= some
            left -= some
        elif gpus % size <= free < best_free:
            best, best_free = node, free
    if left > 0 and best >= 0:
        s.scratch[st.EXTRA, best] -= left


@part
def reserve(s: Sim, j: int) -> bool:
    """Reserve the earliest start of the blocked job; False where running jobs leave it no room."""
    gpus, running = s.job[j, st.LEAST], s.rule[st.N_QUEUES] + 1
    _begin_plan(s, gpus)
    n, at, found = s.list_of[running, st.COUNT], 0, -1
    while at < n and found < 0:
        ending = item_at(s, running, at)
        _plan_end(s, ending, gpus)
        found = _planned_pool(s, j, gpus)
        s.clock[st.SHADOW] = max(s.work[ending, st.LIMIT_END], s.clock[st.NOW])
        at += 1
    if found < 0:
        return False
    while at < n:
        ending = item_at(s, running, at)
        if s.work[ending, st.LIMIT_END] > s.clock[st.SHADOW]:
            break
        _plan_end(s, ending, gpus)
        at += 1
    _hold(s, j, found, gpus)
    return True
