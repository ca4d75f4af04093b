"""Elastic jobs: shrunk to let others in, grown while nobody waits."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.jobs import count_use, quota_fits, set_ends, settle, speed
from gpuplan.simulation.cluster.kernels.lists import item_at
from gpuplan.simulation.cluster.kernels.nodes import (
    add_entry,
    change_free,
    find_pieces,
    take_host,
)
from gpuplan.simulation.cluster.kernels.starting import is_allowed, try_start
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def _drop_gpus(s: Sim, j: int, gpus: int) -> None:
    """Give back GPUs of the job, last taken first."""
    while gpus > 0:
        e = s.job[j, st.ENTRY]
        some, node = min(gpus, s.entry[e, st.N_TAKEN]), s.entry[e, st.ON]
        change_free(s, node, some)
        take_host(s, j, node, -some)
        s.entry[e, st.N_TAKEN] -= some
        gpus -= some
        if s.entry[e, st.N_TAKEN] == 0:
            s.job[j, st.ENTRY] = s.entry[e, st.NEXT]
            s.entry[e, st.NEXT] = s.counter[st.FREE_ENTRY]
            s.counter[st.FREE_ENTRY] = e


@part
def _resized(s: Sim, j: int, gpus: int) -> None:
    """The job goes on with so many GPUs, after the pause of a restart."""
    w = s.work[j]
    s.job[j, st.HELD] = gpus
    s.job[j, st.N_RESIZED] += 1
    w[st.BEGAN], w[st.PAUSE] = s.clock[st.NOW], w[st.RESTART]
    w[st.SPEED] = speed(s, j, s.job[j, st.POOL], gpus)
    count_use(s, j, 1)
    set_ends(s, j)


@part
def _latest_elastic(s: Sim, blocked: int) -> int:
    """The elastic job that started last among those that hold more than their least."""
    running, best = s.rule[st.N_QUEUES] + 1, -1
    for i in range(s.list_of[running, st.COUNT]):
        j = item_at(s, running, i)
        if s.job[j, st.HELD] <= s.job[j, st.LEAST] or s.job[j, st.CURVE] < 0:
            continue
        if not is_allowed(s, blocked, s.job[j, st.POOL]):
            continue
        if best < 0 or (s.work[j, st.BEGAN], j) > (s.work[best, st.BEGAN], best):
            best = j
    return best


@part
def start_by_shrinking(s: Sim, j: int) -> bool:
    """Shrink elastic jobs to their least, last started first, until the blocked job starts."""
    while True:
        other = _latest_elastic(s, j)
        if other < 0:
            return False
        settle(s, other, st.RESIZED)
        _drop_gpus(s, other, s.job[other, st.HELD] - s.job[other, st.LEAST])
        _resized(s, other, s.job[other, st.LEAST])
        if try_start(s, j, False):
            return True


@part
def _room_for(s: Sim, j: int) -> int:
    """How many GPUs the elastic job could add in its pool, one by one."""
    p, allocated = s.job[j, st.POOL], s.job[j, st.HELD]
    added = 0
    while allocated + added < s.job[j, st.MOST]:
        if not quota_fits(s, j, s.pool[p, st.FLAVOR], (added + 1) * st.MILLI):
            break
        if not find_pieces(s, j, p, 1, False):
            break
        node = s.scratch[st.PIECE_NODE, 0]
        change_free(s, node, -1)
        take_host(s, j, node, 1)
        add_entry(s, j, node, 1)
        added += 1
    return added


@part
def _is_worth(s: Sim, j: int, gpus: int) -> bool:
    """Whether so many GPUs end the job sooner in spite of the pause."""
    w = s.work[j]
    gone = max(0.0, s.clock[st.NOW] - w[st.BEGAN] - w[st.PAUSE]) * w[st.SPEED]
    left = w[st.LEFT] - gone
    lasts = left / speed(s, j, s.job[j, st.POOL], gpus)
    return bool(s.clock[st.NOW] + w[st.RESTART] + lasts < w[st.END])


@part
def grow(s: Sim) -> None:
    """Idle GPUs go to elastic jobs that gain by them, while nobody waits."""
    running, i = s.rule[st.N_QUEUES] + 1, 0
    while i < s.list_of[running, st.COUNT] and s.counter[st.GPUS_FREE] > 0:
        j = item_at(s, running, i)
        i += 1
        allocated = s.job[j, st.HELD]
        if s.job[j, st.CURVE] < 0 or allocated >= s.job[j, st.MOST]:
            continue
        if s.clock[st.NOW] <= s.work[j, st.BEGAN]:
            continue
        added = _room_for(s, j)
        if added == 0:
            continue
        if not _is_worth(s, j, allocated + added):
            _drop_gpus(s, j, added)
            continue
        settle(s, j, st.RESIZED)
        _resized(s, j, allocated + added)
        i = 0  # the list has changed; nobody grows twice at one instant
