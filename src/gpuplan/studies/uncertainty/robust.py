"""Fleets that are still enough when inputs vary, in: samples; out: dearer steps, or more spares.

A plan sits on its SLOs: a little more demand, or a model a little slower than predicted, and it is
too small. How many replicas are enough in eight or nine of ten samples is a matter of counting.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import Alternative
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile, Sized, Sizing
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.ranges import exactly
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import InputError, one
from gpuplan.studies.planning.curves import cost_usd_per_month, log_sd_ratio
from gpuplan.studies.uncertainty.samples import Samples, draw_samples

LEVELS = (0.8, 0.9)
REGRET_FRAC = 0.9  # Assumption: of samples that a plan of least regret is enough for


class ReplicaStep(NamedTuple):
    """So many replicas are enough in this share of the samples."""

    n_replicas: int
    enough_frac: float


def step_for(asked: Floats, n_now: int, level: float) -> ReplicaStep:
    """The fewest replicas, no fewer than now, that are enough in so many samples."""
    needed = np.sort(np.ceil(asked - 1e-9))
    n = max(n_now, int(needed[min(len(needed), ceil(level * len(needed) - 1e-9)) - 1]))
    return ReplicaStep(n, float(np.mean(needed <= n)))


def _asked_replicas(samples: Samples, load: float, per_replica: float, log_sd: float) -> Floats:
    """Replicas that each sample asks for at the peak, not rounded."""
    return floats(samples.demand * load / (per_replica * np.exp(log_sd * samples.speed)))


def robust_alternatives(
    curve: FleetCurve, demand: DemandProfile, samples: Samples, *, chosen_usd: float
) -> Iterator[Alternative]:
    """What it costs to be enough in eight and in nine of ten samples."""
    peak = demand.peak_of(0, 0)
    now = int(curve.n_replicas(floats([peak]))[0])
    if now == 0:
        return
    asked = _asked_replicas(samples, peak, curve.n_load_per_replica, curve.speed_log_sd_ratio)
    enough_frac = float(np.mean(np.ceil(asked - 1e-9) <= now))
    shown = now
    for level in LEVELS:
        step = step_for(asked, now, level)
        if enough_frac >= level or step.n_replicas == shown:
            continue
        shown = step.n_replicas
        carried = max(1, step.n_replicas - curve.n_spare) * curve.n_load_per_replica
        usd = cost_usd_per_month(curve, demand, factor=max(1.0, carried / peak * (1 - 1e-12)))
        yield Alternative(
            kind=f"robust {level:.0%}",
            fleet=f"{step.n_replicas} replicas of {curve.candidate.accelerator} instead of {now}",
            usd_per_month=usd,
            extra_usd_per_month=usd - chosen_usd,
            remark=f"{demand.workload}: enough in {step.enough_frac:.0%} of samples, not "
            f"{enough_frac:.0%}; choose it with --robust {level:g}",
        )


def robust_level(scenario: Scenario, request: PlanRequest) -> float | None:
    """Share of samples to be enough for: as asked; where regret is to be least, most of them."""
    is_regretted = scenario.objective == "regret" and request.n_samples > 0
    return REGRET_FRAC if request.robust_frac is None and is_regretted else request.robust_frac


def robust_notes(scenario: Scenario, request: PlanRequest) -> tuple[Assumption, ...]:
    """That fleets are made robust although nobody asked; none where somebody did."""
    level = robust_level(scenario, request)
    if level is None or request.robust_frac is not None:
        return ()
    why = "the objective is regret: a fleet at its limit is regretted most"
    value = f"every fleet is enough in {level:.0%} of samples"
    return (Assumption(what="robustness", value=value, why=why, change="--robust"),)


def robust_sizings(
    sizings: Sequence[Sizing], scenario: Scenario, request: PlanRequest
) -> list[Sizing]:
    """Every fleet with the spares that are enough in so many samples, so that choosing is fair."""
    level = robust_level(scenario, request)
    if level is None:
        return list(sizings)
    if request.n_samples == 0:
        fix = "leave --samples out, or give some"
        raise one(InputError, "plan", "--robust", "has no samples to be judged by", fix)
    samples = draw_samples(request.n_samples, request.seed, exactly(0.0), n_months=1.0, kinds=())
    return [
        replace(sizing, sized=tuple(_robust(sizing, each, samples, level) for each in sizing.sized))
        for sizing in sizings
    ]


def _robust(sizing: Sizing, sized: Sized, samples: Samples, level: float) -> Sized:
    capacity, peak = sized.capacity_per_s, sizing.demand.peak_of(0, 0)
    if capacity is None or peak <= 0 or sized.n_serving == 0:
        return sized
    asked = _asked_replicas(samples, peak, capacity.value, log_sd_ratio(capacity))
    step = step_for(asked, sized.n_serving, level)
    more = step.n_replicas - sized.n_serving
    why = (
        f"{more} more than the SLOs need make it enough in {step.enough_frac:.0%} of "
        f"{len(samples.demand)} samples"
    )
    return replace(sized, reserve=sized.reserve.with_headroom(more, why)) if more else sized
