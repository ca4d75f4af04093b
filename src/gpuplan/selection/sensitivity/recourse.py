"""What a plan costs when things turn out otherwise: orders and choices stay, renting adapts."""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.plan.selection import Selection, SelectionProblem
from gpuplan.selection.choose import only
from gpuplan.selection.large.nodes import pool_need, provisioned_nodes, rent_rest, whole_nodes
from gpuplan.selection.program.builder import Builder
from gpuplan.selection.program.layout import layout
from gpuplan.selection.program.measures import total
from gpuplan.selection.program.model import model
from gpuplan.selection.program.solver import Effort, solve
from gpuplan.selection.program.tables import Tables, tables

GAP = 1e-3


def recost(problem: SelectionProblem, plan: Selection) -> Floats:
    """[scenario] worth of the plan in each scenario of a problem; inf where nodes run short.

    The problem has the plan's options, pools and terms under other needs and prices: samples of a
    Monte Carlo run are its scenarios. Orders of the plan that differ by scenario are not taken.
    """
    names = {(option.workload, option.name) for option in plan.chosen}
    options = tuple(o for o in problem.options if (o.workload, o.name) in names)
    chosen = replace(problem, options=options, limits=())
    n_scenarios = problem.horizon.shape[0]
    return floats([_worth_usd(tables(only(chosen, s)), plan) for s in range(n_scenarios)])


def _worth_usd(tab: Tables, plan: Selection) -> float:
    """Cost in the one scenario of the tables, with the plan's orders."""
    if not (tab.problem.deferrable or tab.problem.mixed or tab.problem.geometries):
        usd = _by_hand(tab, plan)
        if usd is not None:
            return usd
    return _by_program(tab, plan)


def _orders(tab: Tables, plan: Selection) -> Floats:
    """[order] nodes that the plan orders."""
    terms = [given.name for given in tab.problem.terms]
    placed = {(o.terms, o.period): float(o.n_nodes) for o in plan.orders if o.scenario is None}
    pairs = zip(tab.orders.terms, tab.orders.period, strict=True)
    return np.array([placed.get((terms[m], int(q)), 0.0) for m, q in pairs])


def _by_hand(tab: Tables, plan: Selection) -> float | None:
    """Closed form: rent what is missing, cheapest first; None where nodes exist already."""
    if any(pool.n_nodes_existing or pool.n_nodes_max is not None for pool in tab.problem.pools):
        return None
    lay = layout(tab, Builder(), integer=False)
    cost = total(tab, lay, "worth", scenario=0)
    orders = _orders(tab, plan)
    nodes = whole_nodes(tab, pool_need(tab, np.arange(len(tab.pool))))
    provisioned = provisioned_nodes(tab, orders, np.zeros((len(tab.problem.pools), *tab.shape[:2])))
    burst = rent_rest(tab, np.maximum(0.0, nodes - provisioned[..., None]))
    if burst is None:
        return float("inf")
    once = cost[lay.choose].sum()
    return float(cost[lay.order] @ orders + (cost[lay.burst] * burst).sum() + once)


def _by_program(tab: Tables, plan: Selection) -> float:
    """The same by a program in which the orders are fixed."""
    built = model(tab)
    lower, upper = built.program.lower.copy(), built.program.upper.copy()
    orders = _orders(tab, plan)
    lower[built.lay.order], upper[built.lay.order] = orders, orders
    fixed = replace(built.program, lower=lower, upper=upper)
    answer = solve(fixed, Effort(gap_frac=GAP))
    return float("inf") if answer is None else answer.objective
