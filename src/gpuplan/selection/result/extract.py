"""Values of the columns in, a choice in nouns out: counts made whole, the bill recomputed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.plan.selection import (
    FleetOption,
    NodeTerms,
    Order,
    Proof,
    ProvisionedNodes,
    Selection,
    SelectionProblem,
    Share,
)
from gpuplan.errors import InvariantError, Problem
from gpuplan.selection.program.layout import Layout
from gpuplan.selection.program.tables import Tables
from gpuplan.selection.result.bill import bill
from gpuplan.selection.result.verify import breaches


def selection(tab: Tables, lay: Layout, values: Floats, *, proof: Proof) -> Selection:
    """The choice that the values stand for; InvariantError where it breaks a rule."""
    found = draft(tab, lay, values, proof=proof)
    check(tab.problem, found)
    return found


def draft(tab: Tables, lay: Layout, values: Floats, *, proof: Proof) -> Selection:
    """The choice that the values stand for, not yet held against the rules."""
    chosen = chosen_options(tab, values[lay.choose])
    orders = _orders(tab, np.rint(values[lay.order]))
    provisioned = (*_committed(tab, orders), *_flexible(tab, lay, values))
    return Selection(
        chosen=chosen,
        orders=orders,
        provisioned=provisioned,
        shares=(*_batch_shares(tab, lay, values), *_replicas(tab, lay, values)),
        sliced=_sliced(tab, lay, values),
        bill=bill(tab.problem, chosen=chosen, orders=orders, provisioned=provisioned),
        proof=proof,
    )


def check(problem: SelectionProblem, found: Selection) -> None:
    """Raise where the choice breaks a rule: our fault, never the user's."""
    broken = breaches(problem, found)
    if broken:
        fix = "report this as a fault"
        raise InvariantError("selection", [Problem("plan", text, fix) for text in broken])


def chosen_options(tab: Tables, choose: Floats) -> tuple[FleetOption, ...]:
    """The option of each workload, in the order of the workloads."""
    picked = np.flatnonzero(choose > 0.5)
    order = np.argsort(tab.workload[picked], kind="stable")
    return tuple(tab.problem.options[i] for i in picked[order])


def _orders(tab: Tables, n_nodes: Floats) -> tuple[Order, ...]:
    problem, orders = tab.problem, tab.orders
    return tuple(
        Order(
            terms=problem.terms[orders.terms[i]].name,
            pool=problem.pools[orders.pool[i]].name,
            period=int(orders.period[i]),
            n_nodes=int(n_nodes[i]),
            scenario=None if orders.scenario[i] < 0 else int(orders.scenario[i]),
        )
        for i in np.flatnonzero(n_nodes)
    )


def _committed(tab: Tables, orders: Sequence[Order]) -> list[ProvisionedNodes]:
    shape = tab.problem.horizon.shape
    provisioned = []
    for terms in tab.problem.terms:
        mine = [order for order in orders if order.terms == terms.name]
        nodes = np.zeros(shape, dtype=np.int64)
        for order in mine:
            first = order.period + terms.n_lead_periods
            last = first + (terms.n_term_periods or shape[1])
            where = slice(None) if order.scenario is None else order.scenario
            nodes[where, first:last] += order.n_nodes
        if mine:
            provisioned.append(_provisioned(terms, nodes))
    return provisioned


def _provisioned(terms: NodeTerms, nodes: Any) -> ProvisionedNodes:
    return ProvisionedNodes(
        terms=terms.name, pool=terms.pool, purchase=terms.purchase, n_nodes=ints(nodes)
    )


def _flexible(tab: Tables, lay: Layout, values: Floats) -> list[ProvisionedNodes]:
    problem, provisioned = tab.problem, []
    for columns, terms in ((lay.burst, tab.burst), (lay.spot, tab.spot)):
        for row, m in enumerate(terms.index):
            nodes = np.rint(values[columns[row]])
            if nodes.any():
                provisioned.append(_provisioned(problem.terms[m], nodes))
    for row, a in enumerate(lay.existing_pool):
        nodes = np.rint(values[lay.existing[row]])
        if nodes.any():
            stretched = np.broadcast_to(nodes[..., None], problem.horizon.shape)
            name = problem.pools[a].name
            provisioned.append(
                ProvisionedNodes(
                    terms="existing", pool=name, purchase="owned", n_nodes=ints(stretched)
                )
            )
    return provisioned


def _batch_shares(tab: Tables, lay: Layout, values: Floats) -> list[Share]:
    options = [(work, option) for work in tab.problem.deferrable for option in work.options]
    return [
        Share(
            workload=work.workload,
            option=option.name,
            pool=option.pool,
            n_amount=floats(np.maximum(0.0, values[lay.share[row]])),
        )
        for row, (work, option) in enumerate(options)
    ]


def _replicas(tab: Tables, lay: Layout, values: Floats) -> list[Share]:
    parts = [(fleet, part) for fleet in tab.problem.mixed for part in fleet.parts]
    return [
        Share(
            workload=fleet.workload,
            option=part.name,
            pool=part.pool,
            n_amount=floats(np.rint(values[lay.mixed[row]])),
        )
        for row, (fleet, part) in enumerate(parts)
    ]


def _sliced(tab: Tables, lay: Layout, values: Floats) -> tuple[tuple[str, str, Ints], ...]:
    rows = ((g, np.rint(values[lay.cut[i]])) for i, g in enumerate(tab.problem.geometries))
    return tuple((g.pool, g.name, ints(n_cut)) for g, n_cut in rows if n_cut.any())
