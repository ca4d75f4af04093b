"""What the solver finds is what trying everything finds, on small problems drawn at random."""

import pytest

from fakes.selection import brute_force_usd, draw, worth_usd
from fakes.selection_wide import KINDS, draw_wide, everything_tried_usd
from gpuplan.domain.plan.selection import Conflict
from gpuplan.selection.choose import select
from gpuplan.selection.result.verify import breaches

N_PER_BLOCK = 150
N_WIDE = 100
PURCHASES = {"owned", "reserved", "capacity_block", "on_demand", "spot"}


@pytest.mark.parametrize("block", range(8))
def test_selection_is_what_trying_everything_finds(block):
    n_infeasible = 0
    for seed in range(block * N_PER_BLOCK, (block + 1) * N_PER_BLOCK):
        problem = draw(seed)
        usd = brute_force_usd(problem)
        found = select(problem)
        if usd is None:
            assert isinstance(found, Conflict), seed
            n_infeasible += 1
            continue
        assert found.worth_usd == pytest.approx(usd, abs=0.006), seed
        assert found.proof.status == "optimal"
        assert not breaches(problem, found)
    assert 0 < n_infeasible < N_PER_BLOCK


@pytest.mark.parametrize("block", range(8))
def test_choice_with_everything_in_it_is_what_trying_everything_finds(block):
    """Three scenarios, staged orders, batch, spot, training, nine kinds of limits."""
    n_infeasible, held = 0, set()
    for seed in range(block * N_WIDE, (block + 1) * N_WIDE):
        problem = draw_wide(seed)
        usd = everything_tried_usd(problem)
        found = select(problem)
        if usd is None:
            assert isinstance(found, Conflict), seed
            n_infeasible += 1
            continue
        assert found.worth_usd == pytest.approx(usd, abs=0.006), seed
        assert found.proof.status == "optimal"
        assert not breaches(problem, found)
        bill = worth_usd(problem, found)
        assert found.worth_cents == round(bill * 100), seed
        held |= {nodes.purchase for nodes in found.provisioned}
    assert 0 < n_infeasible < N_WIDE / 2
    assert held == PURCHASES


def test_everything_is_drawn_often_enough():
    problems = [draw_wide(seed) for seed in range(8 * N_WIDE)]
    kinds = [limit.kind for problem in problems for limit in problem.limits]
    purchases = [terms.purchase for problem in problems for terms in problem.terms]
    shapes = [problem.horizon.shape for problem in problems]
    assert all(kinds.count(kind) >= 50 for kind in KINDS)
    assert all(purchases.count(purchase) >= 50 for purchase in PURCHASES)
    assert sum(shape[0] == 3 for shape in shapes) >= 200
    assert sum(problem.horizon.n_shared_periods == 1 for problem in problems) >= 200
    assert sum(bool(problem.deferrable) for problem in problems) >= 200
    assert sum(any(t.n_lead_periods for t in problem.terms) for problem in problems) >= 200
    assert sum("train" in name for problem in problems for name in problem.workloads) >= 200
    assert sum(any(p.n_nodes_existing for p in problem.pools) for problem in problems) >= 100
    assert sum(any(t.price_ratio is not None for t in q.terms) for q in problems) >= 200
