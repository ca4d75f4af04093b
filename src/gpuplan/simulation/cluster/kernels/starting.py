"""Who starts now: the first pool with room, as large as the job can be."""

from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.jobs import (
    fits_now,
    limit_left,
    place,
    quota_fits,
    speed,
    units,
)
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.serving.kernels.jit.compiled import rare as part


@part
def is_allowed(s: Sim, j: int, p: int) -> bool:
    """Whether the job may run in the pool."""
    return bool((s.job[j, st.POOLS] >> p) & 1 == 1)


@part
def outlasts(s: Sim, j: int, p: int, gpus: int) -> bool:
    """Whether the job might still run when the reservation begins."""
    pause = s.work[j, st.RESTART] if s.job[j, st.N_STARTS] > 0 else 0.0
    expected = s.clock[st.NOW] + pause + limit_left(s, j) / speed(s, j, p, gpus)
    return bool(expected > s.clock[st.SHADOW])


@part
def start_in(s: Sim, j: int, p: int, is_backfill: bool) -> bool:
    """Start the job in the pool if it fits, as large as it can be."""
    flavor, why = s.pool[p, st.FLAVOR], st.TOO_FEW
    for gpus in range(s.job[j, st.MOST], s.job[j, st.LEAST] - 1, -1):
        if not quota_fits(s, j, flavor, units(s, j, gpus)):
            why = st.BY_QUOTA
            continue
        is_capped = is_backfill and outlasts(s, j, p, gpus)
        how = fits_now(s, j, p, gpus, is_capped)
        if how != -1:
            place(s, j, p, gpus, how)
            if is_capped:
                _use_extra(s)
            return True
        why = st.FRAGMENTED if s.pool[p, st.POOL_FREE] >= gpus else st.TOO_FEW
    s.counter[st.WHY] = max(s.counter[st.WHY], why)
    return False


@part
def _use_extra(s: Sim) -> None:
    for i in range(max(1, s.counter[st.N_PIECES])):
        gpus = s.scratch[st.PIECE_GPUS, i] if s.counter[st.N_PIECES] else 1
        s.scratch[st.EXTRA, s.scratch[st.PIECE_NODE, i]] -= gpus


@part
def try_start(s: Sim, j: int, is_backfill: bool) -> bool:
    """Start the job in the first of its pools that has room; else say why not."""
    s.counter[st.WHY] = st.NOBODY_WAITS
    for p in range(s.pool.shape[0]):
        if is_allowed(s, j, p) and start_in(s, j, p, is_backfill):
            return True
    return False
