"""Many batches of an engine with stages at once, while all that runs decodes and nobody joins.

Whoever's token a batch brings is in the next one that begins: the rows of a batch stay together and
come again when all others have been drawn up once. So each batch is a few sums over its rows, and
only where something happens is every row looked at. Ends are rounded batch by batch: the result is
that of stepping, to the last bit.
"""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks, n_total
from gpuplan.simulation.serving.kernels.engine.queue import next_to_admit
from gpuplan.simulation.serving.kernels.engine.schedule import share
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part
from gpuplan.simulation.serving.kernels.stages import state as sg
from gpuplan.simulation.serving.kernels.stages.batch import oldest, send


@part
def _is_worth_a_look(e: AnyEngine, until: int) -> bool:
    """The queue is full, nothing is late, and no look was in vain a moment ago."""
    s, n = e.scalar, e.flight.shape[0]
    if s[st.IN_FLIGHT] != n or s[st.HEAD] < 0 or s[st.N_LATE] > 0 or s[st.NOW] >= until:
        return False
    return bool(
        e.limit[st.IS_JUMPING] and not e.limit[st.IS_CACHING] and s[st.TICK] >= s[st.PLAN_AT]
    )


@part
def _is_counted(e: AnyEngine) -> bool:
    """Sums over the rows of every batch on the way; False where a row or batch stands alone."""
    slot, flight, n, v = e.slot, e.flight, e.flight.shape[0], e.scalar[st.HEAD]
    size = 1 << e.limit[st.BLOCK_BITS]
    flight[:, sg.N_ROWS :] = 0
    flight[:, sg.N_LEFT] = st.FOREVER
    while v >= 0:
        i, done, awaited = slot[v, st.ID], slot[v, st.DONE], slot[v, sg.AWAITED]
        if awaited < 0 or done != n_total(e.request, i):
            return False
        batch = flight[awaited % n]
        batch[sg.N_ROWS] += 1
        batch[sg.SEEN] += done
        batch[sg.N_LEFT] = min(batch[sg.N_LEFT], e.request[i, st.OUTPUT] - e.request[i, st.MADE])
        batch[sg.PHASES + (-done & (size - 1))] += 1
        v = slot[v, st.AFTER]
    n_lost = 0
    for b in range(n):
        n_lost += flight[b, sg.N_TOKENS] if flight[b, sg.N_ROWS] == 0 else 0
    return bool(n_lost == 0)


@part
def _is_excluded(e: AnyEngine, i: int) -> bool:
    """Whoever is next cannot join before somebody has left, whichever batch is drawn up."""
    s, most = e.scalar, 0
    if s[st.N_RUNNING] == e.limit[st.MAX_SEQUENCES]:
        return True
    if e.limit[st.WAITS_FOR_LATE] and e.extra[i, st.STALE] >= oldest(e):
        return False
    for b in range(e.flight.shape[0]):
        most = max(most, e.flight[b, sg.N_ROWS])
    budget = e.limit[st.MAX_TOKENS] - most
    n_tokens, done = n_total(e.request, i), e.request[i, st.GIVEN]
    chunk = share(e, n_tokens - done, budget)
    if chunk == budget:
        # Other batches leave more of it.
        return False
    must_fit = n_blocks(e.limit, n_tokens if e.limit[st.IS_RESERVING] else done + chunk)
    return bool(must_fit + e.limit[st.WATERMARK] > s[st.FREE])


@part
def _quiet_until(e: AnyEngine, until: int) -> int:
    """A batch that comes back before then is followed by one of the same rows."""
    s, i = e.scalar, next_to_admit(e)
    head = s[st.WAIT_HEAD]
    if i >= 0 and not _is_excluded(e, i):
        return int(s[st.NOW])
    if head < 0 or (i >= 0 and not e.limit[st.IS_PRIORITY]):
        return until
    return min(until, int(e.request[head, st.ARRIVE]))


@part
def _turn(e: AnyEngine, at: int) -> None:
    """A batch comes back, and its rows are in the next one."""
    s, batch, end = e.scalar, e.flight[at], e.flight[at, sg.END]
    more = batch[sg.PHASES + (batch[sg.N_TURNS] & ((1 << e.limit[st.BLOCK_BITS]) - 1))]
    used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
    account(e.scalar, e.bins, end, used, (e.peak_s[at, 0], e.peak_s[at, 1]))
    s[st.COMPUTED] += batch[sg.N_TOKENS]
    s[st.N_STEPS] += 1
    s[st.NOW] = s[st.KNOWN] = end
    s[st.FREE] -= more
    if batch[sg.N_TURNS] == 0:
        batch[sg.FIRST_END] = end
    batch[sg.N_TURNS] += 1
    batch[sg.SEEN] += batch[sg.N_ROWS]
    batch[sg.N_TOKENS] = s[st.N_DECODES] = batch[sg.N_ROWS]
    s[st.CONTEXT] = batch[sg.SEEN]
    send(e, at)


@part
def _take_turns(e: AnyEngine, until: int) -> int:
    """Batches come back and begin anew until one of them changes something; how many did."""
    s, n, mask = e.scalar, e.flight.shape[0], (1 << e.limit[st.BLOCK_BITS]) - 1
    n_turns, at = 0, oldest(e) % n
    s[st.PREFILL_TOKENS] = s[st.PREFILL_PAIRS] = s[st.N_ENDED] = 0
    while s[st.NOW] < until:
        batch = e.flight[at]
        if batch[sg.N_ROWS] == 0:
            batch[sg.END] = s[st.NOW]
        else:
            more = batch[sg.PHASES + (batch[sg.N_TURNS] & mask)]
            is_last = batch[sg.N_TURNS] + 1 >= batch[sg.N_LEFT]
            if batch[sg.END] >= until or is_last or more > s[st.FREE]:
                return n_turns
            _turn(e, at)
            n_turns += 1
        s[st.TICK] += 1
        at = at + 1 if at + 1 < n else 0
    return n_turns


@part
def _note_rows(e: AnyEngine) -> None:
    """Every row has what its batch has brought it."""
    slot, n, v = e.slot, e.flight.shape[0], e.scalar[st.HEAD]
    while v >= 0:
        batch, row = e.flight[slot[v, sg.AWAITED] % n], e.request[slot[v, st.ID]]
        k = batch[sg.N_TURNS]
        if k > 0:
            row[st.MADE] += k
            if row[st.FIRST] < 0:
                row[st.FIRST] = batch[sg.FIRST_END]
            slot[v, st.DONE] += k
            slot[v, st.CHUNK] = 1
            slot[v, sg.LAST_BEFORE] = slot[v, st.STAMP] + (k - 1) * n
            slot[v, st.STAMP] += k * n
            slot[v, sg.AWAITED] += k * n
        v = slot[v, st.AFTER]


@part
def jump(e: AnyEngine, until: int) -> None:
    """Take as many batches as come back before then and change nothing but their rows' lengths."""
    s = e.scalar
    if not _is_worth_a_look(e, until):
        return
    n_turns = 0
    if _is_counted(e):
        n_turns = _take_turns(e, _quiet_until(e, until))
        if n_turns > 0:
            _note_rows(e)
            s[st.N_STALLED] = 0
    if n_turns == 0:
        s[st.PLAN_AT] = s[st.TICK] + e.flight.shape[0]
