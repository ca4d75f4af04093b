"""Fleets that are still enough when inputs vary, in: samples; out: dearer steps, or more spares.

A plan sits on its promises: a little more demand, or a model a little slower than predicted, and it
is too small. How many replicas are enough in eight or nine of ten samples is a matter of counting.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, log
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import Alternative
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile, Sized, Sizing
from gpuplan.domain.ranges import exactly
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError, one
from gpuplan.studies.planning.curves import Z_80, cost_usd_per_month
from gpuplan.studies.uncertainty.samples import Draws, draws_of

LEVELS = (0.8, 0.9)


class Step(NamedTuple):
    """So many replicas, spares included, are enough in this share of the samples."""

    n_replicas: int
    kept_frac: float


def step_for(asked: Floats, n_now: int, level: float) -> Step:
    """The fewest replicas, no fewer than now, that are enough in so many samples."""
    needed = np.sort(np.ceil(asked - 1e-9))
    n = max(n_now, int(needed[min(len(needed), ceil(level * len(needed) - 1e-9)) - 1]))
    return Step(n, float(np.mean(needed <= n)))


def asked_replicas(draws: Draws, *, load: float, per_replica: float, log_sd_ratio: float) -> Floats:
    """Replicas that each sample asks for at the peak, not rounded."""
    speed = np.exp(log_sd_ratio * draws.speed)
    return floats(draws.demand * load / (per_replica * speed))


def robust_alternatives(
    curve: FleetCurve, demand: DemandProfile, draws: Draws, *, chosen_usd: float
) -> Iterator[Alternative]:
    """What it costs to be enough in eight and in nine of ten samples."""
    peak = demand.peak_of(0, 0)
    now = int(curve.n_replicas(floats([peak]))[0])
    if now == 0:
        return
    asked = asked_replicas(
        draws, load=peak, per_replica=curve.n_load_per_replica,
        log_sd_ratio=curve.speed_log_sd_ratio,
    )  # fmt: skip
    is_enough_frac = float(np.mean(np.ceil(asked - 1e-9) <= now))
    told = now
    for level in LEVELS:
        step = step_for(asked, now, level)
        if is_enough_frac >= level or step.n_replicas == told:
            continue
        told = step.n_replicas
        carried = max(1, step.n_replicas - curve.n_spare) * curve.n_load_per_replica
        usd = cost_usd_per_month(curve, demand, factor=max(1.0, carried / peak * (1 - 1e-12)))
        yield Alternative(
            kind=f"robust {level:.0%}",
            fleet=f"{step.n_replicas} replicas of {curve.candidate.accelerator} instead of {now}",
            usd_per_month=usd,
            extra_usd_per_month=usd - chosen_usd,
            power_w=0.0,
            remark=f"{demand.workload}: enough in {step.kept_frac:.0%} of samples, not "
            f"{is_enough_frac:.0%}; choose it with --robust {level:g}",
        )


def robust_sizings(sizings: Sequence[Sizing], request: PlanRequest) -> list[Sizing]:
    """Every fleet with the spares that are enough in so many samples, so that choosing is fair."""
    level = request.robust_frac
    if level is None:
        return list(sizings)
    if request.n_samples == 0:
        fix = "leave --samples out, or give some"
        raise one(InputError, "plan", "--robust", "has no samples to be judged by", fix)
    draws = draws_of(request.n_samples, request.seed, exactly(0.0), n_months=1.0, kinds=())
    return [
        replace(sizing, sized=tuple(_robust(sizing, each, draws, level=level)
                                    for each in sizing.sized))
        for sizing in sizings
    ]  # fmt: skip


def _robust(sizing: Sizing, sized: Sized, draws: Draws, *, level: float) -> Sized:
    capacity, peak = sized.capacity_per_s, sizing.demand.peak_of(0, 0)
    if capacity is None or peak <= 0 or sized.n_serving == 0:
        return sized
    spread = log(capacity.high / capacity.low) / (2 * Z_80) if capacity.low > 0 else 0.0
    asked = asked_replicas(draws, load=peak, per_replica=capacity.value, log_sd_ratio=spread)
    step = step_for(asked, sized.n_serving, level)
    why = (
        f"{step.n_replicas - sized.n_serving} more than the promises ask for make it enough in "
        f"{step.kept_frac:.0%} of {len(draws.demand)} samples"
    )
    more = step.n_replicas - sized.n_serving
    return replace(sized, reserve=sized.reserve.with_headroom(more, why)) if more else sized
