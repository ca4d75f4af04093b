"""Lists that keep every move of an engine O(1): what runs, what waits, what finishes when.

And the blocks that the decodes of an engine need over any stretch of steps, as running sums.
"""

import numpy as np

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import Ints
from gpuplan.simulation.serving.kernels.jit.compiled import part

# Position of a lone bit: a de Bruijn sequence maps each power of two to its own five bits.
DEBRUIJN = 0x077CB531
BIT_AT = np.zeros(32, dtype=np.int64)
for _bit in range(32):
    BIT_AT[(((1 << _bit) * DEBRUIJN) & 0xFFFFFFFF) >> 27] = _bit


@part
def n_blocks(limit: Ints, n_tokens: int) -> int:
    """Blocks that hold so many tokens."""
    bits = limit[st.BLOCK_BITS]
    return int((n_tokens + (1 << bits) - 1) >> bits)


@part
def n_total(request: Ints, i: int) -> int:
    """Tokens that the request must have computed before its next one."""
    return int(request[i, st.INPUT] + request[i, st.MADE])


@part
def learn(s: Ints, limit: Ints, begun: int) -> None:
    """A step that began then has ended now: who may be admitted to the next one?

    An engine that schedules ahead has drawn it up when this one began.
    """
    s[st.KNOWN] = begun if limit[st.IS_AHEAD] else s[st.NOW]


@part
def count_phase(s: Ints, limit: Ints, offset: int, more: int) -> None:
    """So many decodes more, or less, that need a block in the same steps as this one.

    Kept as running sums over the steps of a block: any stretch of steps is a difference of two.
    """
    size = 1 << limit[st.BLOCK_BITS]
    phase = (1 - offset) & (size - 1)
    for j in range(1, size):
        s[st.PHASES + j] += more if j > phase else 0


@part
def blocks_between(s: Ints, limit: Ints, step: int, k: int) -> int:
    """Blocks that the decodes need in k steps from this one."""
    bits = limit[st.BLOCK_BITS]
    mask = (1 << bits) - 1
    first = step & mask
    last = first + k
    return int(
        (last >> bits) * s[st.N_DECODES] + s[st.PHASES + (last & mask)] - s[st.PHASES + first]
    )


@part
def link_running(s: Ints, slot: Ints, i: int) -> int:
    """The request takes a slot at the tail of what runs."""
    v = s[st.FREE_SLOT]
    s[st.FREE_SLOT] = slot[v, st.AFTER]
    slot[v, st.ID], slot[v, st.BEFORE], slot[v, st.AFTER] = i, s[st.TAIL], st.NONE
    if s[st.TAIL] >= 0:
        slot[s[st.TAIL], st.AFTER] = v
    else:
        s[st.HEAD] = v
    s[st.TAIL] = v
    s[st.N_RUNNING] += 1
    return int(v)


@part
def unlink_running(s: Ints, slot: Ints, v: int) -> None:
    """The slot is free again."""
    before, after = slot[v, st.BEFORE], slot[v, st.AFTER]
    if before >= 0:
        slot[before, st.AFTER] = after
    else:
        s[st.HEAD] = after
    if after >= 0:
        slot[after, st.BEFORE] = before
    else:
        s[st.TAIL] = before
    slot[v, st.AFTER] = s[st.FREE_SLOT]
    s[st.FREE_SLOT] = v
    s[st.N_RUNNING] -= 1


@part
def note_finish(ring: Ints, word: Ints, slot: Ints, v: int, step: int) -> None:
    """The slot will finish in this step."""
    at = step & (ring.shape[0] - 1)
    first = ring[at]
    slot[v, st.FINISH], slot[v, st.PEER_BEFORE], slot[v, st.PEER_AFTER] = at, st.NONE, first
    if first >= 0:
        slot[first, st.PEER_BEFORE] = v
    else:
        word[at >> st.WORD_BITS] |= 1 << (at & st.WORD_MASK)
    ring[at] = v


@part
def forget_finish(ring: Ints, word: Ints, slot: Ints, v: int) -> None:
    """The slot will not finish in the step noted."""
    at, before, after = slot[v, st.FINISH], slot[v, st.PEER_BEFORE], slot[v, st.PEER_AFTER]
    if after >= 0:
        slot[after, st.PEER_BEFORE] = before
    if before >= 0:
        slot[before, st.PEER_AFTER] = after
        return
    ring[at] = after
    if after < 0:
        word[at >> st.WORD_BITS] &= ~(1 << (at & st.WORD_MASK))


@part
def next_finish(s: Ints, word: Ints) -> int:
    """First later step in which something finishes; only asked while something decodes."""
    n_words = word.shape[0]
    size, after = n_words << st.WORD_BITS, s[st.STEP] + 1
    at = after & (size - 1)
    w, shift = at >> st.WORD_BITS, at & st.WORD_MASK
    bits = (word[w] >> shift) << shift
    while bits == 0:
        w = (w + 1) & (n_words - 1)
        bits = word[w]
    lone = bits & -bits
    found = (w << st.WORD_BITS) | BIT_AT[((lone * DEBRUIJN) & 0xFFFFFFFF) >> 27]
    return int(after + ((found - at) & (size - 1)))


@part
def append_waiting(s: Ints, request: Ints, i: int) -> None:
    """The request is the last to be admitted."""
    request[i, st.NEXT_WAITING] = st.NONE
    if s[st.WAIT_TAIL] >= 0:
        request[s[st.WAIT_TAIL], st.NEXT_WAITING] = i
    else:
        s[st.WAIT_HEAD] = i
    s[st.WAIT_TAIL] = i
    s[st.OUTSTANDING] += 1


@part
def prepend_waiting(s: Ints, request: Ints, i: int) -> None:
    """A preempted request is the first to be admitted."""
    request[i, st.NEXT_WAITING] = s[st.WAIT_HEAD]
    if s[st.WAIT_HEAD] < 0:
        s[st.WAIT_TAIL] = i
    s[st.WAIT_HEAD] = i


@part
def pop_waiting(s: Ints, request: Ints) -> int:
    """The first to be admitted leaves the queue."""
    i = s[st.WAIT_HEAD]
    s[st.WAIT_HEAD] = request[i, st.NEXT_WAITING]
    if s[st.WAIT_HEAD] < 0:
        s[st.WAIT_TAIL] = st.NONE
    return int(i)
