"""Training runs as options: one for each start, with need only while the run lasts."""

import numpy as np

from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.plan.selection import FleetOption, Horizon, Refusal
from gpuplan.units import HOUR


def training_need(
    horizon: Horizon, n_accelerators: int, *, run_s: float, start_period: int
) -> Ints | None:
    """[scenario, period, hour] accelerators of a run; None where it outlasts the horizon.

    Whole periods first; the last, broken one takes as many of its hours as cover what is left.
    """
    need = np.zeros(horizon.shape, dtype=np.int64)
    left_s = run_s
    for period in range(start_period, horizon.shape[1]):
        for hour, length_s in enumerate(horizon.hour_s):
            if left_s > 1e-9 * run_s:
                need[:, period, hour] = n_accelerators
                left_s -= float(length_s)
    return ints(need) if left_s <= 1e-9 * run_s else None


def training_options(
    horizon: Horizon,
    option: FleetOption,
    *,
    n_accelerators: int,
    run_s: float,
    deadline_s: float,
) -> tuple[tuple[FleetOption, ...], tuple[Refusal, ...]]:
    """The option once for every start that meets the deadline; the others with what is missing."""
    kept, refused = [], []
    for start in range(horizon.shape[1]):
        name = f"{option.name}, start {start}"
        end_s = start * horizon.period_s + run_s
        need = training_need(horizon, n_accelerators, run_s=run_s, start_period=start)
        if end_s > deadline_s * (1 + 1e-9):
            late_h = (end_s - deadline_s) / HOUR
            refused.append(Refusal(name=name, reason=f"ends {late_h:.1f} h after the deadline"))
        elif need is None:
            refused.append(Refusal(name=name, reason="ends after the horizon"))
        else:
            kept.append(_started(option, name, need=need, end_s=end_s))
    return tuple(kept), tuple(refused)


def _started(option: FleetOption, name: str, *, need: Ints, end_s: float) -> FleetOption:
    return FleetOption(
        workload=option.workload,
        name=name,
        pool=option.pool,
        need=need,
        n_reserve=option.n_reserve,
        once_usd=option.once_usd,
        time_s=end_s,
    )
