"""Each limit, each way of paying and each kind of demand keeps the order of costs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.selection_wide import KINDS, draw_wide
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import Conflict, NamedLimit
from gpuplan.selection.choose import only, select
from gpuplan.selection.exact import solve_exactly
from gpuplan.selection.large.solve import solve_large
from gpuplan.selection.program.model import model
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.program.tables import tables
from gpuplan.selection.result.verify import breaches, limit_used

CENT = 0.011
SEEDS = st.integers(min_value=10_000, max_value=90_000)
FEW = settings(max_examples=20, deadline=None, derandomize=True)
PURCHASES = ("owned", "reserved", "capacity_block", "on_demand", "spot")


def usd(problem):
    """Cost of the best plan; infinite where there is none."""
    found = select(problem)
    return np.inf if isinstance(found, Conflict) else found.worth_usd


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(seed=SEEDS, share=st.floats(0.3, 0.95), more=st.floats(0.05, 0.5))
def test_a_limit_below_what_was_used_costs_and_loosening_it_saves(kind, seed, share, more):
    free = replace(draw_wide(seed), limits=())
    best = select(free)
    if isinstance(best, Conflict):
        return
    limit = NamedLimit(name=kind, kind=kind, most=0.0)
    used = limit_used(free, best, limit)
    tight, loose = (
        usd(replace(free, limits=(replace(limit, most=used * part),)))
        for part in (share, share + more)
    )
    assert tight >= loose - CENT
    assert loose >= best.worth_usd - CENT
    # The bill is in whole cents, line by line: what it says was spent may be a cent off.
    enough = replace(limit, most=used * (1 + 1e-6) + CENT)
    assert usd(replace(free, limits=(enough,))) == pytest.approx(best.worth_usd, abs=CENT)


@pytest.mark.parametrize("purchase", PURCHASES)
@FEW
@given(seed=SEEDS, factor=st.floats(1.01, 2.0))
def test_terms_that_are_dearer_or_gone_never_save(purchase, seed, factor):
    problem = draw_wide(seed)
    here = usd(problem)
    dearer = tuple(
        replace(t, usd_per_node_h=t.usd_per_node_h * factor) if t.purchase == purchase else t
        for t in problem.terms
    )
    spend = tuple(limit for limit in problem.limits if limit.kind != "spend")
    free = usd(replace(problem, limits=spend))
    assert usd(replace(problem, terms=dearer, limits=spend)) >= free - CENT
    gone = tuple(t for t in problem.terms if t.purchase != purchase)
    assert usd(replace(problem, terms=gone)) >= here - CENT
    fewer = tuple(
        replace(t, n_nodes_max=t.n_nodes_max - 1) if t.purchase == purchase else t
        for t in problem.terms
    )
    assert usd(replace(problem, terms=fewer)) >= here - CENT


@FEW
@given(seed=SEEDS, more=st.integers(1, 2), factor=st.floats(1.1, 3.0))
def test_more_of_any_demand_never_costs_less(seed, more, factor):
    problem = draw_wide(seed)
    here = usd(problem)
    options = tuple(replace(o, need=ints(o.need + more)) for o in problem.options)
    reserve = tuple(replace(o, n_reserve=o.n_reserve + more) for o in problem.options)
    work = tuple(replace(w, n_work=floats(w.n_work * factor)) for w in problem.deferrable)
    assert usd(replace(problem, options=options)) >= here - CENT
    assert usd(replace(problem, options=reserve)) >= here - CENT
    assert usd(replace(problem, deferrable=work)) >= here - CENT


@FEW
@given(seed=SEEDS)
def test_waiting_longer_for_nodes_never_saves(seed):
    problem = draw_wide(seed)
    later = tuple(
        replace(t, n_lead_periods=t.n_lead_periods + 1) if t.is_committed else t
        for t in problem.terms
    )
    # What a node is worth at the end depends on its age, so that is left out.
    terms, later = (
        tuple(replace(t, residual_usd=None) for t in some) for some in (problem.terms, later)
    )
    limits = tuple(x for x in problem.limits if x.kind not in ("upfront", "spend"))
    bare = replace(problem, limits=limits)
    assert usd(replace(bare, terms=later)) >= usd(replace(bare, terms=terms)) - CENT


@FEW
@given(seed=SEEDS)
def test_knowing_the_scenario_sooner_never_costs_more(seed):
    problem = draw_wide(seed)
    staged = [
        usd(replace(problem, horizon=replace(problem.horizon, n_shared_periods=n)))
        for n in (0, 1, None)
    ]
    assert staged[0] <= staged[1] + CENT
    assert staged[1] <= staged[2] + CENT
    alone = [usd(only(problem, s)) for s in range(problem.horizon.shape[0])]
    known = float(np.dot(problem.horizon.probability_frac, alone)) if max(alone) < np.inf else 0.0
    assert known <= staged[0] + CENT


@pytest.mark.parametrize("block", range(4))
def test_parts_bound_and_bill_stand_around_the_optimum(block):
    n_tried = 0
    for seed in range(block * 30, (block + 1) * 30):
        problem = draw_wide(seed)
        one = solve_exactly(model(tables(problem)), Effort())
        found = solve_large(problem, Effort())
        if one is None or found is None:
            assert found is None or one is not None, seed
            continue
        assert found.proof.bound <= one.worth_usd + CENT, seed
        assert found.worth_usd >= one.worth_usd - CENT, seed
        assert not breaches(problem, found), seed
        n_tried += 1
    assert n_tried >= 12
