"""Runs and jobs in the idle hours of services, in: what both chose; out: what turns would save."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import Alternative
from gpuplan.domain.plan.sizing import SizedJob
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.runs import PricedRun, compared_runs, deadline_of
from gpuplan.units import DAY, MINUTE

WINDOW_S = (
    10 * MINUTE
)  # Assumption: lost each day to a checkpoint, the model's load and its restart
LEAST_H_PER_DAY = 1.0  # below, starting and stopping eats the window


class IdleWindow(NamedTuple):
    """Accelerators of a pool that services leave idle, and for how long each day."""

    pool: str
    n_accelerators: int
    h_per_day: float

    @property
    def useful_frac(self) -> float:
        """Of the day, after what starting and stopping takes."""
        return max(0.0, self.h_per_day / 24.0 - WINDOW_S / DAY)


def time_shared(scenario: Scenario, groups: Sequence[SolvedGroup]) -> Iterator[Alternative]:
    """Every chosen run that would end in time in the idle hours of nodes that services hold."""
    hosts = [group.choice for group in groups if not group.choice.is_jobs]
    for group in (group for group in groups if group.choice.is_jobs):
        for runs in compared_runs(group.choice, group.sizings):
            every = [runs.chosen, *runs.others]
            found = [fit for host in hosts for fit in _fitting(scenario, host, every)]
            if found:
                wall_s, window, run = min(found, key=lambda fit: fit[0])
                yield _alternative(runs.usd_per_month(runs.chosen), run, window, wall_s)


def _fitting(
    scenario: Scenario, host: Choice, runs: Sequence[PricedRun]
) -> Iterator[tuple[float, IdleWindow, PricedRun]]:
    for run in runs:
        deadline_s = deadline_of(scenario, run.job.candidate.workload)
        for window in idle_windows(
            host, str(run.job.candidate.accelerator), run.job.n_accelerators
        ):
            wall_s = shared_wall_s(run.job, window)
            if wall_s <= (np.inf if deadline_s is None else deadline_s):
                yield wall_s, window, run


def idle_windows(host: Choice, accelerator: str, n: int) -> Iterator[IdleWindow]:
    """Pools of this accelerator in which so many are idle at once for some hours of the day."""
    hour_s = np.asarray(host.table.problem.horizon.hour_s)
    for pool in host.table.problem.pools:
        if pool.accelerator == accelerator:
            share = float(hour_s[idle_accelerators(host, pool.name) >= n].sum() / hour_s.sum())
            if share * 24.0 >= LEAST_H_PER_DAY:
                yield IdleWindow(pool.name, n, share * 24.0)


def idle_accelerators(host: Choice, pool: str) -> Floats:
    """[hour] accelerators that are held and not needed, in the fullest of all periods."""
    size = host.pool(pool).n_accelerators_per_node
    shape = host.table.problem.horizon.shape[1:]
    held = sum((h.n_nodes[0] for h in host.selection.held if h.pool == pool), np.zeros(shape))
    mine = [option for option in host.selection.chosen if option.pool == pool]
    need = sum((option.need[0] + option.n_reserve for option in mine), np.zeros(shape))
    is_cut = any(option.slice_kind for option in mine)
    return floats(np.zeros(shape[1]) if is_cut else (held * size - need).min(axis=0))


def shared_wall_s(job: SizedJob, window: IdleWindow) -> float:
    """How long a run takes that works in the window alone."""
    return job.wall_s.value / window.useful_frac if window.useful_frac > 0 else float("inf")


def _alternative(
    chosen_usd: float, run: PricedRun, window: IdleWindow, wall_s: float
) -> Alternative:
    name = run.job.candidate.workload
    return Alternative(
        kind="time-sharing",
        fleet=f"{window.n_accelerators} x {run.job.candidate.accelerator} of pool {window.pool}",
        usd_per_month=0.0,
        extra_usd_per_month=-chosen_usd,
        remark=f"{name}: in {window.h_per_day:.3g} idle hours a day of the services' nodes it ends "
        f"after {wall_s / DAY:.1f} days without rent of its own",
    )
