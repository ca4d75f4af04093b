"""Reasons beyond the comparison of fleets: limits, the prefix cache, deferrable work."""

from collections.abc import Iterator

from gpuplan.domain.plan.answer import Crossover, Explanation
from gpuplan.domain.plan.sizing import Sized
from gpuplan.domain.scenario.workload import Serving
from gpuplan.selection.sensitivity.limit_prices import limit_prices
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.sizing.prefix import prefix_sensitivity


def window_reasons(choice: Choice) -> Explanation:
    """In which hours deferrable work runs, and beside whom."""
    return Explanation(why=tuple(_window_lines(choice)))


def _window_lines(choice: Choice) -> Iterator[str]:
    for option in choice.selection.chosen:
        row = choice.table.row_of(option)
        if not row.is_window:
            continue
        hosts = [o.workload for o in choice.selection.chosen if o.pool == option.pool]
        beside = ", ".join(name for name in hosts if name != option.workload)
        where = f" on the nodes of {beside}" if beside else ""
        yield f"{option.workload}: {row.sized.remarks[-1]}{where}"


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
