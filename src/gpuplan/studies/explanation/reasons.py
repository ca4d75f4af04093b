"""Reasons beyond the contest of fleets: growth, limits, the prefix cache, owning and renting."""

from gpuplan.domain.plan.answer import Crossover, Explanation
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import DemandProfile, Sized
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving
from gpuplan.selection.sensitivity.limit_prices import limit_prices
from gpuplan.studies.explanation.burst import Burst, burst_crossovers, burst_lines
from gpuplan.studies.explanation.growth import growth_counts, growth_lines, growth_rows
from gpuplan.studies.planning.chosen import Choice, batch_shares
from gpuplan.studies.sizing.prefix import prefix_sensitivity
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.units import HOUR


def growth_reasons(scenario: Scenario, demand: DemandProfile, curve: FleetCurve) -> Explanation:
    """When to order, and how many there will be, for every growth that was given."""
    return Explanation(
        why=tuple(growth_lines(scenario, demand)),
        crossovers=growth_rows(scenario, demand),
        growth=growth_counts(scenario, demand, curve),
    )


def burst_reasons(burst: Burst) -> Explanation:
    """How much to own and when to rent."""
    return Explanation(why=tuple(burst_lines(burst)), crossovers=tuple(burst_crossovers(burst)))


def batch_reasons(choice: Choice) -> Explanation:
    """Where work that may wait is done."""
    hours = choice.rows.problem.horizon.period_s / HOUR
    lines = [
        f"{share.workload}: may wait, so it fills the valleys of {share.pool}: "
        f"{float(share.n_amount[0].mean()) / hours:,.2f} accelerators on average"
        for share in batch_shares(choice)
    ]
    return Explanation(why=tuple(lines))


def worth_of_limits(choice: Choice) -> Explanation:
    """What one per cent more of each limit that binds would save."""
    problem = choice.rows.problem
    if not problem.limits:
        return Explanation()
    lines = [
        f"{price.limit} binds: {price.step_frac:.0%} more of it saves "
        f"${price.saved_usd / choice.n_months:,.0f} a month"
        for price in limit_prices(problem, choice.selection)
        if price.saved_usd > 0
    ]
    return Explanation(binding=tuple(lines))


def prefix_reasons(scenario: Scenario, around: SizingContext, sized: Sized) -> Explanation:
    """What the prefix cache decides, where the user counts on it."""
    workload = scenario.workload(sized.candidate.workload)
    work = workload.work if workload else None
    if workload is None or not isinstance(work, Serving) or sized.method != "simulated":
        return Explanation()
    if work.request.prefix_hit_frac.mid == 0:
        return Explanation()
    points = prefix_sensitivity(workload, scenario, around, sized.candidate)
    return Explanation(
        crossovers=tuple(
            Crossover(
                what=f"prefix hits of {workload.name}",
                at=f"{point.hit_frac:.0%} of prompt tokens",
                then=f"{point.prefill_tokens_per_s:,.0f} tokens/s still to read; "
                f"{point.cache_tokens / 1e6:,.1f} M tokens in memory all the same; "
                + (f"{point.n_replicas} replicas" if point.n_replicas else "no number keeps it"),
            )
            for point in points
        )
    )
