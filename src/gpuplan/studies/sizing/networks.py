"""Fleets for networks that are no language models: batches, their time, and a queue."""

from dataclasses import replace
from typing import NamedTuple

from gpuplan.candidates.prune import rejection
from gpuplan.candidates.slo import wait_ratio
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import LimitMargin, Sized, Sizing
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.errors import CatalogError
from gpuplan.studies.networks.predict import predict_network
from gpuplan.studies.sizing.task import SizingTask, margin_of

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


class _Served(NamedTuple):
    """A batch size with its predicted time and the latencies that it leads to."""

    forecast: NetworkForecast
    margins: tuple[LimitMargin, ...]


def network_sizes(task: SizingTask) -> Sizing:
    """The network on every accelerator, processors included."""
    busy_frac = task.ceiling_frac(task.context.options.max_utilization_frac)
    sized, rejected = task.on_each_accelerator(
        "fp16", lambda candidate, card: _size(task, candidate, card, busy_frac=busy_frac)
    )
    assumed: tuple[Assumption, ...] = ()
    if task.resilience.max_utilization_frac is None:
        why = "batches of such networks are sized by formula, with room for chance"
        change = "policy.max_utilization_frac"
        value = f"{busy_frac:.0%}"
        assumed = (assume("highest utilization", value, why, change),)
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        sized=tuple(sized),
        rejected=rejected,
        assumptions=(*task.policy_assumptions, *task.demand.assumptions, *assumed),
    )


def _size(
    task: SizingTask, candidate: Candidate, card: Accelerator, *, busy_frac: float
) -> Sized | Rejection:
    """The batch that carries most within the SLOs, and as many accelerators as it takes."""
    candidate = replace(candidate, layout=ServingLayout())
    try:
        served = [_served(task, card, batch, busy_frac=busy_frac) for batch in BATCHES]
    except CatalogError as error:
        # The speed of such networks follows the power limit too; some makers publish none.
        first = error.problems[0]
        return rejection(candidate, "software", f"{first.where}: {first.what}", first.fix)
    within = [each for each in served if all(margin.is_kept for margin in each.margins)]
    if not within:
        return _rejected(candidate, served[0])
    best = max(within, key=lambda each: each.forecast.samples_per_s.value)
    rate = best.forecast.samples_per_s
    fleet = task.fleet_in_proportion(
        candidate,
        replace(rate.scaled(busy_frac), sources=()),
        full_per_s=rate.value,
        safe_frac=busy_frac,
        method="analytic",
        band="by formula, not simulated",
    )
    batch = f"batches of {best.forecast.batch} in {best.forecast.batch_s.value * 1e3:.1f} ms"
    return replace(fleet, limits=best.margins, remarks=(batch,))


def _served(task: SizingTask, card: Accelerator, batch: int, *, busy_frac: float) -> _Served:
    assert task.workload.model is not None
    request = NetworkRequest(batch=batch, n_tokens=max(1, round(task.demand.input_tokens)))
    found = predict_network(task.workload.model.name or "", str(card.id), request)
    margins = []
    for limit in task.limits:
        reached = found.batch_s.scaled(1.0 + wait_ratio(busy_frac, limit.statistic))
        margins.append(margin_of(limit, reached, reached.value))
    return _Served(found, tuple(margins))


def _rejected(candidate: Candidate, served: _Served) -> Rejection:
    worst = max(served.margins, key=lambda each: each.bound_s / each.limit_s)
    reason = (
        f"one sample alone with its wait takes {worst.bound_s * 1e3:.0f} ms, "
        f"{worst.metric} {worst.statistic} must be within {worst.limit_s * 1e3:.0f} ms"
    )
    fix = f"set {worst.metric} {worst.statistic} to {worst.bound_s * 1.05e3:.0f} ms"
    metric = worst.metric if worst.metric != "itl" else "tpot"
    found = rejection(candidate, metric, reason, fix)
    return replace(found, gap_ratio=worst.bound_s / worst.limit_s)
