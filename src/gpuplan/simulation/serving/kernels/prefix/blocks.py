"""Blocks of one engine's KV cache by number, and the text that is found in them.

Text is known by segment and place. Eight places of a segment share a row, and rows are found by
number; the first block that was given a text is the one that is found, copies after it.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare

SPREAD = 2654435761  # 2^32 / golden ratio: neighbours land far apart
ROW_BITS, ROW_MASK = 3, 7
PLACE_BITS, PLACE_MASK = 28, (1 << 28) - 1


@part
def _bucket(e: AnyEngine, key: int) -> int:
    mixed = (key >> PLACE_BITS) * SPREAD + (key & PLACE_MASK) * 40503
    mixed &= 0xFFFFFFFF
    return int((mixed ^ (mixed >> 15)) & (e.bucket.shape[0] - 1))


@part
def find_row(e: AnyEngine, segment: int, place: int) -> int:
    """The row of these eight places of a segment, or NONE."""
    key = (segment << PLACE_BITS) | (place >> ROW_BITS)
    r = e.bucket[_bucket(e, key)]
    while r >= 0 and e.row[r, st.KEY] != key:
        r = e.row[r, st.NEXT_ROW]
    return int(r)


@part
def make_row(e: AnyEngine, segment: int, place: int) -> int:
    """The row of these eight places, new where there was none."""
    r = find_row(e, segment, place)
    if r >= 0:
        return r
    s, row = e.scalar, e.row
    r = s[st.ROW_SPARE]
    if r >= 0:
        s[st.ROW_SPARE] = row[r, st.NEXT_ROW]
    else:
        r = s[st.ROW_TOP]
        s[st.ROW_TOP] += 1
    key = (segment << PLACE_BITS) | (place >> ROW_BITS)
    at = _bucket(e, key)
    row[r, st.KEY], row[r, st.NEXT_ROW], row[r, st.N_FILLED] = key, e.bucket[at], 0
    for c in range(st.CELLS, st.N_ROW):
        row[r, c] = st.NONE
    e.bucket[at] = r
    return int(r)


@part
def _drop_row(e: AnyEngine, r: int) -> None:
    row, at = e.row, _bucket(e, e.row[r, st.KEY])
    if e.bucket[at] == r:
        e.bucket[at] = row[r, st.NEXT_ROW]
    else:
        before = e.bucket[at]
        while row[before, st.NEXT_ROW] != r:
            before = row[before, st.NEXT_ROW]
        row[before, st.NEXT_ROW] = row[r, st.NEXT_ROW]
    row[r, st.NEXT_ROW] = e.scalar[st.ROW_SPARE]
    e.scalar[st.ROW_SPARE] = r


@part
def write(e: AnyEngine, r: int, place: int, b: int) -> None:
    """The block holds the text of this place from now on; others may hold it too."""
    block, c = e.block, st.CELLS + (place & ROW_MASK)
    block[b, st.ROW], block[b, st.COLUMN], block[b, st.NEXT_COPY] = r, c, st.NONE
    first = e.row[r, c]
    if first < 0:
        e.row[r, c] = b
        e.row[r, st.N_FILLED] += 1
        return
    while block[first, st.NEXT_COPY] >= 0:
        first = block[first, st.NEXT_COPY]
    block[first, st.NEXT_COPY] = b


@part
def erase(e: AnyEngine, b: int) -> None:
    """The block holds no text any more."""
    block, row, r, c = e.block, e.row, e.block[b, st.ROW], e.block[b, st.COLUMN]
    block[b, st.ROW] = st.NONE
    before = row[r, c]
    if before != b:
        while block[before, st.NEXT_COPY] != b:
            before = block[before, st.NEXT_COPY]
        block[before, st.NEXT_COPY] = block[b, st.NEXT_COPY]
        return
    row[r, c] = block[b, st.NEXT_COPY]
    if row[r, c] < 0:
        row[r, st.N_FILLED] -= 1
        if row[r, st.N_FILLED] == 0:
            _drop_row(e, r)


@part
def leave_free(e: AnyEngine, b: int) -> None:
    """The block is no longer in the queue of free blocks."""
    s, block = e.scalar, e.block
    older, newer = block[b, st.OLDER], block[b, st.NEWER]
    if older >= 0:
        block[older, st.NEWER] = newer
    else:
        s[st.OLDEST] = newer
    if newer >= 0:
        block[newer, st.OLDER] = older
    else:
        s[st.NEWEST] = older


@part
def _reuse_last(e: AnyEngine, b: int) -> None:
    s, block = e.scalar, e.block
    block[b, st.OLDER], block[b, st.NEWER] = s[st.NEWEST], st.NONE
    if s[st.NEWEST] >= 0:
        block[s[st.NEWEST], st.NEWER] = b
    else:
        s[st.OLDEST] = b
    s[st.NEWEST] = b


@part
def _reuse_first(e: AnyEngine, b: int) -> None:
    s, block = e.scalar, e.block
    block[b, st.NEWER], block[b, st.OLDER] = s[st.OLDEST], st.NONE
    if s[st.OLDEST] >= 0:
        block[s[st.OLDEST], st.OLDER] = b
    else:
        s[st.NEWEST] = b
    s[st.OLDEST] = b


@part
def free(e: AnyEngine, b: int) -> None:
    """Nobody uses the block; it is reused last, or first where it holds no text."""
    is_bare = e.block[b, st.ROW] < 0
    e.scalar[st.FREE] += 1
    e.scalar[st.BARE] += is_bare
    if is_bare and e.limit[st.BARE_FIRST]:
        _reuse_first(e, b)
    else:
        _reuse_last(e, b)


@rare
def take_blocks(e: AnyEngine, n: int) -> None:
    """So many blocks are taken, the oldest first, and wait for whoever needs them by number."""
    s, block = e.scalar, e.block
    for _ in range(n):
        b = s[st.FRESH]
        if b < e.limit[st.N_BLOCKS]:
            s[st.FRESH] += 1
            block[b, st.ROW] = st.NONE
            s[st.BARE] -= 1
        else:
            b = s[st.OLDEST]
            leave_free(e, b)
            if block[b, st.ROW] >= 0:
                erase(e, b)
                s[st.N_EVICTED] += 1
            else:
                s[st.BARE] -= 1
        block[b, st.NEWER] = s[st.PENDING]
        s[st.PENDING] = b


@part
def pick(e: AnyEngine) -> int:
    """One of the blocks that were taken."""
    b = e.scalar[st.PENDING]
    e.scalar[st.PENDING] = e.block[b, st.NEWER]
    return int(b)
