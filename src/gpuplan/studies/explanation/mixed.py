"""Several kinds of accelerators under one workload: what the mix would cost."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import floats
from gpuplan.domain.plan.answer import Alternative
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.selection import FleetPart, MixedFleet, Selection, SelectionProblem
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.selection.choose import select
from gpuplan.selection.program.solver import Effort
from gpuplan.units import HOUR, HOURS_PER_MONTH

MOST_PARTS = 8
LEAST_SAVED_FRAC = 0.005  # below, a second kind is not worth its trouble


def mixed_alternative(
    problem: SelectionProblem,
    curves: Sequence[FleetCurve],
    demand: DemandProfile,
    *,
    chosen_usd: float,
) -> Alternative | None:
    """The cheapest mix, where it is cheaper than one kind; None where it is not.

    Each kind carries what it carries alone: a router that sends each as much as it can take.
    """
    parts = _parts(curves, problem)
    if len(parts) < 2 or problem.horizon.shape[1] > 1:
        return None
    load = demand.peak_of(0, 0) * np.asarray(demand.hours.load_frac)[None, None, :]
    fleet = MixedFleet(
        workload=demand.workload,
        n_load=floats(load),
        parts=tuple(parts.values()),
        n_lost=max(curve.n_spare for curve in curves),
    )
    found = select(replace(problem, options=(), mixed=(fleet,)), Effort(gap_frac=1e-4, max_s=5.0))
    if not isinstance(found, Selection) or len(_used(found)) < 2:
        return None
    months = problem.horizon.period_s / HOUR / HOURS_PER_MONTH
    usd = sum(line.nominal_cents for line in found.bill) / 100.0 / months
    if usd > chosen_usd * (1 - LEAST_SAVED_FRAC):
        return None
    return Alternative(
        kind="mixed fleet",
        fleet=" + ".join(f"{n} x {name}" for name, n in _used(found).items()),
        usd_per_month=usd,
        extra_usd_per_month=usd - chosen_usd,
        power_w=0.0,
        remark=f"{demand.workload}: cheaper, and two kinds to run, route and keep spares of",
    )


def _parts(curves: Sequence[FleetCurve], problem: SelectionProblem) -> dict[str, FleetPart]:
    """The cheapest fleet of each kind, whole replicas in nodes that they divide."""
    pools = {pool.name for pool in problem.pools}
    parts: dict[str, FleetPart] = {}
    for curve in curves:
        pool = curve.name.rsplit(", ", 1)[0].rsplit(" on ", 1)[1]
        size = curve.candidate.n_accelerators
        fits = curve.candidate.share is None and curve.n_per_node % size == 0
        if fits and pool in pools and curve.kind not in parts and len(parts) < MOST_PARTS:
            parts[curve.kind] = FleetPart(
                name=curve.kind,
                pool=pool,
                n_accelerators_per_replica=size,
                n_load_per_replica=curve.n_load_per_replica,
            )
    return parts


def _used(found: Selection) -> dict[str, int]:
    """Replicas of each kind at the peak."""
    return {
        share.option: round(float(share.n_amount.max()))
        for share in found.shares
        if share.n_amount.max() > 0.5
    }
