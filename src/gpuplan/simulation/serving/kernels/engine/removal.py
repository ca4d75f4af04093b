"""Requests leave an engine before their end: the client has gone, or the engine has died."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import peaks_s
from gpuplan.simulation.serving.kernels.engine.jump import plan_jump
from gpuplan.simulation.serving.kernels.engine.state import (
    Engine,
    Ints,
    count_phase,
    forget_finish,
    learn,
    n_blocks,
    unlink_running,
)
from gpuplan.simulation.serving.kernels.jit.compiled import part


@part
def forget_work(request: Ints, i: int) -> None:
    """The request is as if it had never been started."""
    row = request[i]
    row[st.MADE] = row[st.GIVEN] = 0
    row[st.START] = row[st.FIRST] = row[st.END] = st.NONE


@part
def running_slot(e: Engine, i: int) -> int:
    """The request's slot; NONE where it does not run."""
    v = e.scalar[st.HEAD]
    while v >= 0 and e.slot[v, st.ID] != i:
        v = e.slot[v, st.AFTER]
    return int(v)


@part
def _drop_running(e: Engine, v: int) -> None:
    s, slot = e.scalar, e.slot
    if v == s[st.PARTIAL]:
        s[st.FREE] += n_blocks(e.limit, s[st.PARTIAL_DONE])
        s[st.PARTIAL] = st.NONE
    else:
        n_tokens = slot[v, st.OFFSET] + s[st.STEP]
        s[st.FREE] += n_blocks(e.limit, n_tokens - 1)
        count_phase(e.scalar, e.limit, slot[v, st.OFFSET], st.MINUS_ONE)
        s[st.N_DECODES] -= 1
        s[st.CONTEXT] -= n_tokens
        forget_finish(e.ring, e.word, e.slot, v)
    unlink_running(e.scalar, e.slot, v)


@part
def _drop_waiting(e: Engine, i: int) -> None:
    s = e.scalar
    before, at = st.NONE, s[st.WAIT_HEAD]
    while at != i:
        before, at = at, e.request[at, st.NEXT_WAITING]
    after = e.request[i, st.NEXT_WAITING]
    if before >= 0:
        e.request[before, st.NEXT_WAITING] = after
    else:
        s[st.WAIT_HEAD] = after
    if after < 0:
        s[st.WAIT_TAIL] = before


@part
def abort(e: Engine, i: int) -> None:
    """The request leaves between two steps, wherever it is; whoever waits may now fit."""
    v = running_slot(e, i)
    if v >= 0:
        _drop_running(e, v)
    else:
        _drop_waiting(e, i)
    e.scalar[st.OUTSTANDING] -= 1
    e.scalar[st.BLOCKED] = 0
    learn(e.scalar, e.limit, e.scalar[st.KNOWN])


@part
def at_boundary(e: Engine) -> bool:
    """The engine is between two steps, at or after the instant that it was to stop at."""
    return bool(e.scalar[st.IN_FLIGHT] == 0 and e.scalar[st.NOW] >= e.scalar[st.STOP])


@part
def _spend_jump(e: Engine, until: int) -> None:
    """Whole decode steps that end by this instant were computed, whatever becomes of them."""
    s = e.scalar
    s[st.STOP] = until
    k, lasts, needed, regime, _ = plan_jump(e)
    # The plan ends at the first boundary at or after the instant; one less is before it.
    if k > 0 and s[st.NOW] + ((lasts + s[st.FRAC]) >> st.FRAC_BITS) > until:
        k -= 1
    if k > 0:
        s[st.N_STEPS] += k
        s[st.COMPUTED] += k * s[st.N_DECODES]
        used = e.limit[st.N_BLOCKS] - s[st.FREE] + 0.5 * needed
        account(e.scalar, e.bins, until, used, peaks_s(e, regime, k))
        s[st.NOW] = until


@part
def spend(e: Engine, until: int) -> None:
    """The engine dies at this instant: busy until then, with the step in progress lost."""
    s = e.scalar
    if s[st.N_RUNNING] == 0:
        return
    if not s[st.IN_FLIGHT] and s[st.NOW] < until:
        _spend_jump(e, until)
    if s[st.NOW] < until:
        account(e.scalar, e.bins, until, float(e.limit[st.N_BLOCKS] - s[st.FREE]), (0.0, 0.0))
    s[st.NOW], s[st.FRAC] = until, 0


@part
def empty(e: Engine, now: int) -> None:
    """A fresh engine at this instant; what it has counted stays."""
    s = e.scalar
    s[st.HEAD] = s[st.TAIL] = s[st.WAIT_HEAD] = s[st.WAIT_TAIL] = s[st.PARTIAL] = s[st.MARK] = (
        st.NONE
    )
    s[st.NOW], s[st.FRAC], s[st.STOP], s[st.FREE] = (
        max(s[st.NOW], now),
        0,
        st.FOREVER,
        e.limit[st.N_BLOCKS],
    )
    s[st.N_DECODES] = s[st.CONTEXT] = s[st.N_RUNNING] = s[st.OUTSTANDING] = s[st.IN_FLIGHT] = s[
        st.BLOCKED
    ] = 0
    s[st.FREE_SLOT] = 0
    s[st.KNOWN] = s[st.NOW]
    for v in range(e.limit[st.MAX_SEQUENCES]):
        e.slot[v, st.AFTER] = v + 1
    e.slot[e.limit[st.MAX_SEQUENCES] - 1, st.AFTER] = st.NONE
    s[st.PHASES :] = 0
    e.ring[:] = st.NONE
    e.word[:] = 0
