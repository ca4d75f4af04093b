"""GPUs of nodes: where a gang fits, and taking and giving them back."""

import numpy as np

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part

ONE = np.uint64(1)
NONE = np.uint64(0)


@part
def low_bit(x: np.uint64) -> int:
    """Place of the lowest bit that is set."""
    place, step = 0, 32
    while step:
        mask = (ONE << np.uint64(step)) - ONE
        if x & mask == NONE:
            x >>= np.uint64(step)
            place += step
        step >>= 1
    return place


@part
def list_node(s: Sim, node: int, sign: int) -> None:
    """Enter the node among those with its free GPUs (1), or strike it out (-1)."""
    p, f = s.node[node, st.NODE_POOL], s.node[node, st.FREE]
    s.bits[p, f, node >> 6] ^= ONE << np.uint64(node & 63)
    s.at[p, f] += sign
    s.pool[p, st.POOL_FREE] += sign * f
    s.counter[st.GPUS_FREE] += sign * f


@part
def change_free(s: Sim, node: int, gpus: int) -> None:
    """The node has so many more free GPUs; nodes that are down are listed nowhere."""
    is_up = s.node[node, st.DOWN] == 0
    if is_up:
        list_node(s, node, -1)
    s.node[node, st.FREE] += gpus
    if is_up:
        list_node(s, node, 1)


@part
def _suits(s: Sim, j: int, node: int, gpus: int, is_capped: bool) -> bool:
    """Whether the node may take these GPUs of the job: not taken, cap, CPUs and memory."""
    n = s.node[node]
    if n[st.TAKEN] or (is_capped and s.scratch[st.EXTRA, node] < gpus):
        return False
    return bool(
        n[st.CPU_FREE] >= gpus * s.job[j, st.CPU] and n[st.RAM_FREE] >= gpus * s.job[j, st.RAM]
    )


@part
def _next_node(s: Sim, p: int, free: int, after: int) -> int:
    """The next node of the pool with so many free GPUs; -1 where there is none."""
    at = after + 1
    word = at >> 6
    if word >= s.rule[st.WORDS]:
        return -1
    x = s.bits[p, free, word] & ~((ONE << np.uint64(at & 63)) - ONE)
    while x == NONE:
        word += 1
        if word >= s.rule[st.WORDS]:
            return -1
        x = s.bits[p, free, word]
    return (word << 6) + low_bit(x)


@part
def _in_domain(s: Sim, j: int, node: int, domain: int) -> bool:
    if domain < 0:
        return True
    column = st.RACK if s.job[j, st.LEVEL] == 1 else st.ZONE
    return bool(s.node[node, column] == domain)


@part
def _with_free(
    s: Sim, j: int, free: int, gpus: int, where: tuple[int, int, bool], after: int
) -> int:
    """The first suitable node past this one with exactly so many free GPUs."""
    p, domain, is_capped = where
    if s.at[p, free] == 0:
        return -1
    node = _next_node(s, p, free, after)
    while node >= 0:
        if _suits(s, j, node, gpus, is_capped) and _in_domain(s, j, node, domain):
            return node
        node = _next_node(s, p, free, node)
    return -1


@part
def one_node(s: Sim, j: int, gpus: int, where: tuple[int, int, bool]) -> int:
    """A node for the GPUs: the fullest that fits when packing, the emptiest when spreading."""
    size = s.pool[where[0], st.SIZE]
    for i in range(gpus, size + 1):
        free = size + gpus - i if s.rule[st.PLACEMENT] == st.SPREAD else i
        node = _with_free(s, j, free, gpus, where, -1)
        if node >= 0:
            return node
    return -1


@part
def _add_piece(s: Sim, node: int, gpus: int) -> None:
    n = s.counter[st.N_PIECES]
    s.scratch[st.PIECE_NODE, n], s.scratch[st.PIECE_GPUS, n] = node, gpus
    s.node[node, st.TAKEN] = 1
    s.counter[st.N_PIECES] = n + 1


