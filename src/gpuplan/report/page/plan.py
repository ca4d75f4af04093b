"""A plan as one self-contained page.

The first screen is for who decides: a sentence, the cost with its range and driver, a picture,
three risks, what to do next. The rest follows, each section under the question that it answers.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from gpuplan.domain.plan.answer import Answer, ChosenPlan, Curve
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.sheet import Table
from gpuplan.report.formats import chance, count, peak_kw, span, usd
from gpuplan.report.page import render
from gpuplan.report.page.charts import (
    COST,
    Bar,
    Gauge,
    bars_chart,
    cost_title,
    gauges_chart,
    is_flat,
    line_chart,
    range_strip,
    tornado_chart,
)
from gpuplan.report.plan.answer import certificate_lines, plan_sheet, utilization_lines, why_lines
from gpuplan.report.plan.comparison import (
    cheapest_first,
    explain_sheet,
    risk_basis,
    risk_lines,
    row_fleet,
)
from gpuplan.report.plan.headline import (
    fleet_of,
    goals_of,
    headline,
    is_growing,
    purchase_words,
)
from gpuplan.report.plan.summary import cost_driver, energy_words, next_steps, per_month, risks
from gpuplan.units import MONTH

N_BARS = 6
N_FEW = 4  # bars and gauges that leave room for a chart on the first screen
OTHERS, FULL = "What other fleets would cost", "How full the fleet is"
GROWN = "Monthly cost as load grows"
LATENCY, USE = "Latency of", "Utilization of"
# In reading order: the question, how the titles of its tables begin, and those of its charts.
SECTIONS = (
    ("What else was weighed?", ("Comparison", "Plan and alternatives", "Why not"), ("What it",)),
    ("Are the targets met, and how surely?", ("SLOs and limits", "Simulated hour"), (LATENCY,)),
    (
        "What does it cost, and what moves that?",
        ("Cost:", "Sensitivity", "If prices move", "Crossover"),
        (COST, "What moves"),
    ),
    ("How high is its utilization?", ("Pools",), (USE, "How full")),
    ("What if demand grows?", ("If demand grows", "Growth"), (GROWN,)),
)
REJECTED = ("Rejected",)
TOLD = ("Figures", "Why this plan", "What binds")  # on the first screen and in lists


class Fact(NamedTuple):
    """One line of the decision."""

    what: str
    value: str
    mark: str = ""  # good or bad


class Section(NamedTuple):
    """A question, and what answers it."""

    question: str
    lines: tuple[str, ...]
    charts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def plan_page(answer: Answer) -> str:
    """The whole page; it asks nothing of the network."""
    plan = answer.plan
    return render(
        "plan.html.j2",
        answer=answer,
        made=answer.provenance,
        title=headline(answer),
        cost=_cost(plan) if plan else "",
        per="for the whole run" if plan and plan.span_s < MONTH else "per month",
        strip=_strip(plan) if plan else "",
        driver=cost_driver(answer),
        facts=list(_facts(answer, plan)) if plan else [],
        pictures=list(_pictures(answer)),
        risks=risks(answer),
        steps=next_steps(answer),
        sections=list(_sections(answer)),
    )


def _cost(plan: ChosenPlan) -> str:
    return usd(plan.total_usd if plan.span_s < MONTH else plan.cost_usd_per_month.value)


def _strip(plan: ChosenPlan) -> str:
    cost = plan.cost_usd_per_month
    ratio = plan.total_usd / cost.value if plan.span_s < MONTH and cost.value else 1.0
    return range_strip(ratio * cost.low, ratio * cost.value, ratio * cost.high)


def _facts(answer: Answer, plan: ChosenPlan) -> Iterator[Fact]:
    yield Fact("Fleet", fleet_of(plan, answer.load))
    lines = [line for pool in plan.pools for line in pool.purchases]
    bought = " + ".join(dict.fromkeys(purchase_words(line) for line in lines))
    if bought:
        yield Fact("Purchase", bought)
    if plan.slo.promises:
        yield _slo_fact(answer, plan)
    if plan.span_s >= MONTH:
        yield Fact(f"Total over {span(plan.span_s)}", usd(plan.total_usd))
    yield Fact("Peak power at the plug", peak_kw(plan))
    name = "Energy" if plan.carbon_kg_per_month is None else "Energy and carbon"
    yield Fact(name, energy_words(plan))
    if answer.proof is not None:
        yield Fact("Proven gap to the optimum", f"{100 * answer.proof.gap_frac:.2f} %")


def _slo_fact(answer: Answer, plan: ChosenPlan) -> Fact:
    """Whether SLOs are met, how that was tried, and how surely."""
    tiers = {p.reached_s.tier for p in plan.slo.promises if p.reached_s is not None}
    how = "simulated" if tiers == {"simulated"} else "by estimate"
    goals = goals_of(plan)
    what = f"{goals[:1].upper()}{goals[1:]}, {how}"
    if not plan.slo.is_kept:
        return Fact(what, "violated", "bad")
    odds = answer.uncertainty
    sure = f"met with {chance(odds.kept_frac)} probability" if odds else "met"
    return Fact(what, sure, "good")


def _pictures(answer: Answer) -> Iterator[tuple[str, str]]:
    """Of the first screen: fleets beside each other and how full this one is, else a chart."""
    bars = list(_bars(answer))
    drawn = bars_chart(bars, "Cost of the best fleet of each kind")
    gauges = list(_gauges(answer.plan)) if answer.plan else []
    if drawn:
        yield OTHERS, drawn
    if gauges and len(bars) + len(gauges) <= N_BARS:
        yield FULL, gauges_chart(gauges, "Utilization against what is safe")
    if len(bars) + len(gauges) <= N_FEW:  # room for one more: latency or cost against load
        own = (chart for chart in charts_of(answer) if chart[0] != FULL)
        yield from islice(own, 1)


def _bars(answer: Answer) -> Iterator[Bar]:
    for row in cheapest_first(answer.decision.comparison, N_BARS):
        odds, run = row.probability_frac, row.evidence.run
        cost = run.total_usd if run else row.usd_per_month or 0.0
        note = "" if odds is None else f" · {chance(odds)} sure"
        yield Bar(row_fleet(row), cost, note, row.is_chosen)


def _sections(answer: Answer) -> Iterator[Section]:
    tables = [*plan_sheet(answer).file_tables, *explain_sheet(answer).file_tables]
    left = list(
        {table.title: table for table in tables if not table.title.startswith(TOLD)}.values()
    )
    charts = list(charts_of(answer))
    lines = _lines(answer)
    for question, titles, drawn in SECTIONS:
        mine = tuple(table for table in left if table.title.startswith(titles))
        shown = tuple(chart for chart in charts if chart[0].startswith(drawn or ("\0",)))
        left = [table for table in left if table not in mine]
        charts = [chart for chart in charts if chart not in shown]
        if mine or shown or lines.get(question):
            yield Section(question, lines.get(question, ()), shown, mine)
    others = tuple(table for table in left if not table.title.startswith(REJECTED))
    if others or charts:
        yield Section("What else does the plan say?", (), tuple(charts), others)
    load = tuple(f"{load.workload}: {line}" for load in answer.load for line in load.lines)
    made = tuple(_assumptions(answer))
    yield Section("What does it rest on?", (*load, *certificate_lines(answer)), (), made)
    rejected = tuple(table for table in left if table.title.startswith(REJECTED))
    if rejected:
        yield Section("What was rejected, and what would admit it?", (), (), rejected)


def _lines(answer: Answer) -> dict[str, tuple[str, ...]]:
    why = answer.explanation
    questions = [section[0] for section in SECTIONS]
    return {
        questions[0]: why_lines(answer),
        questions[1]: (*risk_lines(answer), *risk_basis(answer)),
        questions[2]: tuple(f"The next $10,000: {line}" for line in why.next_spend),
        questions[3]: utilization_lines(answer),
    }


def charts_of(answer: Answer) -> Iterator[tuple[str, str]]:
    """Every chart with something to see in it, under its title."""
    groups: dict[str, list[Curve]] = {}
    for curve in (*_growth(answer.plan), *answer.charts):
        groups.setdefault(curve.chart, []).append(curve)
    for name, curves in groups.items():
        svg = "" if is_flat(curves) else line_chart(curves, planned=_planned(answer, curves[0]))
        if svg:
            yield name, svg
    gauges = list(_gauges(answer.plan)) if answer.plan else []
    if gauges:
        yield FULL, gauges_chart(gauges, "Utilization against what is safe")
    if answer.uncertainty is not None and answer.plan is not None:
        middle = answer.plan.cost_usd_per_month.value
        svg = tornado_chart(answer.uncertainty.tornado, middle, per=per_month(answer))
        if svg:
            yield "What moves the cost", svg


def _growth(plan: ChosenPlan | None) -> Iterator[Curve]:
    """The month's cost over the horizon, period by period, where the fleet grows."""
    if plan is None or not is_growing(plan):
        return
    ends = [(p, at) for p in plan.bill.by_period for at in (p.start_s, p.start_s + p.span_s)]
    last = plan.bill.by_period[-1].n_accelerators
    yield Curve(
        chart=GROWN,
        name=f"{count(last)} accelerators",
        x_name="months from now",
        y_name="USD/month",
        x=tuple(at / MONTH for _, at in ends),
        y=tuple(period.usd_per_month for period, _ in ends),
    )


def _planned(answer: Answer, curve: Curve) -> float | None:
    """The load that the plan is for, on a chart of cost over requests; None on other charts."""
    peaks = {cost_title(load.workload): load.peak_requests_per_s for load in answer.load}
    return peaks.get(curve.chart)


def _gauges(plan: ChosenPlan) -> Iterator[Gauge]:
    for pool in merged(plan.pools):
        use = pool.use
        if use.peak_frac is not None and use.mean_frac is not None:
            yield Gauge(pool.workload, use.mean_frac, use.peak_frac, use.safe_frac)


def _assumptions(answer: Answer) -> Iterable[Table]:
    rows = tuple((a.what, a.value, a.why, a.change) for a in answer.assumptions)
    if rows:
        columns = ("assumption", "value", "why", "change it with")
        yield Table(title="Assumptions", columns=columns, rows=rows)
