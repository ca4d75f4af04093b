"""What a request has of each group of layers: blocks of a window leave as it moves on.

As in vLLM V1: groups take their blocks one group after the other, a text is found as far as all
groups have it, a window where it has the blocks just before [vLLM-V1-scheduler].
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.groups import state as gr
from gpuplan.simulation.serving.kernels.groups.pool import drop, fresh, holder, keep, use
from gpuplan.simulation.serving.kernels.jit.compiled import far, part, rare


@part
def _of(e: AnyEngine, g: int, what: int) -> int:
    return int(e.limit[gr.GROUPS + gr.N_GROUP * g + what])


@part
def _n_passed(e: AnyEngine, g: int, n_computed: int) -> int:
    """Leading blocks that the group needs no longer after so many tokens."""
    kind, size = _of(e, g, gr.KIND), _of(e, g, gr.SIZE)
    n = 0
    if kind == gr.WINDOW:
        n = max(0, n_computed - size + 1)
    elif kind == gr.CHUNK:
        n = n_computed // size * size
    return int(n >> e.limit[st.BLOCK_BITS])


@part
def _n_all(e: AnyEngine, g: int, n_tokens: int) -> int:
    """Blocks of so many tokens, with those that have left."""
    return 1 if _of(e, g, gr.KIND) == gr.STATE else n_blocks(e.limit, n_tokens)


@part
def _text(e: AnyEngine, i: int, g: int, k: int) -> int:
    """What the request's block of this place in the group holds, as a number."""
    owner = i
    for at in range(e.path_first[i], e.path_first[i + 1]):
        n = e.path[at, st.N_SHARED]
        if k < n:
            owner = e.path[at, st.SEGMENT]
            break
        k -= n
    return int((e.extra[owner, gr.FIRST_TEXT] + k) * e.found.shape[0] + g)


@part
def _is_like(e: AnyEngine, g: int, other: int) -> bool:
    """Both groups are of one kind and size: they find a text together."""
    is_kind = _of(e, g, gr.KIND) == _of(e, other, gr.KIND)
    return is_kind and _of(e, g, gr.SIZE) == _of(e, other, gr.SIZE)


@part
def _is_retained(e: AnyEngine, i: int, like: int, k: int) -> bool:
    """All groups like this one have the block."""
    for g in range(like, e.found.shape[0]):
        if _is_like(e, g, like) and holder(e, _text(e, i, g, k)) < 0:
            return False
    return True


@part
def _is_first(e: AnyEngine, g: int) -> bool:
    """No group before it is like this one."""
    n_like = 0
    for other in range(g):
        n_like += _is_like(e, g, other)
    return n_like == 0


@rare
def _longest(e: AnyEngine, i: int, g: int, most: int) -> int:
    """Leading blocks that the kind of group has, at most so many."""
    kind, size, bits = _of(e, g, gr.KIND), _of(e, g, gr.SIZE), e.limit[st.BLOCK_BITS]
    if kind == gr.WINDOW:
        n, needed = 0, max(1, n_blocks(e.limit, size - 1))
        for k in range(most - 1, -1, -1):
            n = n + 1 if _is_retained(e, i, g, k) else 0
            if n >= needed:
                return int(k + n)
        return int(n)
    k = _n_passed(e, g, most << bits)
    while k < most and _is_retained(e, i, g, k):
        k += 1
    return int(k)


@rare
def find(e: AnyEngine, i: int, n_tokens: int) -> tuple[int, int, bool]:
    """Leading blocks of the request that all groups have; those of them that are free."""
    if not e.limit[st.IS_CACHING]:
        return 0, 0, False
    bits, n_groups = e.limit[st.BLOCK_BITS], e.found.shape[0]
    hit, before, n_free = (n_tokens - 1) >> bits, -1, 0
    while hit != before:
        before = hit
        for is_full in (True, False):
            for g in range(n_groups):
                if (_of(e, g, gr.KIND) == gr.FULL) == is_full and _is_first(e, g):
                    hit = _longest(far(e), i, g, hit)
    for g in range(n_groups):
        for k in range(_n_passed(e, g, hit << bits), hit):
            e.found[g, k] = holder(e, _text(e, i, g, k))
            n_free += e.extent[e.found[g, k], gr.USERS] == 0
    return int(hit), int(n_free), True


