"""An engine with stages through time: batches begin while there is room, and come back in order."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.lists import n_blocks, unlink_running
from gpuplan.simulation.serving.kernels.engine.loop import is_idle
from gpuplan.simulation.serving.kernels.engine.queue import (
    give_up_place,
    next_to_admit,
    see_arrivals,
)
from gpuplan.simulation.serving.kernels.engine.removal import empty as empty_engine
from gpuplan.simulation.serving.kernels.engine.removal import running_slot
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.prefix.cache import give_back
from gpuplan.simulation.serving.kernels.stages import state as sg
from gpuplan.simulation.serving.kernels.stages.batch import draw_up, oldest, send
from gpuplan.simulation.serving.kernels.stages.jump import jump


@part
def _begin(e: AnyEngine) -> None:
    """The next batch goes to the first stage; an empty one takes a place in the queue too."""
    s, n_tokens, n_batches = e.scalar, draw_up(e), e.flight.shape[0]
    b = s[st.TICK] % n_batches
    e.flight[b, sg.END], e.flight[b, sg.N_TOKENS] = s[st.NOW], n_tokens
    if n_tokens > 0:
        send(e, b)
    s[st.TICK] += 1
    s[st.IN_FLIGHT] += 1
    # Before 0.32 nothing is drawn up after an empty batch until one has come back.
    is_stuck = n_tokens == 0 and not e.limit[st.FILLS_QUEUE]
    s[st.IS_FULL] = is_stuck or s[st.IN_FLIGHT] == n_batches


@part
def _gain(e: AnyEngine, i: int) -> bool:
    """The request has one more token; was it the last?"""
    s, row = e.scalar, e.request[i]
    row[st.MADE] += 1
    s[st.N_STALLED] = 0
    if row[st.FIRST] < 0:
        row[st.FIRST] = s[st.NOW]
    if row[st.MADE] < row[st.OUTPUT]:
        return False
    row[st.END] = s[st.NOW]
    s[st.OUTSTANDING] -= 1
    return True


@part
def _leave(e: AnyEngine, v: int) -> None:
    """The slot is free; what was scheduled of its text may be found again."""
    n_seen = e.slot[v, st.DONE]
    give_back(e, v, n_blocks(e.limit, n_seen), n_seen)
    unlink_running(e.scalar, e.slot, v)


@part
def _bring_late(e: AnyEngine, b: int) -> None:
    """Tokens of those who were preempted while the batch was on its way."""
    for k in range(e.scalar[st.N_LATE]):
        i = e.late[k, sg.REQUEST]
        if e.late[k, sg.BATCH] == b and e.request[i, st.END] < 0 and _gain(e, i):
            v = running_slot(e, i)
            if v >= 0:
                _leave(e, v)
            else:
                give_up_place(e, i)
    _forget_late(e, b, st.NONE)


@part
def _forget_late(e: AnyEngine, b: int, gone: int) -> None:
    """Tokens of this batch are no longer on the way, nor any of who has ended or is gone."""
    n, late = 0, e.late
    for k in range(e.scalar[st.N_LATE]):
        i, brings = late[k, sg.REQUEST], late[k, sg.BATCH]
        if brings != b and i != gone and e.request[i, st.END] < 0:
            late[n, sg.REQUEST], late[n, sg.BATCH] = i, brings
            n += 1
    e.scalar[st.N_LATE] = n


@part
def _complete(e: AnyEngine) -> None:
    """The oldest batch comes back: tokens appear, who has all of them leaves."""
    s, slot, b = e.scalar, e.slot, oldest(e)
    at = b % e.flight.shape[0]
    s[st.IN_FLIGHT] -= 1
    s[st.IS_FULL] = 0
    if e.flight[at, sg.N_TOKENS] == 0:
        return
    used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
    end = e.flight[at, sg.END]
    account(e.scalar, e.bins, end, used, (e.peak_s[at, 0], e.peak_s[at, 1]))
    s[st.COMPUTED] += e.flight[at, sg.N_TOKENS]
    s[st.N_STEPS] += 1
    s[st.NOW] = s[st.KNOWN] = end
    v = s[st.HEAD]
    while v >= 0:
        after = slot[v, st.AFTER]
        if slot[v, sg.AWAITED] == b:
            slot[v, sg.AWAITED] = st.NONE
            if _gain(e, slot[v, st.ID]):
                _leave(e, v)
        v = after
    _bring_late(e, b)


@part
def advance(e: AnyEngine, until: int) -> int:
    """Bring one engine up to this instant; the result is when it next has something to report."""
    s = e.scalar
    while s[st.N_STALLED] <= st.MOST_STALLED:
        see_arrivals(e)
        is_over = s[st.N_RUNNING] == 0 and next_to_admit(e) < 0
        if s[st.IN_FLIGHT] > 0 and (s[st.IS_FULL] or is_over):
            jump(e, until)
            end = e.flight[oldest(e) % e.flight.shape[0], sg.END]
            if end > until:
                return int(end)
            _complete(e)
            continue
        if s[st.IN_FLIGHT] == 0 and is_idle(e):
            return st.FOREVER
        if s[st.NOW] >= until:
            return int(s[st.NOW])
        _begin(e)
    return st.FOREVER + 1  # no batch would change anything


@rare
def abort(e: AnyEngine, i: int) -> None:
    """The request leaves, wherever it is; what is on the way for it is lost."""
    v = running_slot(e, i)
    if v >= 0:
        _leave(e, v)
    else:
        give_up_place(e, i)
    _forget_late(e, st.MINUS_ONE, i)
    e.scalar[st.OUTSTANDING] -= 1


@rare
def spend(e: AnyEngine, until: int) -> None:
    """The engine dies at this instant: busy until then, with its batches lost."""
    s = e.scalar
    if s[st.IN_FLIGHT] > 0 and s[st.NOW] < until:
        used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
        account(e.scalar, e.bins, until, used, (0.0, 0.0))
        s[st.NOW] = until


@rare
def empty(e: AnyEngine, now: int) -> None:
    """A fresh engine at this instant; what it has counted stays."""
    empty_engine(e, now)
    e.scalar[st.N_LATE] = e.scalar[st.IS_FULL] = 0
    e.stage[:] = 0
