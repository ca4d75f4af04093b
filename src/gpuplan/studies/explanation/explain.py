"""Why this plan, in: everything that was weighed; out: reasons, alternatives, ranges, charts."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import reduce
from math import prod

from gpuplan.domain.plan.answer import (
    Alternative,
    Answer,
    ChosenPlan,
    Curve,
    Explanation,
    Uncertainty,
)
from gpuplan.domain.plan.comparison import ComparisonRow, Decision
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.day_replay.replay import latency_curves
from gpuplan.studies.explanation.alternatives import (
    limit_reasons,
    mixed_fleet,
    other_purchase,
    prefix_reasons,
    shown_offers,
    spot_prices,
    token_services,
    trade_offs,
    window_reasons,
)
from gpuplan.studies.explanation.burst import (
    burst_alternatives,
    burst_pool,
    burst_reasons,
    next_spend,
)
from gpuplan.studies.explanation.comparison import (
    FleetComparison,
    comparison_of,
    row_name,
    row_usd,
)
from gpuplan.studies.explanation.growth import calendar_of, growth_reasons, order_reasons
from gpuplan.studies.explanation.network import network_needs
from gpuplan.studies.explanation.risk import ServiceRisk, plan_risk
from gpuplan.studies.explanation.rivals import (
    naive_choices,
    purchase_answers,
    quality_lines,
    rival_answers,
    trade_rows,
)
from gpuplan.studies.explanation.rows import PricedRow, compared_rows, pareto_rows
from gpuplan.studies.explanation.runs import run_alternatives, run_reasons, run_rows
from gpuplan.studies.explanation.storage import storage_needs
from gpuplan.studies.planning.bill import plan_bill
from gpuplan.studies.planning.chosen import chosen_plan
from gpuplan.studies.planning.curves import load_crossovers
from gpuplan.studies.planning.deferrable import is_deferrable
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.runs import compared_runs
from gpuplan.studies.uncertainty.run_samples import run_uncertainty_of
from gpuplan.studies.uncertainty.samples import (
    ComparedFleets,
    Samples,
    cost_curves,
    draw_samples,
    sampling_notes,
    whole_uncertainty,
    with_runs_beside,
)
from gpuplan.units import HOURS_PER_WEEK, MONTH

N_ALTERNATIVES = 8


def explained(answer: Answer, inputs: PlanInputs, groups: Sequence[SolvedGroup]) -> Answer:
    """The answer with the reasons for its plan, the alternatives, the ranges and the charts."""
    if answer.plan is None:
        return answer
    services = [group for group in groups if not group.choice.is_jobs]
    rows = [(g, s, compared_rows(inputs, g, s)) for g in services for s in g.sizings]
    found = [comparison_of(g, s, [each.row for each in mine]) for g, s, mine in rows]
    fleets = [each for each in found if each is not None]
    decision = _odds_of_whole_plan(answer.plan, decision_of(inputs, rows))
    runs = tuple(run_rows(inputs, groups))
    odds = _odds(decision, runs)
    ranges = _with_odds(_ranges(inputs, answer.plan, groups, fleets), odds)
    notes = sampling_notes(is_run=not fleets) if ranges is not None else ()
    plan = answer.plan
    if ranges is not None:
        plan = replace(plan, cost_usd_per_month=ranges.cost_usd_per_month)
    whole = replace(
        decision,
        comparison=(*decision.comparison, *runs),
        calendar=calendar_of(groups),
        quality=quality_lines(plan),
        storage=tuple(storage_needs(inputs, plan)),
        network=tuple(network_needs(inputs, plan, services)),
    )
    answer = replace(answer, plan=plan, uncertainty=ranges, decision=whole)
    if inputs.request.basis.is_brief:
        return answer
    others = [*_other_ways(inputs, services, fleets)]
    return replace(
        answer,
        explanation=reduce(joined, _reasons(inputs, groups, fleets, others), Explanation()),
        alternatives=tuple(
            _of_whole_plan(plan, each) if len(inputs.scenario.workloads) > 1 else each
            for each in _alternatives(groups, fleets, others, rows=decision.comparison)
        ),
        charts=tuple(
            curve
            for each in fleets
            for curve in _charts(inputs, each, _base_usd(plan, fleets, each))
        ),
        assumptions=(*answer.assumptions, *notes),
    )


def _with_odds(ranges: Uncertainty | None, odds: float | None) -> Uncertainty | None:
    """The ranges with the probability that stands in the comparison, where one does."""
    return ranges if ranges is None or odds is None else replace(ranges, kept_frac=odds)


def _odds(decision: Decision, runs: Sequence[ComparisonRow]) -> float | None:
    """The probability that services meet their SLOs and all runs fit and end in time."""
    parts = [decision.risk.probability_frac if decision.risk else None]
    parts += [row.probability_frac for row in runs if row.is_chosen]
    known = [part for part in parts if part is not None]
    return prod(known) if known else None


def _ranges(
    inputs: PlanInputs,
    plan: ChosenPlan,
    groups: Sequence[SolvedGroup],
    fleets: Sequence[FleetComparison],
) -> Uncertainty | None:
    """Ranges of the services' cost with the runs beside them, or of a run that stands alone."""
    runs = [group.choice for group in groups if group.choice.is_jobs]
    if len(runs) == len(groups):
        return run_uncertainty_of(inputs, groups, plan=plan)
    n_runs = sum(len(choice.selection.chosen) for choice in runs)
    samples = _samples(inputs, fleets)
    if samples is None or len(inputs.scenario.workloads) > len(fleets) + n_runs:
        return None
    beside = sum(choice.usd_per_month for choice in runs)
    total = plan.cost_usd_per_month.value - beside
    compared = [_compared(each, total if len(fleets) == 1 else each.chosen_usd) for each in fleets]
    seed = inputs.request.seed
    found = whole_uncertainty(compared, samples, base_usd_per_month=total, seed=seed)
    return with_runs_beside(found, _runs_cost(plan, groups)) if runs else found


