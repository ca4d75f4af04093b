"""Why this plan, in: everything that was weighed; out: reasons, alternatives, ranges, charts."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import reduce
from typing import NamedTuple

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.answer import (
    Alternative,
    ChosenPlan,
    Curve,
    Explanation,
    Uncertainty,
    WhyNot,
)
from gpuplan.domain.plan.cost_curve import FleetCurve
from gpuplan.domain.plan.sizing import Sized, Sizing
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.day_replay.replay import latency_curves
from gpuplan.studies.explanation.burst import (
    burst_alternatives,
    burst_of,
)
from gpuplan.studies.explanation.jobs import told_jobs
from gpuplan.studies.explanation.mixed import mixed_alternative
from gpuplan.studies.explanation.naive import naive_choices
from gpuplan.studies.explanation.next_spend import next_spend
from gpuplan.studies.explanation.others import commitment, token_services, trade_offs
from gpuplan.studies.explanation.reasons import (
    batch_reasons,
    burst_reasons,
    growth_reasons,
    prefix_reasons,
    worth_of_limits,
)
from gpuplan.studies.explanation.rivals import Priced, rival_answers
from gpuplan.studies.market.offers import Market
from gpuplan.studies.planning.chosen import Choice, Part, held_in
from gpuplan.studies.planning.curves import (
    all_curves,
    cost_curves,
    cost_usd_per_month,
    load_crossovers,
)
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.studies.uncertainty.robust import robust_alternatives
from gpuplan.studies.uncertainty.run_samples import run_ranges
from gpuplan.studies.uncertainty.samples import Draws, Fleets, assumed, draws_of, whole_uncertainty
from gpuplan.units import HOUR, HOURS_PER_MONTH, MONTH

N_ALTERNATIVES = 8
UNITS = {"requests": "requests/s", "samples": "samples/s", "accelerators": "accelerators"}


class Story(NamedTuple):
    """What there is to tell of."""

    scenario: Scenario
    market: Market
    parts: Sequence[Part]
    chosen: ChosenPlan
    request: PlanRequest
    around: SizingContext


class Told(NamedTuple):
    """What was told."""

    explanation: Explanation
    alternatives: tuple[Alternative, ...]
    uncertainty: Uncertainty | None
    charts: tuple[Curve, ...]
    assumptions: tuple[Assumption, ...]


class Contest(NamedTuple):
    """One workload's fleets, the chosen one first, each with its monthly price."""

    sizing: Sizing
    sized: Sized
    curves: list[FleetCurve]
    usd_per_month: list[float]


def explanation_of(story: Story) -> Told:
    """Reasons for every workload, and ranges where there is one."""
    services = [part for part in story.parts if not part.choice.is_jobs]
    found = [_contest(part, sizing) for part in services for sizing in part.sizings]
    contests = [contest for contest in found if contest is not None]
    runs = [part for part in story.parts if part.choice.is_jobs]
    jobs = [told for part in runs for told in told_jobs(story.scenario, part.choice, part.sizings)]
    draws = _draws(story, contests)
    ranges = _uncertainty(story, contests, draws)
    if ranges is None and runs == list(story.parts):
        ranges = run_ranges(
            story.scenario, [(p.choice, p.sizings) for p in runs], story.request, plan=story.chosen
        )
    others = tuple(_others(story, services, contests))
    options = [(part.choice, o) for part in services for o in part.choice.selection.chosen]
    bursts = [b for b in (burst_of(choice, option) for choice, option in options) if b is not None]
    return Told(
        explanation=reduce(
            joined,
            [*(_reasons(story, c, others) for c in contests),
             *(growth_reasons(story.scenario, c.sizing.demand, c.curves[0]) for c in contests),
             *(worth_of_limits(part.choice) for part in services),
             *(prefix_reasons(story.scenario, story.around, c.sized) for c in contests),
             *(batch_reasons(part.choice) for part in services),
             *(burst_reasons(b) for b in bursts), *(j.reasons for j in jobs)],
            Explanation(),
        ),
        alternatives=(*_robust(contests, draws),
                      *(item for contest in contests for item in _alternatives(contest)),
                      *_mixed(services, contests), *others,
                      *(item for burst in bursts for item in burst_alternatives(burst)),
                      *(item for job in jobs for item in job.alternatives)),
        uncertainty=ranges,
        charts=tuple(curve for contest in contests for curve in _charts(story, contest)),
        assumptions=assumed(is_run=not contests) if ranges is not None else (),
    )  # fmt: skip


def _reasons(story: Story, contest: Contest, others: Sequence[Alternative]) -> Explanation:
    demand = contest.sizing.demand
    return Explanation(
        why=tuple(_why(contest)),
        why_not=tuple(_why_not(story, contest)),
        binding=tuple(_binding(contest)),
        crossovers=load_crossovers(contest.curves, demand, unit=UNITS[demand.unit]),
        next_spend=tuple(next_spend(contest.sized, contest.curves, demand, others=others)),
        naive=tuple(
            naive_choices(
                contest.sizing, contest.sized, contest.curves, chosen_usd=contest.usd_per_month[0]
            )
        ),
    )


