"""Requests leave an engine with more policies before their end: see removal.py."""

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.account import account
from gpuplan.simulation.serving.kernels.engine.cost import peaks_of_s
from gpuplan.simulation.serving.kernels.engine.featured import AnyEngine
from gpuplan.simulation.serving.kernels.engine.positions import (
    first_tick,
    moved,
    plan_featured,
    position,
)
from gpuplan.simulation.serving.kernels.engine.queue import give_up_place
from gpuplan.simulation.serving.kernels.engine.removal import empty, running_slot
from gpuplan.simulation.serving.kernels.engine.schedule import drop_running
from gpuplan.simulation.serving.kernels.engine.state import learn
from gpuplan.simulation.serving.kernels.jit.compiled import part, rare


@rare
def abort_featured(e: AnyEngine, i: int) -> None:
    """The request leaves between two steps, wherever it is; whoever waits may now fit."""
    v = running_slot(e, i)
    if v >= 0:
        drop_running(e, v)
    else:
        give_up_place(e, i)
    e.scalar[st.OUTSTANDING] -= 1
    e.scalar[st.BLOCKED] = 0
    learn(e.scalar, e.limit, e.scalar[st.KNOWN])


@part
def _spend_jump(e: AnyEngine, until: int) -> None:
    """Whole decode steps that end by this instant were computed, whatever becomes of them."""
    s = e.scalar
    s[st.STOP] = until
    k, lasts, needed, regime, _ = plan_featured(e)
    # The plan ends at the first boundary at or after the instant; one less is before it.
    if k > 0 and s[st.NOW] + ((lasts + s[st.FRAC]) >> st.FRAC_BITS) > until:
        k -= 1
    if k > 0:
        s[st.N_STEPS] += k
        s[st.COMPUTED] += k * s[st.N_DECODES] * e.limit[st.CHECKED]
        used = e.limit[st.N_BLOCKS] - s[st.FREE] + 0.5 * needed
        account(e.scalar, e.bins, until, used, peaks_of_s(e, regime, k, moved(e, k)))
        s[st.NOW] = until


@rare
def spend_featured(e: AnyEngine, until: int) -> None:
    """The engine dies at this instant: busy until then, with the step in progress lost."""
    s = e.scalar
    if s[st.N_RUNNING] == 0:
        return
    if not s[st.IN_FLIGHT] and s[st.NOW] < until:
        _spend_jump(e, until)
    if s[st.NOW] < until:
        account(e.scalar, e.bins, until, float(e.limit[st.N_BLOCKS] - s[st.FREE]), (0.0, 0.0))
    s[st.NOW], s[st.FRAC] = until, 0


@rare
def empty_featured(e: AnyEngine, now: int) -> None:
    """A fresh engine at this instant, with nothing in its cache; what it has counted stays."""
    s = e.scalar
    empty(e, now)
    s[st.PARKED] = s[st.READY] = s[st.OLDEST] = s[st.NEWEST] = st.NONE
    s[st.ENTRY_SPARE] = s[st.RUN_SPARE] = s[st.NODE_SPARE] = st.NONE
    s[st.ENTRY_TOP] = s[st.RUN_TOP] = s[st.NODE_TOP] = s[st.N_PARTIALS] = 0
    # A step that was lost must not decide how drafts fare from here on.
    s[st.TICK], s[st.GAIN] = first_tick(e, now), 0
    s[st.STEP] = position(e, s[st.TICK])
    s[st.BARE] = e.limit[st.N_BLOCKS]
    e.table[:] = st.NONE
