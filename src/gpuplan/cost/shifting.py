"""Deferrable work: the hours in which jobs run so that they emit least."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.money.carbon import DeferrableJob, ShiftPlan
from gpuplan.errors import InfeasibleError, InputError, Problem, SolverError
from gpuplan.units import HOUR, KW, KWH


def shifted(
    jobs: Sequence[DeferrableJob],
    *,
    kg_per_j: Sequence[float],
    free_w: Sequence[float],
    meaning: str,
) -> ShiftPlan:
    """The schedule with the least emissions within every job's hours and the free power; exact.

    With prices in place of carbon the answer has the least cost, in that unit.
    """
    _check(jobs, kg_per_j, free_w)
    weights = np.asarray(kg_per_j, dtype=np.float64)
    free = np.asarray(free_w, dtype=np.float64)
    at_once = _solve(jobs, _early(len(weights)), free)
    best = _solve(jobs, weights, free)
    return ShiftPlan(
        names=tuple(job.name for job in jobs),
        power_w=floats(best),
        at_once_kg=float((at_once * weights).sum() * HOUR),
        shifted_kg=float((best * weights).sum() * HOUR),
        meaning=meaning,
    )


def _early(n_hours: int) -> Floats:
    """Weights that rise with every hour, so that work runs as soon as possible."""
    return np.arange(1, n_hours + 1, dtype=np.float64)


def _solve(jobs: Sequence[DeferrableJob], weights: Floats, free_w: Floats) -> Floats:
    """The transport problem: energy of each job over its hours, bounded by the free power."""
    n_jobs, n_hours = len(jobs), len(weights)
    columns = np.arange(n_jobs * n_hours)
    ones = np.ones(columns.size)
    by_job = csr_array((ones, (columns // n_hours, columns)), shape=(n_jobs, columns.size))
    by_hour = csr_array((ones, (columns % n_hours, columns)), shape=(n_hours, columns.size))
    bounds = [
        (0.0, job.max_w / KW if job.first_hour <= hour <= job.last_hour else 0.0)
        for job in jobs
        for hour in range(n_hours)
    ]
    scale = float(np.abs(weights).max()) or 1.0
    found = linprog(  # type: ignore[call-overload]  # its stubs know no sparse rows
        np.tile(weights / scale, n_jobs),
        A_ub=by_hour,
        b_ub=free_w / KW,
        A_eq=by_job,
        b_eq=[job.energy_j / KWH for job in jobs],
        bounds=bounds,
        method="highs",
    )
    if found.status == 2:
        raise InfeasibleError("shifting", [_shortfall(jobs, free_w)])
    if found.status != 0:
        fix = "report the jobs and hours"
        raise SolverError("shifting", [Problem("linear program", str(found.message), fix)])
    return np.asarray(found.x).reshape(n_jobs, n_hours) * KW


def _shortfall(jobs: Sequence[DeferrableJob], free_w: Floats) -> Problem:
    """The shortfall: of the first job too large for its own hours, else of all together."""
    for job in jobs:
        window = np.minimum(free_w[job.first_hour : job.last_hour + 1], job.max_w)
        most = float(window.sum()) * HOUR
        if most < job.energy_j:
            what = f"needs {job.energy_j / KWH:,.1f} kWh, its hours allow {most / KWH:,.1f}"
            return Problem(job.name, what, "give it more hours or more power")
    total = sum(job.energy_j for job in jobs) / KWH
    what = f"{total:,.1f} kWh do not fit side by side into the free power"
    return Problem("all jobs", what, "free more power or move deadlines")


def _check(
    jobs: Sequence[DeferrableJob], kg_per_j: Sequence[float], free_w: Sequence[float]
) -> None:
    found = []
    if len(kg_per_j) != len(free_w) or not kg_per_j:
        what = f"{len(kg_per_j)} and {len(free_w)} hours"
        found.append(Problem("hours", what, "give carbon and free power for the same hours"))
    for job in jobs:
        if not 0 <= job.first_hour <= job.last_hour < len(kg_per_j):
            what = f"hours {job.first_hour} to {job.last_hour} of {len(kg_per_j)}"
            found.append(Problem(job.name, what, "keep its hours within those given"))
        if job.energy_j <= 0 or job.max_w <= 0:
            found.append(Problem(job.name, "no energy or no power", "use figures above 0"))
    if found:
        raise InputError("shifting", found)
