"""The bill of a choice, from its whole numbers alone: what the solver believed plays no part."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gpuplan.domain.plan.selection import (
    BillKind,
    BillLine,
    FleetOption,
    NodeTerms,
    Order,
    ProvisionedNodes,
    SelectionProblem,
)
from gpuplan.units import HOUR


@dataclass(frozen=True, slots=True)
class Sum:
    """One line before it is rounded to cents."""

    kind: BillKind
    pool: str
    terms: str
    period: int
    scenario: int | None
    nominal_usd: float
    worth_usd: float


def bill(
    problem: SelectionProblem,
    *,
    chosen: Sequence[FleetOption],
    orders: Sequence[Order],
    provisioned: Sequence[ProvisionedNodes],
) -> tuple[BillLine, ...]:
    """Every line in cents; the lines add up to the rounded total, not to the total of roundings."""
    sums = list(_sums(problem, chosen=chosen, orders=orders, provisioned=provisioned))
    sums = [line for line in sums if line.nominal_usd]
    nominal = running_cents([line.nominal_usd for line in sums])
    worth = running_cents([line.worth_usd for line in sums])
    return tuple(
        BillLine(
            kind=line.kind,
            pool=line.pool,
            terms=line.terms,
            period=line.period,
            scenario=line.scenario,
            nominal_cents=nominal_cents,
            worth_cents=worth_cents,
        )
        for line, nominal_cents, worth_cents in zip(sums, nominal, worth, strict=True)
    )


def running_cents(usd: Sequence[float]) -> list[int]:
    """Whole cents whose running sum is the rounded running sum of the dollars."""
    total = np.round(np.cumsum(np.asarray(usd, dtype=float)) * 100.0).astype(np.int64)
    return [int(step) for step in np.diff(total, prepend=0)]


def _sums(
    problem: SelectionProblem,
    *,
    chosen: Sequence[FleetOption],
    orders: Sequence[Order],
    provisioned: Sequence[ProvisionedNodes],
) -> Iterable[Sum]:
    terms = {given.name: given for given in problem.terms}
    for option in chosen:
        worth = option.once_usd * float(problem.horizon.upfront_discount_frac[0])
        yield Sum("once", option.pool, option.name, 0, None, option.once_usd, worth)
    for order in orders:
        yield from _order_sums(problem, order, terms=terms[order.terms])
    for nodes in provisioned:
        if nodes.terms == "existing" or not terms[nodes.terms].is_committed:
            yield from _hourly_sums(problem, nodes, terms=terms.get(nodes.terms))


def _order_sums(problem: SelectionProblem, order: Order, *, terms: NodeTerms) -> Iterable[Sum]:
    horizon, n_periods = problem.horizon, problem.horizon.shape[1]
    first = order.period + terms.n_lead_periods
    last = min(n_periods, first + (terms.n_term_periods or n_periods))
    for scenario, ratio, weight in _price_cases(problem, order, terms=terms):
        usd = ratio * terms.upfront_usd * order.n_nodes
        discount = weight * float(horizon.upfront_discount_frac[order.period])
        yield _sum("upfront", order, period=order.period, scenario=scenario, usd=(usd, discount))
        usd = ratio * terms.usd_per_node_h * order.n_nodes * horizon.period_s / HOUR
        for q in range(first, last):
            discount = weight * float(horizon.running_discount_frac[q])
            yield _sum("committed", order, period=q, scenario=scenario, usd=(usd, discount))
    if terms.residual_usd is not None:
        probability = 1.0 if order.scenario is None else _probability(problem, order.scenario)
        usd = -float(terms.residual_usd[last - first]) * order.n_nodes
        discount = probability * horizon.end_discount_frac
        yield _sum(
            "residual", order, period=n_periods - 1, scenario=order.scenario, usd=(usd, discount)
        )


def _sum(
    kind: BillKind, order: Order, *, period: int, scenario: int | None, usd: tuple[float, float]
) -> Sum:
    nominal, discount = usd
    return Sum(kind, order.pool, order.terms, period, scenario, nominal, nominal * discount)


def _probability(problem: SelectionProblem, scenario: int) -> float:
    return float(problem.horizon.probability_frac[scenario])


def _price_cases(
    problem: SelectionProblem, order: Order, *, terms: NodeTerms
) -> list[tuple[int | None, float, float]]:
    """Scenario, price ratio and probability for each price that the order may have."""
    n_scenarios = problem.horizon.shape[0]
    scenarios = range(n_scenarios) if order.scenario is None else [order.scenario]
    if terms.price_ratio is None:
        weight = sum(_probability(problem, s) for s in scenarios)
        return [(order.scenario, 1.0, weight)]
    return [
        (s, float(terms.price_ratio[s, order.period]), _probability(problem, s)) for s in scenarios
    ]


def _hourly_sums(
    problem: SelectionProblem, nodes: ProvisionedNodes, *, terms: NodeTerms | None
) -> Iterable[Sum]:
    horizon = problem.horizon
    n_scenarios, n_periods, _ = horizon.shape
    pool = problem.pool(nodes.pool)
    price = pool.existing_usd_per_node_h if terms is None else terms.usd_per_node_h
    kind: BillKind = "existing" if terms is None else "burst"
    kind = "spot" if nodes.purchase == "spot" else kind
    node_h = (nodes.n_nodes * (horizon.hour_s / HOUR)).sum(axis=2)
    for s in range(n_scenarios):
        for q in range(n_periods):
            ratio = terms.price_ratio[s, q] if terms and terms.price_ratio is not None else 1.0
            usd = float(price * ratio * node_h[s, q])
            discount = _probability(problem, s) * float(horizon.running_discount_frac[q])
            scenario = s if n_scenarios > 1 else None
            yield Sum(kind, nodes.pool, nodes.terms, q, scenario, usd, usd * discount)
