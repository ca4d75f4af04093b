"""The statement of a plan: its own bill, sum by sum, in the months in which each is paid."""

from collections.abc import Iterator
from math import ceil
from typing import get_args

from gpuplan.cost.defaults import purchase_of
from gpuplan.cost.statement import cents, shares_of
from gpuplan.domain.money.statement import CAPITAL, CostCategory, CostLine, Statement
from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.plan.bill import CashLine
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.errors import InputError, one
from gpuplan.units import MONTH

CATEGORIES: dict[str, CostCategory] = {name: name for name in get_args(CostCategory)}
CATEGORIES["on-demand nodes"] = "rent"  # of runs, in files of format 1.0
AT_ONCE: tuple[str, ...] = (*CAPITAL, "porting")


def statement_of_plan(answer: Answer, plan: ChosenPlan, scenario: Scenario) -> Statement:
    """The plan's bill by month: outlays when they are made, the residual at the end."""
    n_months = max(1, ceil(plan.span_s / MONTH * (1 - 1e-9)))
    flows: dict[tuple[CostCategory, str, str], list[int]] = {}
    for line in cash_flow_of(plan):
        key = _category(answer, line), line.name, line.source
        known = flows.setdefault(key, [0] * (n_months + 1))
        flows[key] = [a + b for a, b in zip(known, by_month(line, n_months), strict=True)]
    return Statement(
        name=answer.name,
        n_months=n_months,
        lines=tuple(_line(plan, *key, flow=tuple(flow)) for key, flow in flows.items()),
        discount_frac_per_year=scenario.budget.discount_frac_per_year,
        assumptions=tuple(_notes(plan, scenario)),
    )


def cash_flow_of(plan: ChosenPlan) -> tuple[CashLine, ...]:
    """The sums of the plan; of a file that dates none: outlays today, residual at the end."""
    if plan.bill.cash_flow:
        return plan.bill.cash_flow
    n_months = max(1.0, plan.span_s / MONTH)
    bought = [p.offer for pool in plan.pools for p in pool.purchases]
    workload = plan.pools[0].workload if len(plan.pools) == 1 else ""
    return tuple(
        CashLine(
            what=line.what,
            workload=workload,
            name=bought[0] if len(bought) == 1 else "plan",
            source="",
            start_s=plan.span_s if line.what == "residual" else 0.0,
            span_s=0.0 if line.what in AT_ONCE else plan.span_s,
            usd=line.usd_per_month * n_months,
        )
        for line in plan.cost_lines
    )


def span_of(plan: ChosenPlan, workload: str) -> float:
    """The time that monthly figures of this work stand for; a run of days has its one month."""
    ends = [x.start_s + x.span_s for x in plan.bill.cash_flow if x.workload == workload]
    return max(MONTH, max(ends, default=plan.span_s))


def by_month(line: CashLine, n_months: int) -> tuple[int, ...]:
    """The cents of a sum in each month; month 0 is today, running costs fall at a month's end."""
    start, length = line.start_s / MONTH, line.span_s / MONTH
    if not length:
        paid = min(n_months, ceil(start * (1 - 1e-9)))
        return tuple(cents(line.usd) if month == paid else 0 for month in range(n_months + 1))
    weights = [
        max(0.0, min(month + 1.0, start + length) - max(month, start)) for month in range(n_months)
    ]
    return (0, *shares_of(cents(line.usd), weights))


def _category(answer: Answer, line: CashLine) -> CostCategory:
    if line.what not in CATEGORIES:
        what = f"{line.what!r} is not a known cost category"
        raise one(InputError, answer.name, "plan.cash_flow", what, "make the plan again")
    return CATEGORIES[line.what]


def _line(
    plan: ChosenPlan, category: CostCategory, name: str, source: str, *, flow: tuple[int, ...]
) -> CostLine:
    cost = plan.cost_usd_per_month
    low, high = (end / cost.value if cost.value else 1.0 for end in (cost.low, cost.high))
    return CostLine(
        category=category,
        name=name,
        cents=flow,
        low_cents=tuple(round(value * low) for value in flow),
        high_cents=tuple(round(value * high) for value in flow),
        source=source,
    )


def _notes(plan: ChosenPlan, scenario: Scenario) -> Iterator[Assumption]:
    value, why = "that of the plan's whole bill, on every line", "a plan file holds one range"
    yield assume("ranges of the statement", value, why, "prices.offers")
    if not plan.bill.cash_flow:
        value = "outlays today, the residual at the end, the rest evenly"
        why = "this plan file says of no sum when it is paid"
        yield assume("costs by month", value, why, "make the plan again")
    if any(line.what == "hardware" for line in plan.bill.cash_flow):
        yield from purchase_of(exactly(1.0), scenario.prices.extras)[1]
