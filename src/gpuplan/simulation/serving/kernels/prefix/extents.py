"""The KV cache of one engine by extents: neighbouring blocks of a text that share one fate.

An extent is a stretch of places of a segment whose blocks have the same users, or, where nobody
uses them, stand next to each other in the queue of free blocks, the end of the text first. It is
split where only a part is found, and merged where both parts are free again. A segment lists its
extents by age: of copies of the same text the oldest is found. Which block holds what is never
asked, so that blocks have no numbers.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare

SPREAD = 2654435761  # 2^32 / golden ratio: neighbours land far apart
UNBOUNDED = 1 << 40


@part
def _bucket(e: AnyEngine, segment: int) -> int:
    mixed = (segment * SPREAD) & 0xFFFFFFFF
    return int((mixed ^ (mixed >> 15)) & (e.bucket.shape[0] - 1))


@part
def find_entry(e: AnyEngine, segment: int) -> int:
    """The row of a segment of which something is in the cache, or NONE."""
    g = e.bucket[_bucket(e, segment)]
    while g >= 0 and e.entry[g, st.KEY] != segment:
        g = e.entry[g, st.NEXT_ENTRY]
    return int(g)


@part
def make_entry(e: AnyEngine, segment: int) -> int:
    """The row of the segment, new where there was none."""
    g = find_entry(e, segment)
    if g >= 0:
        return g
    s, entry = e.scalar, e.entry
    g = s[st.ENTRY_SPARE]
    if g >= 0:
        s[st.ENTRY_SPARE] = entry[g, st.NEXT_ENTRY]
    else:
        g = s[st.ENTRY_TOP]
        s[st.ENTRY_TOP] += 1
    at = _bucket(e, segment)
    entry[g, st.KEY], entry[g, st.NEXT_ENTRY] = segment, e.bucket[at]
    entry[g, st.EARLIEST] = entry[g, st.LATEST] = entry[g, st.WRITER] = st.NONE
    entry[g, st.HAS_COPIES] = 0
    e.bucket[at] = g
    return int(g)


@part
def drop_if_empty(e: AnyEngine, g: int) -> None:
    """A segment of which nothing is cached, and that nobody writes, is forgotten."""
    if e.entry[g, st.EARLIEST] < 0 and e.entry[g, st.WRITER] < 0:
        _drop_entry(e, g)


@part
def _drop_entry(e: AnyEngine, g: int) -> None:
    entry, at = e.entry, _bucket(e, e.entry[g, st.KEY])
    if e.bucket[at] == g:
        e.bucket[at] = entry[g, st.NEXT_ENTRY]
    else:
        before = e.bucket[at]
        while entry[before, st.NEXT_ENTRY] != g:
            before = entry[before, st.NEXT_ENTRY]
        entry[before, st.NEXT_ENTRY] = entry[g, st.NEXT_ENTRY]
    entry[g, st.NEXT_ENTRY] = e.scalar[st.ENTRY_SPARE]
    e.scalar[st.ENTRY_SPARE] = g


@part
def _unused(e: AnyEngine) -> int:
    """A row of extents that is in no list."""
    s = e.scalar
    x = s[st.EXTENT_SPARE]
    if x >= 0:
        s[st.EXTENT_SPARE] = e.extent[x, st.NEWER]
    else:
        x = s[st.EXTENT_TOP]
        s[st.EXTENT_TOP] += 1
    return int(x)


@part
def _discard(e: AnyEngine, x: int) -> None:
    e.extent[x, st.NEWER] = e.scalar[st.EXTENT_SPARE]
    e.scalar[st.EXTENT_SPARE] = x


@part
def _unlist(e: AnyEngine, x: int) -> None:
    """The segment no longer has the extent."""
    extent, entry, g = e.extent, e.entry, e.extent[x, st.ENTRY]
    before, after = extent[x, st.LISTED_BEFORE], extent[x, st.LISTED_AFTER]
    if before >= 0:
        extent[before, st.LISTED_AFTER] = after
    else:
        entry[g, st.EARLIEST] = after
    if after >= 0:
        extent[after, st.LISTED_BEFORE] = before
    else:
        entry[g, st.LATEST] = before
    if entry[g, st.EARLIEST] == entry[g, st.LATEST]:
        entry[g, st.HAS_COPIES] = 0
        drop_if_empty(e, g)


@part
def _add(e: AnyEngine, segment: int, low: int, high: int) -> int:
    """A new extent, the youngest of its segment."""
    x, g = _unused(e), make_entry(e, segment)
    row, latest = e.extent[x], e.entry[g, st.LATEST]
    row[st.ENTRY], row[st.LOW], row[st.HIGH] = g, low, high
    row[st.LISTED_BEFORE], row[st.LISTED_AFTER] = latest, st.NONE
    if latest >= 0:
        e.extent[latest, st.LISTED_AFTER] = x
        if low < e.extent[latest, st.HIGH]:
            e.entry[g, st.HAS_COPIES] = 1
    else:
        e.entry[g, st.EARLIEST] = x
    e.entry[g, st.LATEST] = x
    return x


@part
def _can_grow(e: AnyEngine, x: int, segment: int, low: int) -> bool:
    """The extent is of one user, ends there, and nothing younger may hold what comes next."""
    if x < 0 or e.extent[x, st.USERS] != 1 or e.extent[x, st.HIGH] != low:
        return False
    row = e.entry[e.extent[x, st.ENTRY]]
    return bool(row[st.KEY] == segment and row[st.LATEST] == x and not row[st.HAS_COPIES])


@part
def extend(e: AnyEngine, v: int, segment: int, low: int, high: int) -> None:
    """The next blocks of the slot hold these places of a segment; others may hold them too."""
    slot, x = e.slot[v], e.slot[v, st.LAST_EXTENT]
    slot[st.ENTERED] += high - low
    slot[st.N_CHAINED] += high - low
    if _can_grow(e, x, segment, low):
        e.extent[x, st.HIGH] = high
        return
    y = _add(e, segment, low, high)
    e.extent[y, st.USERS], e.extent[y, st.HELD_BEFORE] = 1, x
    slot[st.LAST_EXTENT] = y


@part
def oldest_at(e: AnyEngine, g: int, after: int, place: int) -> tuple[int, int]:
    """The oldest extent with this place, or NONE, and the place where it is so no longer.

    Without copies extents follow each other, and the search goes on from the one found before.
    """
    extent, has_copies, until = e.extent, e.entry[g, st.HAS_COPIES], UNBOUNDED
    x = e.entry[g, st.EARLIEST] if after < 0 or has_copies else after
    while x >= 0:
        low, high = extent[x, st.LOW], extent[x, st.HIGH]
        if low <= place < high:
            return x, min(until, high)
        if low > place:
            until = min(until, low)
        x = extent[x, st.LISTED_AFTER]
    return st.NONE, place


@rare
def split(e: AnyEngine, x: int, at: int) -> int:
    """The part of the extent before this place, on its own; the rest keeps its row."""
    y, extent, g = _unused(e), e.extent, e.extent[x, st.ENTRY]
    for column in range(st.N_EXTENT):
        extent[y, column] = extent[x, column]
    extent[y, st.HIGH] = extent[x, st.LOW] = at
    before = extent[x, st.LISTED_BEFORE]
    extent[x, st.LISTED_BEFORE], extent[y, st.LISTED_AFTER] = y, x
    if before >= 0:
        extent[before, st.LISTED_AFTER] = y
    else:
        e.entry[g, st.EARLIEST] = y
    if extent[x, st.USERS] > 0:
        extent[x, st.HELD_BEFORE] = y
        return y
    extent[y, st.OLDER], newer = x, extent[x, st.NEWER]
    extent[x, st.NEWER] = y
    if newer >= 0:
        extent[newer, st.OLDER] = y
    else:
        e.scalar[st.NEWEST] = y
    return y


@part
def leave_free(e: AnyEngine, x: int) -> None:
    """The extent is no longer in the queue of free blocks."""
    s, extent = e.scalar, e.extent
    older, newer = extent[x, st.OLDER], extent[x, st.NEWER]
    if older >= 0:
        extent[older, st.NEWER] = newer
    else:
        s[st.OLDEST] = newer
    if newer >= 0:
        extent[newer, st.OLDER] = older
    else:
        s[st.NEWEST] = older


@part
def _reuse_last(e: AnyEngine, x: int) -> None:
    s, extent = e.scalar, e.extent
    extent[x, st.OLDER], extent[x, st.NEWER] = s[st.NEWEST], st.NONE
    if s[st.NEWEST] >= 0:
        extent[s[st.NEWEST], st.NEWER] = x
    else:
        s[st.OLDEST] = x
    s[st.NEWEST] = x


@part
def free(e: AnyEngine, x: int) -> None:
    """Nobody uses the extent; it is reused last, the end of its text first."""
    extent, t = e.extent, e.scalar[st.NEWEST]
    e.scalar[st.FREE] += extent[x, st.HIGH] - extent[x, st.LOW]
    is_next = t >= 0 and extent[t, st.LISTED_BEFORE] == x
    if is_next and extent[t, st.LOW] == extent[x, st.HIGH]:
        extent[t, st.LOW] = extent[x, st.LOW]
        _unlist(e, x)
        _discard(e, x)
    else:
        _reuse_last(e, x)


@part
def free_bare(e: AnyEngine, n: int) -> None:
    """So many blocks without text are free: reused first, or in turn before 0.23."""
    s, extent = e.scalar, e.extent
    s[st.FREE] += n
    if e.limit[st.BARE_FIRST]:
        s[st.BARE] += n
    if e.limit[st.BARE_FIRST] or n == 0:
        return
    t = s[st.NEWEST]
    if t >= 0 and extent[t, st.ENTRY] < 0:
        extent[t, st.HIGH] += n
        return
    x = _unused(e)
    extent[x, st.ENTRY], extent[x, st.LOW], extent[x, st.HIGH] = st.NONE, 0, n
    extent[x, st.LISTED_BEFORE] = st.NONE
    _reuse_last(e, x)


@rare
def evict(e: AnyEngine, n: int) -> None:
    """So many blocks are taken from the queue, the oldest first; their text is lost."""
    s, extent = e.scalar, e.extent
    while n > 0:
        x = s[st.OLDEST]
        size = extent[x, st.HIGH] - extent[x, st.LOW]
        gone, has_text = min(n, size), extent[x, st.ENTRY] >= 0
        n -= gone
        extent[x, st.HIGH] -= gone
        s[st.N_EVICTED] += gone * has_text
        if gone == size:
            leave_free(e, x)
            if has_text:
                _unlist(e, x)
            _discard(e, x)
