"""A plan as one self-contained page: the answer, what it rests on, why not the others."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gpuplan.domain.plan.answer import Answer, ChosenPlan, Curve
from gpuplan.domain.sheet import Table
from gpuplan.report.formats import peak_kw, span, usd
from gpuplan.report.page import render
from gpuplan.report.page.charts import line_chart, tornado_chart
from gpuplan.report.plan.answer import plan_sheet, utilization_lines, why_lines
from gpuplan.report.plan.explanation import explain_sheet
from gpuplan.report.plan.headline import goals_of, headline

REJECTED = "Rejected"
ELSEWHERE = (REJECTED, "Why this", "What binds", "If demand grows")


class Card(NamedTuple):
    """One figure in large letters."""

    value: str
    what: str
    mark: str = ""  # good or bad


def plan_page(answer: Answer) -> str:
    """The whole page; it asks nothing of the network."""
    tables = plan_sheet(answer).file_tables
    rejected = [table for table in tables if table.title.startswith(REJECTED)]
    return render(
        "plan.html.j2",
        answer=answer,
        made=answer.provenance,
        title=headline(answer),
        cards=list(_cards(answer, answer.plan)) if answer.plan else [],
        why=why_lines(answer),
        answer_tables=_without(tables, (REJECTED, "Figures")),
        charts=list(_charts(answer)),
        utilization=utilization_lines(answer),
        reason_tables=_without(explain_sheet(answer).file_tables, ELSEWHERE),
        load=[line for load in answer.load for line in load.lines],
        closing_tables=[*_assumptions(answer), *rejected],
    )


def _cards(answer: Answer, plan: ChosenPlan) -> Iterator[Card]:
    n, cost = sum(pool.n_accelerators for pool in plan.pools), plan.cost_usd_per_month
    yield Card(usd(cost.value), "per month")
    yield Card(f"{usd(cost.low)} … {usd(cost.high)}", "80 % range of the monthly cost")
    yield Card(usd(plan.total_usd), f"total over {span(plan.span_s)}")
    yield Card(str(n), "accelerators" if n else "accelerators: none is needed")
    if plan.slo.promises:
        yield _slo_card(plan)
    yield Card(peak_kw(plan), "peak power at the plug")
    if answer.proof is not None:
        yield Card(f"{100 * answer.proof.gap_frac:.2f} %", "proven gap to the optimum")
    if answer.uncertainty is not None:
        share = f"{100 * answer.uncertainty.kept_frac:.0f} %"
        yield Card(share, "of samples: the plan is enough as it is")


def _slo_card(plan: ChosenPlan) -> Card:
    """Whether SLOs are met, and how that was tried."""
    tiers = {p.reached_s.tier for p in plan.slo.promises if p.reached_s is not None}
    how = f"{goals_of(plan)}, {'simulated' if tiers == {'simulated'} else 'by estimate'}"
    return Card("met", how, "good") if plan.slo.is_kept else Card("violated", how, "bad")


def _charts(answer: Answer) -> Iterator[tuple[str, str]]:
    groups: dict[str, list[Curve]] = {}
    for curve in answer.charts:
        groups.setdefault(curve.chart, []).append(curve)
    drawn = [(name, line_chart(curves)) for name, curves in groups.items()]
    if answer.uncertainty is not None and answer.plan is not None:
        middle = answer.plan.cost_usd_per_month.value
        drawn.append(("What moves the cost", tornado_chart(answer.uncertainty.tornado, middle)))
    return ((name, svg) for name, svg in drawn if svg)


def _without(tables: Iterable[Table], titles: tuple[str, ...]) -> list[Table]:
    return [table for table in tables if not table.title.startswith(titles)]


def _assumptions(answer: Answer) -> Iterator[Table]:
    rows = tuple((a.what, a.value, a.why, a.change) for a in answer.assumptions)
    if rows:
        columns = ("assumption", "value", "why", "change it with")
        yield Table(title="Assumptions", columns=columns, rows=rows)
