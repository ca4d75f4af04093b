"""What simpler reasoning would have bought."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from gpuplan.domain.plan.answer import WhyNot
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.studies.planning.curves import cost_usd_per_month


def naive_choices(
    sizing: Sizing, sized: Sized, curves: Sequence[FleetCurve], *, chosen_usd: float
) -> Iterator[WhyNot]:
    """Rate over capacity, and the dearest accelerator: what they cost, and what they break."""
    yield from _by_throughput(sizing, sized, curves[0])
    dearest = max(curves, key=lambda curve: curve.usd_per_node_h / max(1, curve.n_per_node))
    usd = min(
        cost_usd_per_month(curve, sizing.demand)
        for curve in curves
        if curve.candidate.accelerator == dearest.candidate.accelerator
    )
    if dearest.candidate.accelerator != curves[0].candidate.accelerator:
        yield WhyNot(
            question="buy the priciest accelerator",
            fleet=str(dearest.candidate.accelerator),
            answer="does the same work; the difference buys nothing that was asked for",
            extra_usd_per_month=usd - chosen_usd,
        )


def _by_throughput(sizing: Sizing, sized: Sized, curve: FleetCurve) -> Iterator[WhyNot]:
    share = sized.utilization.peak_frac
    if share is None:
        return
    n = max(1, ceil(share * sized.n_serving - 1e-9))
    bare = replace(curve, n_load_per_replica=sizing.demand.peak_of(0, 0) / n, n_spare=0)
    extra = cost_usd_per_month(bare, sizing.demand) - cost_usd_per_month(curve, sizing.demand)
    load = share * sized.n_serving / n
    if n < sized.n_serving:
        answer = f"runs at {load:.0%} of what it could ever do: the promises break"
    elif n < sized.n_replicas:
        answer = f"keeps the promises while nothing fails; {sized.reserve.why}"
    else:
        answer = "is enough here: promises and failures ask for no more"
    yield WhyNot(
        question="load over throughput, rounded up",
        fleet=f"{n} replica{'s' if n > 1 else ''} instead of {sized.n_replicas}",
        answer=answer,
        extra_usd_per_month=extra,
    )