def _others(
    story: Story, services: Sequence[Part], contests: Sequence[Contest]
) -> Iterator[Alternative]:
    """Commitments, tokens by the piece, and less energy for more money."""
    for part in services:
        for option in part.choice.selection.chosen:
            yield from commitment(story.market, part.choice, option)
        yield from trade_offs(part.choice)
    for contest in contests:
        usd = contest.usd_per_month[0]
        yield from token_services(story.scenario, contest.sizing.demand, chosen_usd=usd)


def _mixed(services: Sequence[Part], contests: Sequence[Contest]) -> list[Alternative]:
    """A mix of kinds, where one workload stands alone."""
    if len(contests) != 1 or len(services) != 1:
        return []
    contest = contests[0]
    found = mixed_alternative(
        services[0].choice.rows.problem,
        contest.curves,
        contest.sizing.demand,
        chosen_usd=contest.usd_per_month[0],
    )
    return [] if found is None else [found]


def joined(first: Explanation, second: Explanation) -> Explanation:
    """Both, part by part."""
    return Explanation(
        **{part.name: getattr(first, part.name) + getattr(second, part.name)
           for part in fields(Explanation)}
    )  # fmt: skip


def _contest(part: Part, sizing: Sizing) -> Contest | None:
    """All fleets of a workload that could be paid for; None where none has a capacity."""
    choice = part.choice
    option = next((o for o in choice.selection.chosen if o.workload == sizing.workload), None)
    if option is None:
        return None
    sized = choice.rows.row_of(option).sized
    curves = all_curves(choice.rows, sizing.workload)
    mine = [curve for curve in curves if curve.name.startswith(option.name + ", ")]
    if not mine:
        return None
    first = _as_held(choice, option.pool, mine)
    rest = sorted(
        (curve for curve in curves if curve.name != first.name),
        key=lambda curve: (cost_usd_per_month(curve, sizing.demand), curve.name),
    )
    ordered = [first, *rest]
    prices = [cost_usd_per_month(curve, sizing.demand) for curve in ordered]
    return Contest(sizing=sizing, sized=sized, curves=ordered, usd_per_month=prices)


def _as_held(choice: Choice, pool: str, mine: Sequence[FleetCurve]) -> FleetCurve:
    """The chosen fleet as it is paid for: a base that is held all the time, the rest by need."""
    committed, by_need, base_usd = 0, None, 0.0
    for held in held_in(choice, pool):
        rate = choice.rows.rates.get(held.terms)
        n = int(held.n_nodes.max())
        if rate is not None and not rate.is_committed:
            by_need = rate.purchase
            continue
        price = rate.price_usd_per_h.mid if rate else choice.pool(pool).existing_usd_per_node_h
        committed, base_usd = committed + n, base_usd + n * price
    rented = [c for c in mine if not c.is_committed]
    first = next((c for c in rented if c.name.endswith(f", {by_need}")), (rented or mine)[0])
    if not committed:
        return first
    return replace(first, n_base_nodes=committed, base_usd_per_node_h=base_usd / committed)


def fleet_name(curve: FleetCurve, contest: Contest) -> str:
    """How many of what, at today's peak."""
    nodes = int(curve.n_nodes(_peak(contest))[0])
    candidate = curve.candidate
    if str(candidate.accelerator).startswith("cpu"):
        return f"{nodes} x {candidate.offer or candidate.accelerator}"
    return f"{nodes * curve.n_per_node} x {candidate.accelerator} TP{candidate.layout.tp}"


def _peak(contest: Contest) -> Floats:
    return floats([contest.sizing.demand.peak_of(0, 0)])


def _why(contest: Contest) -> Iterator[str]:
    name = contest.sizing.workload
    for remark in contest.sized.remarks:
        yield f"{name}: {remark}"
    if contest.sized.reserve.n_spare:
        yield f"{name}: {contest.sized.reserve.why}"
    yield from _per_token(contest)
    others = _kinds(contest)[1:]
    if others:
        curve, usd = others[0]
        extra = usd - contest.usd_per_month[0]
        share = extra / usd if usd else 0.0
        yield (
            f"{name}: {fleet_name(contest.curves[0], contest)} is the cheapest that does it; next "
            f"comes {fleet_name(curve, contest)} at ${usd:,.0f} a month ({share:.0%} saved)"
        )


def _per_token(contest: Contest) -> Iterator[str]:
    """On paid hours: idle capacity is in the price of every token."""
    demand = contest.sizing.demand
    if demand.unit == "requests" and demand.output_tokens > 0 and contest.usd_per_month[0] > 0:
        rate = demand.peak_of(0, 0) * demand.hours.mean_frac * demand.output_tokens
        usd = contest.usd_per_month[0] / (rate * HOURS_PER_MONTH * HOUR) * 1e6
        yield (
            f"{contest.sizing.workload}: ${usd:,.2f} for a million output tokens at the offered "
            "load, all paid hours counted"
        )


