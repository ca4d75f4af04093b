"""Training runs as options: one for each start, with need only while the run lasts."""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.plan.selection import FleetOption, Horizon


def training_need(
    horizon: Horizon, n_accelerators: int, *, run_s: float, start_period: int
) -> Ints | None:
    """[scenario, period, hour] accelerators of a run; None where it outlasts the horizon.

    Whole periods first; the last, partial one takes as many of its hours as cover what is left.
    """
    n_periods = horizon.shape[1] - start_period
    begins_s = np.cumsum(np.tile(horizon.hour_s, n_periods)).reshape(n_periods, -1) - horizon.hour_s
    if n_periods * horizon.period_s < run_s * (1 - 1e-9):
        return None
    need = np.zeros(horizon.shape, dtype=np.int64)
    need[:, start_period:] = n_accelerators * (begins_s < run_s * (1 - 1e-9))
    return ints(need)


def training_options(
    horizon: Horizon,
    option: FleetOption,
    *,
    n_accelerators: int,
    run_s: float,
    deadline_s: float,
) -> tuple[FleetOption, ...]:
    """The option once for every start of a period that meets the deadline within the horizon."""
    found = []
    for start in range(horizon.shape[1]):
        end_s = start * horizon.period_s + run_s
        need = training_need(horizon, n_accelerators, run_s=run_s, start_period=start)
        if need is not None and end_s <= deadline_s * (1 + 1e-9):
            name = f"{option.name}, start {start}"
            found.append(replace(option, name=name, need=need, time_s=end_s, slice_kind=""))
    return tuple(found)