@part
def _release_marks(s: Sim) -> None:
    for i in range(s.counter[st.N_PIECES]):
        s.node[s.scratch[st.PIECE_NODE, i], st.TAKEN] = 0


@part
def _scattered(s: Sim, j: int, gpus: int, where: tuple[int, int, bool]) -> bool:
    """Pieces wherever GPUs are free, from the emptiest nodes on."""
    p, left = where[0], gpus
    for free in range(s.pool[p, st.SIZE], 0, -1):
        node = -1
        while left > 0:
            some = min(free, left)
            node = _with_free(s, j, free, some, where, node if some == free else -1)
            if node < 0:
                break
            _add_piece(s, node, some)
            left -= some
    return left == 0


@part
def _gang(s: Sim, j: int, gpus: int, where: tuple[int, int, bool]) -> bool:
    """Whole nodes, and one node for the rest."""
    size, node = s.pool[where[0], st.SIZE], -1
    for _ in range(gpus // size):
        node = _with_free(s, j, size, size, where, node)
        if node < 0:
            return False
        _add_piece(s, node, size)
    if gpus % size:
        node = one_node(s, j, gpus % size, where)
        if node < 0:
            return False
        _add_piece(s, node, gpus % size)
    return True


@part
def _in_one_domain(s: Sim, j: int, gpus: int, where: tuple[int, int, bool]) -> bool:
    """A gang within one rack or zone: the first that has room."""
    column = st.RACK if s.job[j, st.LEVEL] == 1 else st.ZONE
    last = -1
    for i in range(s.node.shape[0]):
        last = max(last, s.node[i, column])
    for domain in range(last + 1):
        s.counter[st.N_PIECES] = 0
        found = _gang(s, j, gpus, (where[0], domain, where[2]))
        if found:
            return True
        _release_marks(s)
    s.counter[st.N_PIECES] = 0
    return False


@part
def find_pieces(s: Sim, j: int, p: int, gpus: int, is_capped: bool) -> bool:
    """Whether the pool has room for the gang; the pieces stand in the scratch space."""
    s.counter[st.N_PIECES] = 0
    if s.pool[p, st.POOL_FREE] < gpus:
        return False
    where = (p, -1, is_capped)
    if s.rule[st.PLACEMENT] == st.SCATTER and s.job[j, st.LEVEL] == 0:
        found = _scattered(s, j, gpus, where)
    elif s.job[j, st.LEVEL] > 0 and gpus > s.pool[p, st.SIZE]:
        found = _in_one_domain(s, j, gpus, where)
    else:
        found = _gang(s, j, gpus, where)
    _release_marks(s)
    return found


@part
def add_entry(s: Sim, j: int, node: int, taken: int) -> None:
    """One more entry of the job's allocation."""
    e = s.counter[st.FREE_ENTRY]
    s.counter[st.FREE_ENTRY] = s.entry[e, st.NEXT]
    s.entry[e, st.ON], s.entry[e, st.N_TAKEN] = node, taken
    s.entry[e, st.NEXT] = s.job[j, st.ENTRY]
    s.job[j, st.ENTRY] = e


@part
def take_host(s: Sim, j: int, node: int, times: int) -> None:
    """CPUs and memory beside the GPUs; negative gives them back."""
    cpu, ram = times * s.job[j, st.CPU], times * s.job[j, st.RAM]
    s.node[node, st.CPU_FREE] -= cpu
    s.node[node, st.RAM_FREE] -= ram
    team = s.team[s.job[j, st.TEAM]]
    team[st.TEAM_CPU] += cpu
    team[st.TEAM_RAM] += ram


@part
def take_pieces(s: Sim, j: int) -> None:
    """The pieces found last belong to the job."""
    for i in range(s.counter[st.N_PIECES]):
        node, gpus = s.scratch[st.PIECE_NODE, i], s.scratch[st.PIECE_GPUS, i]
        change_free(s, node, -gpus)
        take_host(s, j, node, gpus)
        add_entry(s, j, node, gpus)
    s.job[j, st.FIRST_NODE] = s.scratch[st.PIECE_NODE, 0]