def _runs_cost(plan: ChosenPlan, groups: Sequence[SolvedGroup]) -> Estimate:
    """What the runs beside services cost, with the range of their length."""
    served = [group.choice for group in groups if not group.choice.is_jobs]
    priced = [chosen_plan(each, plan_bill(each)).cost_usd_per_month for each in served]
    whole = plan.cost_usd_per_month
    return replace(
        whole,
        value=whole.value - sum(each.value for each in priced),
        low=whole.low - sum(each.low for each in priced),
        high=whole.high - sum(each.high for each in priced),
    )


def decision_of(
    inputs: PlanInputs, rows: Sequence[tuple[SolvedGroup, Sizing, list[PricedRow]]]
) -> Decision:
    """The comparison of every service, its front and its odds."""
    flat = [each for *_, mine in rows for each in mine]
    risks = [
        ServiceRisk(inputs, group, sizing, mine)
        for group, sizing, mine in rows
        if mine or is_deferrable(inputs.scenario, sizing)
    ]
    return Decision(
        comparison=tuple(each.row for each in flat),
        pareto=pareto_rows(flat),
        risk=plan_risk(inputs, risks),
        trade=tuple(
            row
            for _, sizing, mine in rows
            for row in trade_rows(mine, sizing.demand, inputs.catalog)
        ),
    )


def _odds_of_whole_plan(plan: ChosenPlan, decision: Decision) -> Decision:
    """Fleets of other odds at the price of the whole plan with them."""
    if decision.risk is None:
        return decision
    usd = plan.cost_usd_per_month.value
    fleets = tuple(
        each
        if each.extra_usd_per_month is None
        else replace(each, usd_per_month=usd + each.extra_usd_per_month)
        for each in decision.risk.fleets
    )
    return replace(decision, risk=replace(decision.risk, fleets=fleets))


def _of_whole_plan(plan: ChosenPlan, other: Alternative) -> Alternative:
    """The alternative of one workload at the price of the whole plan with it."""
    usd = plan.cost_usd_per_month.value + other.extra_usd_per_month
    return replace(other, usd_per_month=usd)


def joined(first: Explanation, second: Explanation) -> Explanation:
    """Both explanations, one after the other in every field."""
    names = [field.name for field in fields(Explanation)]
    return Explanation(**{name: getattr(first, name) + getattr(second, name) for name in names})


