"""Requests leave an engine before their end: the client has gone, or the engine has died."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import peaks_s
from gpuplan.simulation.serving.kernels.engine.holding import n_held
from gpuplan.simulation.serving.kernels.engine.jump import plan_jump
from gpuplan.simulation.serving.kernels.engine.kinds import policy
from gpuplan.simulation.serving.kernels.engine.leaving import forget_decode
from gpuplan.simulation.serving.kernels.engine.lists import learn, n_blocks, unlink_running
from gpuplan.simulation.serving.kernels.engine.positions import begin_draws, moved, n_draft_tokens
from gpuplan.simulation.serving.kernels.engine.queue import give_up_place
from gpuplan.simulation.serving.kernels.engine.state import AnyEngine, Ints
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare
from gpuplan.simulation.serving.kernels.prefix.cache import give_back


@part
def forget_work(request: Ints, i: int) -> None:
    """The request is as if it had never been started."""
    row = request[i]
    row[st.MADE] = row[st.GIVEN] = 0
    row[st.START] = row[st.FIRST] = row[st.END] = st.NONE


@part
def running_slot(e: AnyEngine, i: int) -> int:
    """The request's slot; NONE where it does not run."""
    v = e.scalar[st.HEAD]
    while v >= 0 and e.slot[v, st.ID] != i:
        v = e.slot[v, st.AFTER]
    return int(v)


@part
def _drop_running(e: AnyEngine, v: int) -> None:
    """The slot's request leaves between two steps; what it wrote may be found again."""
    s, slot = e.scalar, e.slot
    n_seen = slot[v, st.DONE]
    n = n_blocks(e.limit, n_seen)
    if n_seen >= 0:
        s[st.N_PARTIALS] -= 1
    else:
        n_seen = slot[v, st.OFFSET] + s[st.STEP] - s[st.GAIN]
        n = n_held(e, v)
        forget_decode(e, v)
    give_back(e, v, n, n_seen)
    unlink_running(e.scalar, e.slot, v)


@rare
def abort(e: AnyEngine, i: int) -> None:
    """The request leaves between two steps, wherever it is; whoever waits may now fit."""
    v = running_slot(e, i)
    if v >= 0:
        _drop_running(e, v)
    else:
        give_up_place(e, i)
    e.scalar[st.OUTSTANDING] -= 1
    e.scalar[st.BLOCKED] = 0
    e.scalar[st.PLAN_AT] = st.NONE
    learn(e.scalar, e.limit, e.scalar[st.KNOWN])


@part
def at_boundary(e: AnyEngine) -> bool:
    """The engine is between two steps, at or after the instant that it was to stop at."""
    return bool(e.scalar[st.IN_FLIGHT] == 0 and e.scalar[st.NOW] >= e.scalar[st.STOP])


@part
def _spend_jump(e: AnyEngine, until: int) -> None:
    """Whole decode steps that end by this instant were computed, whatever becomes of them."""
    s = e.scalar
    s[st.STOP] = until
    k, lasts, needed, regime, _ = plan_jump(e)
    # The plan ends at the first boundary at or after the instant; one less is before it.
    if k > 0 and s[st.NOW] + ((lasts + s[st.FRAC]) >> st.FRAC_BITS) > until:
        k -= 1
    if k > 0:
        s[st.N_STEPS] += k
        s[st.COMPUTED] += k * s[st.N_DECODES] * (n_draft_tokens(e) + 1)
        used = e.limit[st.N_BLOCKS] - s[st.FREE] + 0.5 * needed
        account(e.scalar, e.bins, until, used, peaks_s(e, regime, k, moved(e, k)))
        s[st.NOW] = until


@rare
def spend(e: AnyEngine, until: int) -> None:
    """The engine dies at this instant: busy until then, with the step in progress lost."""
    s = e.scalar
    if s[st.N_RUNNING] == s[st.N_LEAVING] and not s[st.IN_FLIGHT]:
        return
    if not s[st.IN_FLIGHT] and s[st.NOW] < until:
        _spend_jump(e, until)
    if s[st.NOW] < until:
        used = float(e.limit[st.N_BLOCKS] - s[st.FREE])
        account(e.scalar, e.bins, until, used, (0.0, 0.0))
    s[st.NOW], s[st.FRAC] = until, 0


def _forget_nothing(_: AnyEngine, __: int) -> None:
    pass


@policy(otherwise=_forget_nothing)
def _empty_cache(e: AnyEngine, now: int) -> None:
    """Nothing is in the prefix cache; acceptances are drawn anew."""
    s = e.scalar
    s[st.OLDEST] = s[st.NEWEST] = st.NONE
    s[st.EXTENT_SPARE] = s[st.ENTRY_SPARE] = s[st.CHAIN_SPARE] = st.NONE
    s[st.EXTENT_TOP] = s[st.ENTRY_TOP] = s[st.CHAIN_TOP] = 0
    s[st.BARE] = e.limit[st.N_BLOCKS]
    e.bucket[:] = st.NONE
    # A step that was lost must not decide how draft tokens fare from here on.
    begin_draws(e, now)


@rare
def empty(e: AnyEngine, now: int) -> None:
    """A fresh engine at this instant; what it has counted stays."""
    s = e.scalar
    s[st.HEAD] = s[st.TAIL] = s[st.WAIT_HEAD] = s[st.WAIT_TAIL] = st.NONE
    s[st.MARK] = s[st.PARKED] = s[st.READY] = s[st.PLAN_AT] = st.NONE
    s[st.LEAVE_HEAD] = s[st.LEAVE_TAIL] = s[st.CLOSED] = st.NONE
    s[st.N_LEAVING] = 0
    s[st.NOW], s[st.FRAC], s[st.STOP] = max(s[st.NOW], now), 0, st.FOREVER
    s[st.FREE], s[st.FREE_SLOT] = e.limit[st.N_BLOCKS], 0
    s[st.N_DECODES] = s[st.CONTEXT] = s[st.N_RUNNING] = s[st.N_PARTIALS] = 0
    s[st.OUTSTANDING] = s[st.IN_FLIGHT] = s[st.BLOCKED] = s[st.DEBT] = s[st.NEXT_DEBT] = 0
    s[st.N_STALLED] = 0
    s[st.KNOWN] = s[st.NOW]
    for v in range(e.limit[st.MAX_SEQUENCES]):
        e.slot[v, st.AFTER], e.slot[v, st.ID] = v + 1, st.NONE
    e.slot[e.limit[st.MAX_SEQUENCES] - 1, st.AFTER] = st.NONE
    s[st.PHASES :] = 0
    e.ring[:] = st.NONE
    e.word[:] = 0
    _empty_cache(e, now)
