"""Whole nodes of one pool: the convex program finds what the whole program finds."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.selection import draw, horizon
from fakes.selection_wide import draw_wide
from gpuplan.domain.columns import ints
from gpuplan.domain.plan.selection import FleetOption, NodePool, NodeTerms, SelectionProblem
from gpuplan.selection.exact import solve_exactly
from gpuplan.selection.large.moves import PoolCostCache, improved
from gpuplan.selection.large.pools import Batch, plan_pool
from gpuplan.selection.large.solve import unit_costs
from gpuplan.selection.program.model import model
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.program.tables import tables


def none(tab):
    return Batch(np.zeros(tab.shape[:2]), np.zeros(tab.shape[:2]))


@pytest.mark.parametrize("drawn", [draw, draw_wide], ids=["plain", "wide"])
@pytest.mark.parametrize("block", range(3))
def test_a_pool_costs_what_one_program_says(drawn, block):
    n_tried = 0
    for seed in range(block * 40, (block + 1) * 40):
        problem = drawn(seed)
        pool = replace(problem.pools[0], n_nodes_max=None)
        here = tuple(o for o in problem.options if o.pool == pool.name)[:1]
        here = tuple(replace(o, once_usd=0.0) for o in here)
        terms = tuple(t for t in problem.terms if t.pool == pool.name)
        alone = replace(problem, pools=(pool,), terms=terms, options=here, deferrable=(), limits=())
        if not here:
            continue
        tab = tables(alone)
        one = solve_exactly(model(tab), Effort())
        need = here[0].need + here[0].n_reserve
        plan = plan_pool(tab, unit_costs(tab), 0, need=need.astype(float), batch=none(tab))
        assert (plan is None) == (one is None), seed
        if plan is not None:
            assert plan.usd == pytest.approx(one.worth_usd, abs=0.011), seed
            n_tried += 1
    assert n_tried > 10


def two_pools(needs):
    """Whole nodes of four accelerators in one pool, of one in the other, half as dear again."""
    pools = tuple(
        NodePool(name=name, accelerator=name, n_accelerators_per_node=size)
        for name, size in (("large", 4), ("small", 1))
    )
    terms = tuple(
        NodeTerms(name=f"{name}-rent", pool=name, purchase="on_demand", usd_per_node_h=usd)
        for name, usd in (("large", 4.0), ("small", 1.5))
    )
    options = tuple(
        FleetOption(workload=f"w{i}", name=f"w{i}-{pool.name}", pool=pool.name, need=ints([[[n]]]))
        for i, n in enumerate(needs)
        for pool in pools
    )
    return SelectionProblem(horizon=horizon(), pools=pools, terms=terms, options=options)


def test_workloads_move_to_where_whole_nodes_are_cheaper():
    """Five accelerators need two large nodes for 8; the fifth alone is 1.5 on a small one."""
    tab = tables(two_pools((4, 1)))
    book = PoolCostCache(tab, unit_costs(tab), [none(tab), none(tab)])
    found = improved(book, {0: 0, 1: 2}, above=np.zeros(4), most=1.0)
    assert found == {0: 0, 1: 3}
    assert book.usd(0, (0, 2)) == pytest.approx(8.0)
    assert book.usd(0, (0,)) + book.usd(1, (3,)) == pytest.approx(5.5)


def test_options_that_cannot_be_part_of_anything_better_are_not_tried():
    tab = tables(two_pools((4, 1)))
    book = PoolCostCache(tab, unit_costs(tab), [none(tab), none(tab)])
    above = np.array([0.0, 9.0, 0.0, 9.0])
    assert improved(book, {0: 0, 1: 2}, above=above, most=1.0) == {0: 0, 1: 2}


@pytest.mark.parametrize("usd_per_h", [0.0, 0.5, 5.0])
def test_batch_pays_for_room_up_to_what_it_takes_and_no_more_than_rent(usd_per_h):
    """One accelerator of a rented node of four is in use: three are free for an hour."""
    tab = tables(two_pools((1,)))
    paid = np.full((1, 1), usd_per_h)
    for most_h in (0.0, 2.0, 9.0):
        batch = Batch(paid, np.full((1, 1), most_h))
        plan = plan_pool(tab, unit_costs(tab), 0, need=np.ones((1, 1, 1)), batch=batch)
        assert plan.usd == pytest.approx(4.0 - min(usd_per_h, 1.0) * min(most_h, 3.0))
