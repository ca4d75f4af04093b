"""Shared GPUs: MIG slices at their lawful places, and shares of MPS or time-slicing."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.nodes import add_entry, change_free, one_node, take_host
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def _after(s: Sim, j: int, p: int, used: int) -> int:
    """What is used of a shared GPU once the job is on it; -1 where it does not fit."""
    if s.job[j, st.PROFILE] >= 0:
        return int(s.mig[p, s.job[j, st.PROFILE], used])
    total = used + s.job[j, st.SHARE]
    return total if total <= st.MILLI else -1


@part
def _weight(used: int, kind: int) -> int:
    """How full a shared GPU is: thousandths, or slices."""
    if kind == st.BY_SHARE:
        return used
    n = 0
    while used:
        n += used & 1
        used >>= 1
    return n


@part
def _best_slot(s: Sim, j: int, p: int) -> int:
    """The fullest shared GPU that still has room for the job; -1 where there is none."""
    kind = st.BY_MIG if s.job[j, st.PROFILE] >= 0 else st.BY_SHARE
    best, fullest = -1, -1
    for i in range(s.counter[st.N_SLOTS]):
        row = s.slot[i]
        if row[st.SLOT_KIND] != kind or s.node[row[st.SLOT_NODE], st.NODE_POOL] != p:
            continue
        node = s.node[row[st.SLOT_NODE]]
        if node[st.DOWN] or row[st.N_TENANTS] == 0 or node[st.CPU_FREE] < s.job[j, st.CPU]:
            continue
        if node[st.RAM_FREE] < s.job[j, st.RAM] or _after(s, j, p, row[st.SLOT_USED]) < 0:
            continue
        full = _weight(row[st.SLOT_USED], kind)
        if full > fullest:
            best, fullest = i, full
    return best


@part
def find_share(s: Sim, j: int, p: int, is_capped: bool) -> int:
    """A shared GPU for the job, -2 for a fresh one (its node is the first piece), -1 for none."""
    if s.job[j, st.PROFILE] >= 0 and s.mig[p, s.job[j, st.PROFILE], 0] < 0:
        return -1
    if not is_capped:
        slot = _best_slot(s, j, p)
        if slot >= 0:
            return slot
    s.counter[st.N_PIECES] = 0
    if s.pool[p, st.POOL_FREE] < 1:
        return -1
    node = one_node(s, j, 1, (p, -1, is_capped))
    if node < 0:
        return -1
    s.scratch[st.PIECE_NODE, 0] = node
    return -2


@part
def take_share(s: Sim, j: int, slot: int) -> None:
    """Put the job on the shared GPU, opening a fresh one where `find_share` said so."""
    if slot == -2:
        slot = 0
        while slot < s.counter[st.N_SLOTS] and s.slot[slot, st.SLOT_KIND] != st.NOBODY:
            slot += 1
        s.counter[st.N_SLOTS] = max(s.counter[st.N_SLOTS], slot + 1)
        row = s.slot[slot]
        row[st.SLOT_NODE], row[st.SLOT_USED], row[st.N_TENANTS] = s.scratch[st.PIECE_NODE, 0], 0, 0
        row[st.SLOT_KIND] = st.BY_MIG if s.job[j, st.PROFILE] >= 0 else st.BY_SHARE
        change_free(s, row[st.SLOT_NODE], -1)
    row = s.slot[slot]
    node = row[st.SLOT_NODE]
    used = _after(s, j, s.node[node, st.NODE_POOL], row[st.SLOT_USED])
    s.job[j, st.MASK] = used - row[st.SLOT_USED]
    row[st.SLOT_USED] = used
    row[st.N_TENANTS] += 1
    take_host(s, j, node, 1)
    add_entry(s, j, node, -slot - 1)
    s.job[j, st.FIRST_NODE] = node


@part
def leave_share(s: Sim, j: int, slot: int) -> None:
    """The job leaves the shared GPU; the last one closes it."""
    row = s.slot[slot]
    row[st.SLOT_USED] -= s.job[j, st.MASK]
    row[st.N_TENANTS] -= 1
    take_host(s, j, row[st.SLOT_NODE], -1)
    if row[st.N_TENANTS] == 0:
        row[st.SLOT_KIND] = st.NOBODY
        change_free(s, row[st.SLOT_NODE], 1)


@part
def release_all(s: Sim, j: int) -> None:
    """Everything that the job holds is free again."""
    e = s.job[j, st.ENTRY]
    while e >= 0:
        after, taken, node = s.entry[e, st.NEXT], s.entry[e, st.N_TAKEN], s.entry[e, st.ON]
        if taken < 0:
            leave_share(s, j, -taken - 1)
        else:
            change_free(s, node, taken)
            take_host(s, j, node, -taken)
        s.entry[e, st.NEXT] = s.counter[st.FREE_ENTRY]
        s.counter[st.FREE_ENTRY] = e
        e = after
    s.job[j, st.ENTRY] = -1
