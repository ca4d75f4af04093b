"""The bill of a choice as people pay it: each sum with its cause, its time and its workload."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuplan.cost.bill import cents_by_cause
from gpuplan.cost.statement import evidence_text, shares_of
from gpuplan.domain.plan.bill import CashLine, PeriodCost, PlanBill, PlanCostLine, PlannedOrder
from gpuplan.domain.plan.selection import BillKind, BillLine, FleetOption
from gpuplan.studies.planning.chosen import Choice
from gpuplan.units import HOUR

AT_ONCE: tuple[BillKind, ...] = ("upfront", "once", "residual")


def plan_bill(choice: Choice) -> PlanBill:
    """The whole bill of a choice; every total in it is a sum of the selection's own cents."""
    return PlanBill(
        cost_lines=_cost_lines(choice),
        once_usd=_usd(b for b in choice.bill if b.kind in ("upfront", "once")),
        total_usd=choice.usd,
        span_s=choice.span_s,
        present_value_usd=sum(line.worth_cents for line in choice.bill) / 100.0,
        cash_flow=tuple(_cash_flow(choice)),
        by_period=tuple(_periods(choice)),
        orders=tuple(sorted(_orders(choice), key=lambda order: order.service_s)),
    )


def _orders(choice: Choice) -> Iterator[PlannedOrder]:
    """Nodes that are committed to, each order with the day by which it has to be placed."""
    problem, period_s = choice.table.problem, choice.table.problem.horizon.period_s
    terms = {each.name: each for each in problem.terms}
    for order in choice.selection.orders:
        given, rate = terms[order.terms], choice.table.rates.get(order.terms)
        if order.scenario not in (None, 0):
            continue
        lead_s = choice.table.leads.get(order.terms, 0.0)
        service_s = max(lead_s, (order.period + given.n_lead_periods) * period_s)
        yield PlannedOrder(
            name=rate.node.name if rate else order.pool,
            purchase=given.purchase,
            n_nodes=order.n_nodes,
            n_accelerators=order.n_nodes * choice.pool(order.pool).n_accelerators_per_node,
            order_s=service_s - lead_s,
            service_s=service_s,
            usd=order.n_nodes * given.upfront_usd,
        )


def _usd(lines: Iterator[BillLine]) -> float:
    return sum(line.nominal_cents for line in lines) / 100.0


def _cost_lines(choice: Choice) -> tuple[PlanCostLine, ...]:
    """The bill by cause, in the money of its day, spread over the months of the span."""
    causes = cents_by_cause(choice.bill, choice.table.rates)
    return tuple(
        PlanCostLine(what=what, usd_per_month=cents / 100.0 / choice.n_months)
        for what, cents in causes.items()
        if cents
    )


def _cash_flow(choice: Choice) -> Iterator[CashLine]:
    """Every line of the selection's bill by cause and by workload, at its time."""
    for line in choice.bill:
        start_s, span_s = _time(choice, line)
        rate = choice.table.rates.get(line.terms)
        for workload, cents in _by_workload(choice, line).items():
            mine = replace(line, nominal_cents=cents, worth_cents=0)
            part = cents_by_cause([mine], choice.table.rates)
            for what, found in part.items():
                if found:
                    yield CashLine(
                        what=what,
                        workload=workload,
                        name=rate.node.name if rate else line.pool or "site",
                        source=evidence_text(rate) if rate else "",
                        start_s=start_s,
                        span_s=span_s,
                        usd=found / 100.0,
                    )


def _time(choice: Choice, line: BillLine) -> tuple[float, float]:
    """When a line is paid: outlays as a period begins, the residual at the end, others evenly."""
    period_s = choice.table.problem.horizon.period_s
    if line.kind == "residual":
        return choice.span_s, 0.0
    if line.kind in AT_ONCE:
        return line.period * period_s, 0.0
    return line.period * period_s, min(period_s, choice.span_s)


def _by_workload(choice: Choice, line: BillLine) -> dict[str, int]:
    """The cents of a line by the workloads of its pool, in the ratio of their use."""
    if line.kind == "once":
        return {_owner(choice, line): line.nominal_cents}
    hours = _hours(choice, line.pool, line.period)
    if not sum(hours.values()):
        hours = dict.fromkeys(hours, 1.0)
    split = shares_of(line.nominal_cents, list(hours.values()))
    return dict(zip(hours, split, strict=True))


def _owner(choice: Choice, line: BillLine) -> str:
    mine = [o for o in choice.selection.chosen if (o.name, o.pool) == (line.terms, line.pool)]
    return mine[0].workload if mine else ""


def _hours(choice: Choice, pool: str, period: int) -> dict[str, float]:
    """Accelerator-hours that each workload of a pool needs in a period; slices by their size."""
    hour_h = choice.table.problem.horizon.hour_s / HOUR
    found: dict[str, float] = {}
    for option in choice.selection.chosen:
        if pool in (option.pool, ""):  # a site is for all
            need = float((option.need[0, period] * hour_h).sum()) * _size(choice, option)
            found[option.workload] = found.get(option.workload, 0.0) + need
    return found or {"": 1.0}


def _size(choice: Choice, option: FleetOption) -> float:
    """Accelerators that one unit of the option's need takes."""
    if not option.slice_kind:
        return 1.0
    share = choice.table.row_of(option).sized.candidate.share
    return 1.0 / share.n_per_accelerator if share else 1.0


def _periods(choice: Choice) -> Iterator[PeriodCost]:
    """Fleet and month of each period; their mean is the month of the whole plan."""
    horizon = choice.table.problem.horizon
    spread = _usd(b for b in choice.bill if b.kind in AT_ONCE) / choice.n_months
    n_months = choice.n_months / horizon.shape[1]
    for period in range(horizon.shape[1]):
        running = (b for b in choice.bill if b.period == period and b.kind not in AT_ONCE)
        yield PeriodCost(
            start_s=period * horizon.period_s,
            span_s=min(horizon.period_s, choice.span_s),
            n_accelerators=_n_accelerators(choice, period),
            usd_per_month=_usd(running) / n_months + spread,
        )


def _n_accelerators(choice: Choice, period: int) -> int:
    provisioned = [
        h.n_nodes[0, period] * choice.pool(h.pool).n_accelerators_per_node
        for h in choice.selection.provisioned
        if not choice.pool(h.pool).accelerator.startswith("cpu")
    ]
    return int(np.sum(provisioned, axis=0).max(initial=0)) if provisioned else 0
