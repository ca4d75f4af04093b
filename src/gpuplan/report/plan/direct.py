"""The first words of an answer: yes or no, how long, at what cost, or which, as was asked."""

from collections.abc import Iterable

from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.plan.comparison import ComparisonRow
from gpuplan.report.formats import accelerator_name, chance, count, span, usd

N_NAMED = 4  # accelerators of a comparison in words
USUAL_ODDS_FRAC = 0.8  # of a plan that is called enough


def lead(answer: Answer, plan: ChosenPlan, cost: str) -> str:
    """The answer to the question that words asked, as a sentence; empty where they asked none."""
    requested = answer.explanation.question
    if requested == "enough":
        return _enough(answer, plan)
    if requested == "duration" and any(row.evidence.run for row in answer.decision.comparison):
        return f"It takes {span(plan.span_s)}. "
    if requested == "speed":
        return _speed(plan)
    if requested == "cost":
        return f"It costs {cost}. "
    return _choice(answer.decision.comparison) if requested == "choice" else ""


def _enough(answer: Answer, plan: ChosenPlan) -> str:
    """Yes within the hardware that was named; no where others are rented or bought beside it."""
    risk = answer.decision.risk
    if risk is not None and risk.level_frac is not None and risk.level_frac < USUAL_ODDS_FRAC:
        return f"Probably it is enough: with {chance(risk.probability_frac)} probability, no more. "
    bought = {line.purchase for pool in plan.pools for line in pool.purchases}
    has_own = bool(answer.provenance.scenario.get("owned"))
    if not has_own or bought <= {"existing"}:
        return "Yes, it is enough. "
    is_beside = "existing" in bought
    return f"No, what you have is not {'enough alone' if is_beside else 'used'}. "


def _speed(plan: ChosenPlan) -> str:
    """Tokens per second of one request, from the time per output token."""
    tokens = (slo for slo in plan.slo.promises if slo.what.startswith("tpot") and slo.reached_s)
    slo = next(tokens, None)
    if slo is None or slo.reached_s is None or not slo.reached_s.value:
        return ""
    rate = 1.0 / slo.reached_s.value
    return f"Each request gets {rate:,.3g} output tokens/s or more (by TPOT {slo.what[5:]}). "


def _choice(rows: Iterable[ComparisonRow]) -> str:
    """The cheapest fleet of each accelerator, the cheapest first."""
    best: dict[str, ComparisonRow] = {}
    for row in sorted(rows, key=lambda row: (not row.evidence.is_eligible, _usd(row))):
        if row.usd_per_month is not None:
            best.setdefault(row.accelerator, row)
    ordered = sorted(best.values(), key=_usd)[:N_NAMED]
    if len(ordered) < 2 or len({row.workload for row in ordered}) > 1:
        return ""
    first, *others = ordered
    rest = ", ".join(f"{accelerator_name(row.accelerator)} {_price(row)}" for row in others)
    return f"{accelerator_name(first.accelerator)} is cheapest: {_price(first)}; {rest}. "


def _usd(row: ComparisonRow) -> float:
    run = row.evidence.run
    return run.total_usd if run else row.usd_per_month or 0.0


def _price(row: ComparisonRow) -> str:
    """What a fleet costs, how many accelerators it has, and how long a run takes."""
    run = row.evidence.run
    length = f" for {span(run.wall_s)}" if run else "/month"
    return f"{usd(_usd(row))}{length} ({count(row.n_accelerators)} of them)"
