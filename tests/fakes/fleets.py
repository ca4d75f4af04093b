"""Small fleets by hand: candidates, curves, demands, sizes and rates whose arithmetic is easy."""

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.money.rates import NodeKind, NodeRate, PriceEvidence, RatePart
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import (
    DemandProfile,
    HourLoads,
    Periods,
    PoolUtilization,
    ReplicaNeed,
    Reserve,
    Sized,
    SizedJob,
    Sizing,
)
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.ranges import exactly


def candidate(kind: str = "a", workload: str = "w", **rest) -> Candidate:
    given = {"precision": "fp8", "layout": ServingLayout(), **rest}
    return Candidate(workload=workload, accelerator=AcceleratorId(kind), **given)


def curve(kind: str, capacity: float, usd: float, **rest) -> FleetCurve:
    """One accelerator in a node, paid by the hour, unless said otherwise."""
    made = {
        "name": kind,
        "candidate": candidate(kind),
        "n_spare": 0,
        "is_committed": False,
        "n_per_node": 1,
    }
    return FleetCurve(n_load_per_replica=capacity, usd_per_node_h=usd, **{**made, **rest})


def demand(peak: float, fracs=(1.0,), hours=(168.0,), **rest) -> DemandProfile:
    """Requests a second at the peak; one period, unless periods are given."""
    periods = Periods(
        scenarios=("mid",),
        start_s=floats([0.0]),
        length_s=floats([1.0]),
        load_ratio=floats([[1.0]]),
    )
    given = {"input_tokens": 1.0, "output_tokens": 1.0, "periods": periods, **rest}
    return DemandProfile(
        workload="w",
        unit="requests",
        peak_requests_per_s=peak,
        lines=(),
        hours=HourLoads(load_frac=floats(fracs), hours_per_week=floats(hours)),
        **given,
    )


def estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(value=value, low=low or value, high=high or value, tier="simulated")


def reserve(n_spare: int = 0, why: str = "a spare") -> Reserve:
    return Reserve(
        n_spare=n_spare,
        domain="node" if n_spare else "none",
        n_failures=min(1, n_spare),
        why=why,
        upgrade="",
    )


def sized(n: int, *, kind: str = "a", n_spare: int = 0, peak_frac=None, **rest) -> Sized:
    """So many replicas in the one hour there is."""
    given = {"candidate": candidate(kind), "need": ReplicaNeed(n_replicas=ints([[[n]]])), **rest}
    return Sized(
        method="given",
        reserve=reserve(n_spare),
        utilization=PoolUtilization(peak_frac=peak_frac, safe_frac=None, band=""),
        capacity_per_s=given.pop("capacity_per_s", None),
        **given,
    )


def sizing(peak: float = 10.0, **rest) -> Sizing:
    return Sizing(workload="w", demand=demand(peak), **rest)


def rejection(kind: str, constraint: str, *, gap=None, relaxation="more", **rest) -> Rejection:
    return Rejection(
        candidate=candidate(kind, **rest),
        constraint=constraint,
        reason=f"{kind} fails by {constraint}",
        relaxation=relaxation,
        gap_ratio=gap,
    )


def job(kind: str = "a", *, n: int = 8, wall_s: float = 86_400.0, **rest) -> SizedJob:
    """A run on so many accelerators for so long, known exactly."""
    given = {
        "n_slow_end": None,
        "goodput": None,
        "power_w": None,
        "wall_s": estimate(wall_s),
        "accelerator_s": estimate(n * wall_s),
        **rest,
    }
    return SizedJob(
        candidate=candidate(kind, "run"),
        method="analytic",
        n_accelerators=n,
        n_accelerators_per_node=8,
        flop=1e21,
        **given,
    )


def rate(kind: str, usd: float, *, purchase="on_demand", n: int = 1, **rest) -> NodeRate:
    """A node of so many accelerators at a price by the hour."""
    price = exactly(usd)
    given = {"evidence": PriceEvidence(source="user"), **rest}
    return NodeRate(
        id=f"{kind}/{purchase}/{n}",
        node=NodeKind(name=f"{kind}-node", accelerator=kind, n_accelerators=n),
        purchase=purchase,
        price_usd_per_h=price,
        parts=(RatePart(name="rent", usd_per_h=price),),
        **given,
    )