def _kinds(contest: Contest) -> list[tuple[FleetCurve, float]]:
    """The cheapest fleet of each accelerator, the chosen kind first."""
    best: dict[str, tuple[FleetCurve, float]] = {}
    for curve, usd in zip(contest.curves, contest.usd_per_month, strict=True):
        best.setdefault(curve.kind, (curve, usd))
    first, *rest = best.values()
    return [first, *sorted(rest, key=lambda item: item[1])]


def _binding(contest: Contest) -> Iterator[str]:
    limits = contest.sized.limits
    if limits:
        tightest = max(limits, key=lambda kept: kept.bound_s / kept.limit_s)
        share = tightest.bound_s / tightest.limit_s
        yield (
            f"{contest.sizing.workload}: {tightest.metric} {tightest.statistic} binds: "
            f"{share:.0%} of its limit is used"
        )


def _why_not(story: Story, contest: Contest) -> Iterator[WhyNot]:
    """What became of the accelerators that everyone asks about."""
    fleets = {
        curve.kind: Priced(fleet=fleet_name(curve, contest), usd_per_month=usd)
        for curve, usd in _kinds(contest)
    }
    return rival_answers(
        contest.sizing,
        story.market,
        story.around.catalog,
        fleets=fleets,
        chosen=contest.curves[0].kind,
    )


def _alternatives(contest: Contest) -> Iterator[Alternative]:
    chosen_usd = contest.usd_per_month[0]
    for place, (curve, usd) in enumerate(_kinds(contest)[1 : N_ALTERNATIVES + 1]):
        yield Alternative(
            kind="next cheapest" if place == 0 else "another accelerator",
            fleet=fleet_name(curve, contest),
            usd_per_month=usd,
            extra_usd_per_month=usd - chosen_usd,
            power_w=0.0,
            remark=f"{contest.sizing.workload}, {curve.name.rsplit(', ', 1)[1]}",
        )


def _uncertainty(
    story: Story, contests: Sequence[Contest], draws: Draws | None
) -> Uncertainty | None:
    """Ranges of all services together; runs have the range of their own length."""
    if draws is None or len(story.scenario.workloads) > len(contests):
        return None
    total = story.chosen.cost_usd_per_month.value
    is_one = len(contests) == 1
    parts = [
        Fleets(
            demand=contest.sizing.demand,
            curves=[curve for curve, _ in _kinds(contest)],
            names=[fleet_name(curve, contest) for curve, _ in _kinds(contest)],
            base_usd_per_month=total if is_one else contest.usd_per_month[0],
        )
        for contest in contests
    ]
    return whole_uncertainty(parts, draws, base_usd_per_month=total, seed=story.request.seed)


def _draws(story: Story, contests: Sequence[Contest]) -> Draws | None:
    """Samples of what is not known; None where none are asked for."""
    if not contests or story.request.n_samples == 0:
        return None
    return draws_of(
        story.request.n_samples,
        story.request.seed,
        story.scenario.growth.per_month_frac,
        n_months=story.scenario.budget.horizon_s / MONTH,
        kinds=[curve.kind for contest in contests for curve in contest.curves],
    )


def _robust(contests: Sequence[Contest], draws: Draws | None) -> Iterator[Alternative]:
    if draws is not None:
        for contest in contests:
            yield from robust_alternatives(
                contest.curves[0],
                contest.sizing.demand,
                draws,
                chosen_usd=contest.usd_per_month[0],
            )


def _charts(story: Story, contest: Contest) -> tuple[Curve, ...]:
    demand = contest.sizing.demand
    felt = latency_curves(story.scenario, story.around, contest.sizing, sized=contest.sized)
    kinds = [curve for curve, _ in _kinds(contest)]
    return (*felt, *_use_curves(contest), *cost_curves(kinds, demand, unit=UNITS[demand.unit]))


def _use_curves(contest: Contest) -> tuple[Curve, ...]:
    """Share of the paid capacity that is used, hour by hour."""
    sized, demand = contest.sized, contest.sizing.demand
    use = sized.utilization
    if use.peak_frac is None:
        return ()
    hours = demand.hours
    ends = [float(x) for x in hours.hours_per_week.cumsum()]
    x = tuple(value for end, width in zip(ends, hours.hours_per_week, strict=True)
              for value in (end - float(width), end))  # fmt: skip
    full = use.peak_frac * sized.n_serving / sized.n_replicas
    y = tuple(100.0 * full * float(frac) for frac in hours.load_frac for _ in range(2))
    chart = f"How busy the nodes of {contest.sizing.workload} are"
    names = {"x_name": "hours of the week", "y_name": "% of what the pool could do"}
    lines = [Curve(chart=chart, name="load on all replicas", x=x, y=y, **names)]
    if use.safe_frac is not None:
        safe = 100.0 * use.safe_frac
        lines.append(Curve(chart=chart, name="safe", x=(0.0, 168.0), y=(safe, safe), **names))
    return tuple(lines)
