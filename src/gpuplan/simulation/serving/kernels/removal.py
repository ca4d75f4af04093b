"""Requests leave an engine before their end: the client has gone, or the engine has died."""

from gpuplan.simulation.serving.kernels.account import account
from gpuplan.simulation.serving.kernels.compiled import part
from gpuplan.simulation.serving.kernels.cost import peaks_s
from gpuplan.simulation.serving.kernels.jump import plan_jump
from gpuplan.simulation.serving.kernels.state import (
    AFTER,
    BLOCKED,
    COMPUTED,
    CONTEXT,
    END,
    FIRST,
    FOREVER,
    FRAC,
    FRAC_BITS,
    FREE,
    FREE_SLOT,
    GIVEN,
    HEAD,
    ID,
    IN_FLIGHT,
    KNOWN,
    MADE,
    MARK,
    MAX_SEQUENCES,
    MINUS_ONE,
    N_BLOCKS,
    N_DECODES,
    N_RUNNING,
    N_STEPS,
    NEXT_WAITING,
    NONE,
    NOW,
    OFFSET,
    OUTSTANDING,
    PARTIAL,
    PARTIAL_DONE,
    PHASES,
    START,
    STEP,
    STOP,
    TAIL,
    WAIT_HEAD,
    WAIT_TAIL,
    Engine,
    Ints,
    count_phase,
    forget_finish,
    learn,
    n_blocks,
    unlink_running,
)


@part
def forget_work(request: Ints, i: int) -> None:
    """The request is as if it had never been started."""
    row = request[i]
    row[MADE] = row[GIVEN] = 0
    row[START] = row[FIRST] = row[END] = NONE


@part
def running_slot(e: Engine, i: int) -> int:
    """The request's slot; NONE where it does not run."""
    v = e.scalar[HEAD]
    while v >= 0 and e.slot[v, ID] != i:
        v = e.slot[v, AFTER]
    return int(v)


@part
def _drop_running(e: Engine, v: int) -> None:
    s, slot = e.scalar, e.slot
    if v == s[PARTIAL]:
        s[FREE] += n_blocks(e.limit, s[PARTIAL_DONE])
        s[PARTIAL] = NONE
    else:
        n_tokens = slot[v, OFFSET] + s[STEP]
        s[FREE] += n_blocks(e.limit, n_tokens - 1)
        count_phase(e.scalar, e.limit, slot[v, OFFSET], MINUS_ONE)
        s[N_DECODES] -= 1
        s[CONTEXT] -= n_tokens
        forget_finish(e.ring, e.word, e.slot, v)
    unlink_running(e.scalar, e.slot, v)


@part
def _drop_waiting(e: Engine, i: int) -> None:
    s = e.scalar
    before, at = NONE, s[WAIT_HEAD]
    while at != i:
        before, at = at, e.request[at, NEXT_WAITING]
    after = e.request[i, NEXT_WAITING]
    if before >= 0:
        e.request[before, NEXT_WAITING] = after
    else:
        s[WAIT_HEAD] = after
    if after < 0:
        s[WAIT_TAIL] = before


@part
def abort(e: Engine, i: int) -> None:
    """The request leaves between two steps, wherever it is; whoever waits may now fit."""
    v = running_slot(e, i)
    if v >= 0:
        _drop_running(e, v)
    else:
        _drop_waiting(e, i)
    e.scalar[OUTSTANDING] -= 1
    e.scalar[BLOCKED] = 0
    learn(e.scalar, e.limit, e.scalar[KNOWN])


@part
def at_boundary(e: Engine) -> bool:
    """The engine is between two steps, at or after the instant that it was to stop at."""
    return bool(e.scalar[IN_FLIGHT] == 0 and e.scalar[NOW] >= e.scalar[STOP])


@part
def _spend_jump(e: Engine, until: int) -> None:
    """Whole decode steps that end by this instant were computed, whatever becomes of them."""
    s = e.scalar
    s[STOP] = until
    k, lasts, needed, regime, _ = plan_jump(e)
    # The plan ends at the first boundary at or after the instant; one less is before it.
    if k > 0 and s[NOW] + ((lasts + s[FRAC]) >> FRAC_BITS) > until:
        k -= 1
    if k > 0:
        s[N_STEPS] += k
        s[COMPUTED] += k * s[N_DECODES]
        used = e.limit[N_BLOCKS] - s[FREE] + 0.5 * needed
        account(e.scalar, e.bins, until, used, peaks_s(e, regime, k))
        s[NOW] = until


@part
def spend(e: Engine, until: int) -> None:
    """The engine dies at this instant: busy until then, with the step in progress lost."""
    s = e.scalar
    if s[N_RUNNING] == 0:
        return
    if not s[IN_FLIGHT] and s[NOW] < until:
        _spend_jump(e, until)
    if s[NOW] < until:
        account(e.scalar, e.bins, until, float(e.limit[N_BLOCKS] - s[FREE]), (0.0, 0.0))
    s[NOW], s[FRAC] = until, 0


@part
def empty(e: Engine, now: int) -> None:
    """A fresh engine at this instant; what it has counted stays."""
    s = e.scalar
    s[HEAD] = s[TAIL] = s[WAIT_HEAD] = s[WAIT_TAIL] = s[PARTIAL] = s[MARK] = NONE
    s[NOW], s[FRAC], s[STOP], s[FREE] = max(s[NOW], now), 0, FOREVER, e.limit[N_BLOCKS]
    s[N_DECODES] = s[CONTEXT] = s[N_RUNNING] = s[OUTSTANDING] = s[IN_FLIGHT] = s[BLOCKED] = 0
    s[FREE_SLOT] = 0
    s[KNOWN] = s[NOW]
    for v in range(e.limit[MAX_SEQUENCES]):
        e.slot[v, AFTER] = v + 1
    e.slot[e.limit[MAX_SEQUENCES] - 1, AFTER] = NONE
    s[PHASES:] = 0
    e.ring[:] = NONE
    e.word[:] = 0
