"""Reasons beyond the comparison of fleets: limits, the prefix cache, deferrable work."""

from gpuplan.domain.plan.answer import Crossover, Explanation
from gpuplan.domain.plan.sizing import Sized
from gpuplan.domain.scenario.workload import Serving
from gpuplan.selection.sensitivity.limit_prices import limit_prices
from gpuplan.studies.planning.chosen import Choice, batch_shares
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.prefix import prefix_sensitivity
from gpuplan.units import HOUR


def batch_reasons(choice: Choice) -> Explanation:
    """Where deferrable work runs, and on how many accelerators."""
    hours = choice.table.problem.horizon.period_s / HOUR
    lines = [
        f"{share.workload}: is deferrable, so it runs in idle hours of {share.pool}: "
        f"{float(share.n_amount[0].mean()) / hours:,.2f} accelerators on average"
        for share in batch_shares(choice)
    ]
    return Explanation(why=tuple(lines))


def limit_reasons(choice: Choice) -> Explanation:
    """What one per cent more of each limit that binds would save."""
    problem = choice.table.problem
    if not problem.limits:
        return Explanation()
    lines = [
        f"{price.limit} is binding: {price.step_frac:.0%} more of it saves "
        f"${price.saved_usd / choice.n_months:,.0f}/month"
        for price in limit_prices(problem, choice.selection)
        if price.saved_usd > 0
    ]
    return Explanation(binding=tuple(lines))


def prefix_reasons(inputs: PlanInputs, sized: Sized) -> Explanation:
    """What the prefix cache hit rate decides, where the user counts on it."""
    workload = inputs.scenario.workload(sized.candidate.workload)
    work = workload.work if workload else None
    if workload is None or not isinstance(work, Serving) or sized.method != "simulated":
        return Explanation()
    if work.request.prefix_hit_frac.mid == 0:
        return Explanation()
    points = prefix_sensitivity(workload, inputs.scenario, inputs.around, sized.candidate)
    rows = (
        Crossover(
            what=f"prefix cache hit rate of {workload.name}",
            at=f"{point.hit_frac:.0%} of prompt tokens",
            then=f"{point.prefill_tokens_per_s:,.0f} tokens/s left to prefill; "
            f"{point.cache_tokens / 1e6:,.1f} M tokens of KV cache all the same; "
            + (
                f"{point.n_replicas} replicas"
                if point.n_replicas
                else "no number of replicas meets the SLOs"
            ),
        )
        for point in points
    )
    return Explanation(crossovers=tuple(rows))
