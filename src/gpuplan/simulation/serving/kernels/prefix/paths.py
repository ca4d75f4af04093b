"""What prompts have in common, as paths over segments of text; see featured.py.

From blocks of a trace, numbered so that equal leading numbers are equal leading text; or from
groups, whose members begin with text of the member before them.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Ints
from gpuplan.simulation.serving.kernels.jit.compiled import kernel, part


@part
def _own_rest(owned: Ints, units: Ints, i: int, j: int) -> None:
    """From this place on the request has what nobody had before."""
    while j < units.shape[0]:
        if owned[units[j], 0] < 0:
            owned[units[j], 0], owned[units[j], 1] = i, j
        j += 1


@kernel
def paths_of_blocks(
    first: Ints,
    block: Ints,
    owned: Ints,
    sizes: tuple[Ints, Ints],
    unit: tuple[int, int],
    tree: tuple[Ints, Ints, Ints, Ints],
) -> int:
    """Fill base, parent, path_first and path of `tree`; the number of elements.

    `owned` holds, by number, the request that had it first and its place there; `sizes` the full
    blocks of each prompt, and those of each request whose text is given, responses included;
    `unit` the tokens of a trace's block and the bits of an engine's.
    """
    (base, parent, path_first, path), (full, resident), n = tree, sizes, 0
    for i in range(full.shape[0]):
        path_first[i] = n
        n_units, covered, last, j = first[i + 1] - first[i], 0, st.NONE, 0
        while j < n_units and covered < full[i]:
            u = block[first[i] + j]
            x = owned[u, 0]
            if x < 0 or owned[u, 1] != j:
                break
            whole = ((j + 1) * unit[0]) >> unit[1]
            if resident[x] <= covered < whole:
                # Who had it first does not keep it; who has it now may.
                owned[u, 0], owned[u, 1] = i, j
                break
            if x != last:
                if base[x] != covered or parent[x] != last:
                    break
                path[n, st.SEGMENT], path[n, st.N_SHARED] = x, 0
                last = x
                n += 1
            end = min(whole, full[i], resident[x])
            path[n - 1, st.N_SHARED] += end - covered
            covered = end
            j += 1
            if end < whole:
                break
        base[i], parent[i] = covered, last
        _own_rest(owned, block[first[i] : first[i + 1]], i, j)
    path_first[full.shape[0]] = n
    return n


@kernel
def paths_of_groups(
    group: Ints, last: Ints, sizes: tuple[Ints, Ints], base: Ints, path_first: Ints, path: Ints
) -> int:
    """As above, where a request begins with full blocks of the one of its group before it.

    `last` is NONE for every group; `sizes` the blocks so shared, and those of whole requests.
    """
    (shared, total), n = sizes, 0
    for i in range(group.shape[0]):
        path_first[i] = n
        q, covered = st.NONE, 0
        if group[i] >= 0:
            q, last[group[i]] = last[group[i]], i
        if q >= 0:
            want = min(shared[i], total[q])
            for k in range(path_first[q], path_first[q + 1]):
                if covered == want:
                    break
                path[n, st.SEGMENT] = path[k, st.SEGMENT]
                path[n, st.N_SHARED] = min(path[k, st.N_SHARED], want - covered)
                covered += path[n, st.N_SHARED]
                n += 1
            if covered < want:
                path[n, st.SEGMENT], path[n, st.N_SHARED] = q, want - covered
                covered = want
                n += 1
        base[i] = covered
    path_first[group.shape[0]] = n
    return n