def _reasons(
    inputs: PlanInputs,
    groups: Sequence[SolvedGroup],
    fleets: Sequence[FleetComparison],
    others: Sequence[Alternative],
) -> Iterator[Explanation]:
    """Reasons in the order in which they are read."""
    choices = [group.choice for group in groups if not group.choice.is_jobs]
    options = [(choice, option) for choice in choices for option in choice.selection.chosen]
    for each in fleets:
        yield _fleet_reasons(inputs, each, others)
    for each in fleets:
        yield order_reasons(inputs.scenario, each.demand)
    yield from (growth_reasons(inputs, group) for group in groups if not group.choice.is_jobs)
    yield from (limit_reasons(choice) for choice in choices)
    yield from (prefix_reasons(inputs, each.sized) for each in fleets)
    yield from (window_reasons(choice) for choice in choices)
    for choice, option in options:
        pool = burst_pool(choice, option)
        if pool is not None:
            yield burst_reasons(pool)
    for group in groups:
        for compared in compared_runs(group.choice, group.sizings) if group.choice.is_jobs else ():
            yield run_reasons(inputs.scenario, compared)


def _fleet_reasons(
    inputs: PlanInputs, each: FleetComparison, others: Sequence[Alternative]
) -> Explanation:
    return Explanation(
        why=tuple(_why(each)),
        why_not=(
            *rival_answers(each, inputs.market, inputs.catalog),
            *purchase_answers(each, inputs.market),
        ),
        binding=tuple(_binding(each)),
        crossovers=load_crossovers(each.curves, each.demand, unit=each.unit),
        next_spend=tuple(next_spend(each.sized, each.curves, each.demand, others=others)),
        naive=tuple(naive_choices(each)),
    )


def _why(each: FleetComparison) -> Iterator[str]:
    name = each.sizing.workload
    for remark in each.sized.remarks:
        yield f"{name}: {remark}"
    if each.sized.reserve.n_spare:
        yield f"{name}: {each.sized.reserve.why}"
    yield from _usd_per_token(each)
    if each.row is not None and each.rivals:
        after = each.rivals[0]
        share = 1.0 - each.chosen_usd / row_usd(after)
        yield (
            f"{name}: {row_name(each.row)} is the cheapest fleet that may be chosen; the next is "
            f"{row_name(after)} at ${row_usd(after):,.0f}/month ({share:.0%} saved)"
        )


def _usd_per_token(each: FleetComparison) -> Iterator[str]:
    """On paid hours: idle capacity is in the price of every token."""
    if each.row is not None and each.row.usd_per_million_tokens:
        yield (
            f"{each.demand.workload}: ${each.row.usd_per_million_tokens:,.2f} per million output "
            "tokens at the offered load, idle paid hours included"
        )


def _binding(each: FleetComparison) -> Iterator[str]:
    if each.sized.limits:
        tightest = max(each.sized.limits, key=lambda slo: slo.bound_s / slo.limit_s)
        share = tightest.bound_s / tightest.limit_s
        yield (
            f"{each.sizing.workload}: {tightest.metric} {tightest.statistic} is the binding SLO: "
            f"{share:.0%} of its limit is used"
        )


def _alternatives(
    groups: Sequence[SolvedGroup],
    fleets: Sequence[FleetComparison],
    others: Sequence[Alternative],
    *,
    rows: Sequence[ComparisonRow],
) -> Iterator[Alternative]:
    """Alternatives in the order in which they are shown."""
    for name in dict.fromkeys(row.workload for row in rows):
        yield from _other_rows([row for row in rows if row.workload == name])
    services = [group.choice for group in groups if not group.choice.is_jobs]
    if len(fleets) == len(services) == 1:
        yield from mixed_fleet(services[0].table.problem, fleets[0])
    yield from others
    for choice in services:
        for option in choice.selection.chosen:
            if burst_pool(choice, option) is not None:
                yield from burst_alternatives(choice, option)
    for group in groups:
        for compared in compared_runs(group.choice, group.sizings) if group.choice.is_jobs else ():
            yield from run_alternatives(compared)