@rare
def to_admit(e: AnyEngine, found: tuple[int, int], progress: tuple[int, int, int]) -> int:
    """Free blocks that the request needs to join: for its first chunk, and for all of its text."""
    (hit, n_free), (done, chunk, n_tokens) = found, progress
    first, whole = n_free, n_free
    for g in range(e.found.shape[0]):
        there = max(_n_passed(e, g, done), hit)
        first += max(0, _n_all(e, g, done + chunk) - there)
        whole += max(0, min(_n_all(e, g, n_tokens), _of(e, g, gr.MOST)) - there)
    return int(max(first, whole * e.limit[st.IS_RESERVING]))


@rare
def hold(e: AnyEngine, v: int, hit: int) -> None:
    """The slot, the last to be admitted, uses the blocks that were found for its request."""
    slot, bits = e.slot[v], e.limit[st.BLOCK_BITS]
    slot[st.ORDER], slot[st.STAMP] = e.scalar[st.ORDERED], st.NONE
    e.scalar[st.ORDERED] += 1
    slot[st.ENTERED], slot[gr.LAST_TICK] = hit, st.NONE
    for g in range(e.found.shape[0]):
        passed = _n_passed(e, g, hit << bits)
        e.entry[v, g, gr.GIVEN], e.entry[v, g, gr.GONE] = hit, passed
        for k in range(passed, hit):
            use(e, e.found[g, k])
            e.chain[v, g, k] = e.found[g, k]


@part
def _let_pass(e: AnyEngine, v: int, n_computed: int) -> None:
    """Blocks that windows have passed after so many tokens are free, the last of them first."""
    for g in range(e.found.shape[0]):
        has = e.entry[v, g]
        passed = min(_n_passed(e, g, n_computed), has[gr.GIVEN])
        for k in range(passed - 1, has[gr.GONE] - 1, -1):
            drop(far(e), e.chain[v, g, k])
        has[gr.GONE] = max(has[gr.GONE], passed)


@rare
def lacking(e: AnyEngine, v: int, n_new: int) -> int:
    """Blocks that the slot lacks for so many more tokens; what its windows have passed is free."""
    s, slot = e.scalar, e.slot[v]
    done = slot[st.DONE] if slot[st.DONE] >= 0 else slot[st.OFFSET] + s[st.STEP] - 1
    n_flight = 0
    if e.limit[gr.FREES_LATE] and s[st.KNOWN] < s[st.NOW] and slot[gr.LAST_TICK] == s[st.TICK] - 1:
        n_flight = slot[gr.LAST_TOKENS]
    _let_pass(e, v, done - n_flight)
    n = 0
    for g in range(e.found.shape[0]):
        n += max(0, _n_all(e, g, done + n_new) - e.entry[v, g, gr.GIVEN])
    return int(n)


@rare
def take_for(e: AnyEngine, v: int, _: int, n_tokens: int) -> None:
    """The slot has blocks for so many tokens; of a decode, what is known is entered."""
    s, slot = e.scalar, e.slot[v]
    done = slot[st.DONE] if slot[st.DONE] >= 0 else n_tokens - 1
    slot[gr.LAST_TICK], slot[gr.LAST_TOKENS] = s[st.TICK], n_tokens - done
    for g in range(e.found.shape[0]):
        has = e.entry[v, g]
        while has[gr.GIVEN] < _n_all(e, g, n_tokens):
            e.chain[v, g, has[gr.GIVEN]] = fresh(far(e))
            has[gr.GIVEN] += 1
    if slot[st.DONE] < 0:
        enter(far(e), v, n_tokens - e.limit[st.IS_AHEAD] * s[st.GAIN])


@rare
def enter(e: AnyEngine, v: int, n_tokens: int) -> None:
    """Full blocks of the slot's first tokens are in the cache, one group after the other."""
    slot, full = e.slot[v], n_tokens >> e.limit[st.BLOCK_BITS]
    if not e.limit[st.IS_CACHING] or full <= slot[st.ENTERED]:
        return
    for g in range(e.found.shape[0]):
        for k in range(max(slot[st.ENTERED], e.entry[v, g, gr.GONE]), full):
            keep(far(e), e.chain[v, g, k], _text(e, slot[st.ID], g, k))
    slot[st.ENTERED] = full


@rare
def give_back(e: AnyEngine, v: int, _: int, n_written: int) -> None:
    """The slot has no blocks; those that hold so many written tokens may be found again."""
    enter(far(e), v, n_written)
    for g in range(e.found.shape[0]):
        has = e.entry[v, g]
        for k in range(has[gr.GIVEN] - 1, has[gr.GONE] - 1, -1):
            drop(far(e), e.chain[v, g, k])
    e.slot[v, st.ID] = st.NONE
