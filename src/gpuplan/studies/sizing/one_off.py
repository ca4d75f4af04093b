"""One-off jobs, in: fleets that would carry a rate; out: fleets that finish an amount in time.

A job is paid for its own hours, so more replicas end sooner at the same price: there are enough of
them to meet the deadline at the slow end of the prediction, and whole nodes are filled.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from typing import NamedTuple

from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.sizing import PriceOf, Sized, SizedJob, Sizing
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.sizing.task import SizingTask
from gpuplan.units import HOUR

N_FILLED = 8  # accelerators more than needed, up to which a node may be filled
TIE = 1e-9


class Amount(NamedTuple):
    """Documents or samples, and the time that there is for them."""

    n: float
    deadline_s: float


def as_jobs(task: SizingTask, sizing: Sizing) -> Sizing:
    """The sizing with every fleet as a job that ends."""
    amount = Amount(task.workload.amount or 0.0, task.workload.deadline_s or 0.0)
    price, most = task.context.price, task.scenario.policy.n_accelerators_max
    jobs = (_job(sized, amount, price, n_most=most) for sized in sizing.sized)
    return replace(sizing, sized=(), jobs=tuple(job for job in jobs if job is not None))


def _job(sized: Sized, amount: Amount, price: PriceOf, *, n_most: int | None) -> SizedJob | None:
    capacity, candidate = sized.capacity_per_s, sized.candidate
    if capacity is None or capacity.low <= 0:
        return None
    n = _n_replicas(candidate, amount, capacity, price, n_most=n_most)
    n_accelerators, power = candidate.n_accelerators_for(n), sized.power_w
    wall = capacity.rate(amount.n / n)
    return SizedJob(
        candidate=candidate,
        method=sized.method,
        n_accelerators=n_accelerators,
        n_accelerators_per_node=candidate.n_accelerators,
        n_slow_end=candidate.n_accelerators_for(_fewest(amount, capacity.low)),
        flop=0.0,
        accelerator_s=wall.scaled(n_accelerators),
        wall_s=wall,
        goodput=None,
        power_w=power and power.scaled(n),
        remarks=(*sized.remarks, *_count_lines(amount, capacity, n)),
    )


def _fewest(amount: Amount, per_s: float) -> int:
    """Replicas that end in time, where one does so much per second."""
    return max(1, ceil(amount.n / amount.deadline_s / per_s - TIE))


def _n_replicas(
    candidate: Candidate, amount: Amount, capacity: Estimate, price: PriceOf, *, n_most: int | None
) -> int:
    """The cheapest number for the whole job that is in time; at equal cost the fewest."""
    fewest, safe = _fewest(amount, capacity.value), _fewest(amount, capacity.low)

    def is_allowed(n: int) -> bool:
        return n_most is None or candidate.n_accelerators_for(n) <= n_most

    step = candidate.share.n_per_accelerator if candidate.share else 1
    filled = range(ceil(safe / step) * step, safe + step * N_FILLED, step)
    found = [n for n in filled if is_allowed(n)]
    if not found:
        return max((n for n in range(fewest, safe) if is_allowed(n)), default=fewest)

    def usd(n: int) -> float:
        return (price(candidate, n) or float(candidate.n_accelerators_for(n))) / n

    least = min(usd(n) for n in found)
    return next(n for n in found if usd(n) <= least * (1 + TIE))


def _count_lines(amount: Amount, capacity: Estimate, n: int) -> Iterator[str]:
    fewest, safe = _fewest(amount, capacity.value), _fewest(amount, capacity.low)
    hours = amount.n / n / capacity.value / HOUR
    yield f"{amount.n:,.0f} / ({n} x {capacity.value:.4g}/s) = {hours:,.3g} hours"
    if fewest < safe <= n:
        yield (
            f"{safe} replicas meet the deadline even at the slow end of the prediction; {fewest} "
            "would at the predicted throughput, for longer and at the same price"
        )
    if n > safe:
        yield f"{n} replicas rather than {safe} fill whole nodes, so the job ends sooner"
