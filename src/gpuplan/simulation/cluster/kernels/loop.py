"""The clock: ends, events from outside and arrivals, then one pass over the queues."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.elastic import grow
from gpuplan.simulation.cluster.kernels.jobs import dequeue, enqueue, stop
from gpuplan.simulation.cluster.kernels.lists import drop_end, item_at, push_end
from gpuplan.simulation.cluster.kernels.nodes import list_node
from gpuplan.simulation.cluster.kernels.passes import schedule
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import far, held, kernel
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def _add_layers(s: Sim, row: int, lasts: float) -> None:
    """What the GPUs and the queue did for so long."""
    c, b = s.counter, s.bins[row]
    free, service, down = c[st.GPUS_FREE], c[st.GPUS_SERVICE], c[st.GPUS_DOWN]
    b[st.L_BATCH] += (s.rule[st.TOTAL_GPUS] // st.MILLI - free - service - down) * lasts
    b[st.L_SERVICE] += service * lasts
    b[st.L_DOWN] += down * lasts
    b[st.L_IDLE + c[st.WHY]] += free * lasts
    b[st.L_QUEUED] += c[st.N_BATCH_QUEUED] * lasts
    b[st.L_QUEUED_GPUS] += c[st.GPUS_QUEUED] * lasts
    b[st.L_CLOUD] += c[st.CLOUD_USED] * lasts


@part
def _advance(s: Sim, until: float) -> None:
    """Move the clock, and count what passed into bins of time."""
    width, start = s.real[st.BIN], s.real[st.START]
    now, last = s.clock[st.NOW], s.bins.shape[0] - 1
    while now < until:
        row = int((now - start) / width)
        if start + (row + 1) * width <= now:  # the division was rounded down to the edge itself
            row += 1
        row = min(row, last)
        edge = until if row == last else min(until, start + (row + 1) * width)
        _add_layers(s, row, edge - now)
        now = edge
    s.clock[st.NOW] = until


@part
def _end_cloud(s: Sim, j: int) -> None:
    drop_end(s, j)
    s.job[j, st.STATUS] = st.DONE
    s.counter[st.CLOUD_USED] -= s.job[j, st.GPUS]
    s.work[j, st.LEFT] = 0.0


@part
def _end_due(s: Sim) -> None:
    """Jobs whose end has come."""
    while s.counter[st.N_HEAP] > 0:
        j = s.heap[0]
        if s.work[j, st.END] > s.clock[st.NOW]:
            return
        if s.job[j, st.STATUS] == st.IN_CLOUD:
            _end_cloud(s, j)
        else:
            stop(s, j, st.FINISHED)


@part
def _is_on(s: Sim, j: int, node: int) -> bool:
    e = s.job[j, st.ENTRY]
    while e >= 0:
        if s.entry[e, st.ON] == node:
            return True
        e = s.entry[e, st.NEXT]
    return False


@part
def _node_down(s: Sim, node: int, how: int) -> None:
    """The node fails or is drained: its jobs stop and wait for another start."""
    if s.node[node, st.DOWN] == 0:
        list_node(s, node, -1)
        s.counter[st.GPUS_DOWN] += s.pool[s.node[node, st.NODE_POOL], st.SIZE]
    s.node[node, st.DOWN] += 1
    running, at = s.rule[st.N_QUEUES] + 1, 0
    while at < s.list_of[running, st.COUNT]:
        j = item_at(s, running, at)
        if _is_on(s, j, node):
            stop(s, j, how)
        else:
            at += 1


@part
def _node_up(s: Sim, node: int) -> None:
    s.node[node, st.DOWN] -= 1
    if s.node[node, st.DOWN] == 0:
        list_node(s, node, 1)
        s.counter[st.GPUS_DOWN] -= s.pool[s.node[node, st.NODE_POOL], st.SIZE]
        s.counter[st.IS_DIRTY] = 1


@part
def _events_due(s: Sim) -> None:
    """Failures, returns and drains whose time has come."""
    while s.counter[st.NEXT_EVENT] < s.event_at.shape[0]:
        i = s.counter[st.NEXT_EVENT]
        if s.event_at[i] > s.clock[st.NOW]:
            return
        s.counter[st.NEXT_EVENT] = i + 1
        s.counter[st.HAS_PROFILE] = 0
        kind, node = s.event[i, 0], s.event[i, 1]
        if kind == st.RETURNS:
            _node_up(s, node)
        else:
            _node_down(s, node, st.FAILED if kind == st.FAILS else st.PREEMPTED)


@part
def _arrivals_due(s: Sim) -> None:
    while s.counter[st.NEXT_JOB] < s.work.shape[0]:
        j = s.counter[st.NEXT_JOB]
        if s.work[j, st.ARRIVE] > s.clock[st.NOW]:
            return
        s.counter[st.NEXT_JOB] = j + 1
        enqueue(s, j)


@part
def _burst(s: Sim, first: int) -> None:
    """Jobs that came now, last first, go to the cloud while the queue is over its threshold."""
    for j in range(s.counter[st.NEXT_JOB] - 1, first - 1, -1):
        gpus = s.job[j, st.GPUS]
        if s.counter[st.GPUS_QUEUED] <= s.rule[st.BURST_GPUS]:
            return
        is_fit = s.job[j, st.SHARE] == 0 and not s.job[j, st.IS_SERVICE]
        if s.job[j, st.STATUS] != st.QUEUED or not is_fit or s.job[j, st.IS_FIXED]:
            continue
        if s.counter[st.CLOUD_USED] + gpus > s.rule[st.CLOUD_GPUS]:
            continue
        dequeue(s, j)
        s.counter[st.HAS_PROFILE] = 0
        s.counter[st.CLOUD_USED] += gpus
        w = s.work[j]
        s.job[j, st.STATUS] = st.IN_CLOUD
        s.job[j, st.N_STARTS] += 1
        w[st.FIRST] = s.clock[st.NOW] + s.real[st.CLOUD_DELAY]
        w[st.END] = w[st.FIRST] + w[st.LEFT] / s.real[st.CLOUD_SPEED]
        push_end(s, j)


@part
def _next_time(s: Sim) -> float:
    """The next instant at which anything happens; never once all work is done."""
    at = st.NEVER
    if s.counter[st.NEXT_JOB] < s.work.shape[0]:
        at = s.work[s.counter[st.NEXT_JOB], st.ARRIVE]
    if s.counter[st.N_HEAP] > 0:
        at = min(at, s.work[s.heap[0], st.END])
    is_idle = at == st.NEVER and s.counter[st.N_QUEUED] == 0
    if s.counter[st.NEXT_EVENT] < s.event_at.shape[0] and not is_idle:
        at = min(at, s.event_at[s.counter[st.NEXT_EVENT]])
    return at


@part
def _is_still_blocked(s: Sim) -> bool:
    """Whether the same job stands first as when it last found no room, and none was freed."""
    if s.counter[st.IS_DIRTY] or s.rule[st.BLOCKING] != st.STRICT or s.rule[st.ORDER] >= st.FAIR:
        return False
    if s.list_of[s.rule[st.N_QUEUES], st.COUNT] > 0 or s.list_of[0, st.COUNT] == 0:
        return False
    why = s.counter[st.WHY]
    is_room = why >= st.TOO_FEW
    return bool(is_room and item_at(s, 0, 0) == s.counter[st.BLOCKED_HEAD])


@kernel
def run(sim: Sim, until: float) -> None:
    """Simulate until nothing is left to happen, or until this time."""
    s = far(held(sim))
    while True:
        at = _next_time(s)
        if at == st.NEVER or at > until:
            break
        _advance(s, at)
        first = s.counter[st.NEXT_JOB]
        _end_due(s)
        _events_due(s)
        _arrivals_due(s)
        if not _is_still_blocked(s):
            s.counter[st.HAS_PROFILE] &= 1 - s.counter[st.IS_DIRTY]
            s.counter[st.IS_DIRTY] = 0
            s.counter[st.WHY] = schedule(s)
        if s.rule[st.CLOUD_GPUS] > 0:
            _burst(s, first)
        if s.curve.shape[0] > 1 and s.counter[st.N_QUEUED] == 0:
            grow(s)