def _other_rows(rows: Sequence[ComparisonRow]) -> Iterator[Alternative]:
    """Rows of the comparison beside the chosen one, the cheapest of each accelerator first."""
    chosen = next((row.usd_per_month for row in rows if row.is_chosen), None)
    others = [row for row in rows if not row.is_chosen and row.usd_per_month is not None]
    shown = sorted(others, key=lambda row: (not row.evidence.is_eligible, row_usd(row)))
    for place, row in enumerate(shown[:N_ALTERNATIVES]):
        usd = row_usd(row)
        is_next = place == 0 and row.evidence.is_eligible
        yield Alternative(
            kind="next cheapest" if is_next else _kind(row),
            fleet=row_name(row),
            usd_per_month=usd,
            extra_usd_per_month=usd - (chosen or 0.0),
            power_w=row.evidence.power_w or 0.0,
            remark=f"{row.workload}: {row.evidence.note or row.evidence.price_source}",
        )


def _kind(row: ComparisonRow) -> str:
    if row.evidence.is_eligible:
        return "another accelerator"
    return "lower precision" if "narrower" in row.evidence.note else "not measured"


def _other_ways(
    inputs: PlanInputs, services: Sequence[SolvedGroup], fleets: Sequence[FleetComparison]
) -> Iterator[Alternative]:
    """Committed-use discounts, tokens from an API, and less energy for more money."""
    for group in services:
        for option in group.choice.selection.chosen:
            yield from shown_offers(inputs.market, group, option)
        yield from other_purchase(group.choice)
        yield from trade_offs(group.choice)
    for each in fleets:
        yield from token_services(inputs.scenario, each.demand, chosen_usd=each.chosen_usd)
        yield from spot_prices(inputs.market, each.sizing, chosen_usd=each.chosen_usd)


def _samples(inputs: PlanInputs, fleets: Sequence[FleetComparison]) -> Samples | None:
    """Samples of the uncertain inputs; None where none are asked for."""
    if not fleets or inputs.request.n_samples == 0:
        return None
    return draw_samples(
        inputs.request.n_samples,
        inputs.request.seed,
        inputs.scenario.growth.per_month_frac,
        n_months=inputs.scenario.budget.horizon_s / MONTH,
        kinds=[curve.kind for each in fleets for curve in each.curves],
    )


def _compared(each: FleetComparison, usd_per_month: float) -> ComparedFleets:
    """The fleets of one service at their bills."""
    return ComparedFleets(
        demand=each.demand,
        curves=[curve for curve, _ in each.kinds],
        names=[each.fleet_name(curve) for curve, _ in each.kinds],
        base_usd_per_month=usd_per_month,
        billed=each.billed.own(usd_per_month),
        levels_usd=[each.billed_usd(curve, usd) for curve, usd in each.kinds],
    )


def _base_usd(plan: ChosenPlan, fleets: Sequence[FleetComparison], each: FleetComparison) -> float:
    """USD a month of one service, as billed."""
    return plan.cost_usd_per_month.value if len(fleets) == 1 else each.chosen_usd


def _charts(inputs: PlanInputs, each: FleetComparison, usd_per_month: float) -> Iterator[Curve]:
    yield from latency_curves(inputs, each.sizing, sized=each.sized)
    yield from _utilization_curves(each)
    yield from cost_curves(_compared(each, usd_per_month), unit=each.unit)


def _utilization_curves(each: FleetComparison) -> Iterator[Curve]:
    """Utilization of the paid capacity, hour by hour."""
    sized, hours, found = each.sized, each.demand.hours, each.sized.utilization
    if found.peak_frac is None:
        return
    ends = hours.hours_per_week.cumsum()
    steps = zip(ends - hours.hours_per_week, ends, strict=True)
    x = [float(edge) for step in steps for edge in step]
    full = found.peak_frac * sized.n_serving / sized.n_replicas
    y = [100.0 * full * float(frac) for frac in hours.load_frac for _ in range(2)]
    chart = f"Utilization of the nodes of {each.sizing.workload}"
    axes = {"x_name": "hours of the week", "y_name": "utilization, % of the pool's capacity"}
    yield Curve(chart=chart, name="load on all replicas", x=tuple(x), y=tuple(y), **axes)
    if found.safe_frac is not None:
        safe = 100.0 * found.safe_frac
        ends_x, ends_y = (0.0, HOURS_PER_WEEK), (safe, safe)
        yield Curve(chart=chart, name="highest within SLO", x=ends_x, y=ends_y, **axes)
