"""Requests leave an engine with more policies before their end: see removal.py."""

from gpuplan.simulation.serving.kernels.account import account
from gpuplan.simulation.serving.kernels.compiled import part, rare
from gpuplan.simulation.serving.kernels.cost import peaks_of_s
from gpuplan.simulation.serving.kernels.featured import AnyEngine
from gpuplan.simulation.serving.kernels.policy import drop_running
from gpuplan.simulation.serving.kernels.positions import first_tick, moved, plan_featured, position
from gpuplan.simulation.serving.kernels.priority import give_up_place
from gpuplan.simulation.serving.kernels.removal import empty, running_slot
from gpuplan.simulation.serving.kernels.state import (
    BARE,
    BLOCKED,
    CHECKED,
    COMPUTED,
    ENTRY_SPARE,
    ENTRY_TOP,
    FRAC,
    FRAC_BITS,
    FREE,
    GAIN,
    IN_FLIGHT,
    KNOWN,
    N_BLOCKS,
    N_DECODES,
    N_PARTIALS,
    N_RUNNING,
    N_STEPS,
    NEWEST,
    NODE_SPARE,
    NODE_TOP,
    NONE,
    NOW,
    OLDEST,
    OUTSTANDING,
    PARKED,
    READY,
    RUN_SPARE,
    RUN_TOP,
    STEP,
    STOP,
    TICK,
    learn,
)


@rare
def abort_featured(e: AnyEngine, i: int) -> None:
    """The request leaves between two steps, wherever it is; whoever waits may now fit."""
    v = running_slot(e, i)
    if v >= 0:
        drop_running(e, v)
    else:
        give_up_place(e, i)
    e.scalar[OUTSTANDING] -= 1
    e.scalar[BLOCKED] = 0
    learn(e.scalar, e.limit, e.scalar[KNOWN])


@part
def _spend_jump(e: AnyEngine, until: int) -> None:
    """Whole decode steps that end by this instant were computed, whatever becomes of them."""
    s = e.scalar
    s[STOP] = until
    k, lasts, needed, regime, _ = plan_featured(e)
    # The plan ends at the first boundary at or after the instant; one less is before it.
    if k > 0 and s[NOW] + ((lasts + s[FRAC]) >> FRAC_BITS) > until:
        k -= 1
    if k > 0:
        s[N_STEPS] += k
        s[COMPUTED] += k * s[N_DECODES] * e.limit[CHECKED]
        used = e.limit[N_BLOCKS] - s[FREE] + 0.5 * needed
        account(e.scalar, e.bins, until, used, peaks_of_s(e, regime, k, moved(e, k)))
        s[NOW] = until


@rare
def spend_featured(e: AnyEngine, until: int) -> None:
    """The engine dies at this instant: busy until then, with the step in progress lost."""
    s = e.scalar
    if s[N_RUNNING] == 0:
        return
    if not s[IN_FLIGHT] and s[NOW] < until:
        _spend_jump(e, until)
    if s[NOW] < until:
        account(e.scalar, e.bins, until, float(e.limit[N_BLOCKS] - s[FREE]), (0.0, 0.0))
    s[NOW], s[FRAC] = until, 0


@rare
def empty_featured(e: AnyEngine, now: int) -> None:
    """A fresh engine at this instant, with nothing in its cache; what it has counted stays."""
    s = e.scalar
    empty(e, now)
    s[PARKED] = s[READY] = s[OLDEST] = s[NEWEST] = NONE
    s[ENTRY_SPARE] = s[RUN_SPARE] = s[NODE_SPARE] = NONE
    s[ENTRY_TOP] = s[RUN_TOP] = s[NODE_TOP] = s[N_PARTIALS] = 0
    # A step that was lost must not decide how drafts fare from here on.
    s[TICK], s[GAIN] = first_tick(e, now), 0
    s[STEP] = position(e, s[TICK])
    s[BARE] = e.limit[N_BLOCKS]
    e.table[:] = NONE
