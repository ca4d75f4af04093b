"""One run with many ways to do it: the choice is the cheapest of all, and proven to be."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    FleetOption,
    Horizon,
    NamedLimit,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.selection.choose import is_single, solve_single
from gpuplan.selection.exact import solve_exactly
from gpuplan.selection.program.model import model
from gpuplan.selection.program.solver import Effort
from gpuplan.selection.program.tables import tables


def job(seed, n_ways=12):
    """Ways to do one job, each for its own hours, on nodes that it may not fill."""
    rng = np.random.default_rng(seed)
    hours = np.sort(rng.uniform(2.0, 40.0, n_ways))
    one = floats([1.0])
    horizon = Horizon(
        hour_s=floats(np.diff([0.0, *hours]) * 3600.0),
        upfront_discount_frac=one,
        running_discount_frac=one,
        end_discount_frac=1.0,
        probability_frac=one,
    )
    pools, terms, options = [], [], []
    for a in range(n_ways):
        size, n = int(rng.choice([1, 2, 3, 8])), int(rng.integers(1, 9))
        pools.append(NodePool(name=f"p{a}", accelerator=f"t{a}", n_accelerators_per_node=size))
        terms.append(
            NodeTerms(
                name=f"p{a}-rent",
                pool=f"p{a}",
                purchase="on_demand",
                usd_per_node_h=float(size * rng.uniform(0.5, 3.0)),
            )
        )
        need = np.where(np.arange(n_ways) <= a, n, 0)
        name = f"way{a}"
        options.append(FleetOption(workload="job", name=name, pool=f"p{a}", need=ints([[need]])))
    return SelectionProblem(
        horizon=horizon, pools=tuple(pools), terms=tuple(terms), options=tuple(options)
    )


def by_hand_usd(problem, option):
    pool = problem.pool(option.pool)
    rent = next(t.usd_per_node_h for t in problem.terms if t.pool == pool.name)
    hours = float(problem.horizon.hour_s[option.need[0, 0] > 0].sum()) / 3600.0
    return ceil(option.need.max() / pool.n_accelerators_per_node) * rent * hours


@pytest.mark.parametrize("seed", range(20))
def test_the_choice_is_the_cheapest_of_all_ways(seed):
    problem = job(seed)
    assert is_single(problem)
    found = solve_single(problem, Effort())
    least = min(by_hand_usd(problem, option) for option in problem.options)
    assert found.worth_usd == pytest.approx(least, abs=0.01)
    assert found.proof.status == "optimal"
    whole = solve_exactly(model(tables(problem)), Effort())
    assert found.worth_cents == whole.worth_cents


def test_limits_leave_the_next_best_or_none():
    problem = job(3)
    free = solve_single(problem, Effort())
    [chosen] = free.chosen
    barred = NamedLimit(name="none of it", kind="nodes", most=0.0, pools=(chosen.pool,))
    other = solve_single(replace(problem, limits=(barred,)), Effort())
    assert other.chosen[0].name != chosen.name
    assert other.worth_usd >= free.worth_usd
    nothing = NamedLimit(name="nothing", kind="nodes", most=0.0)
    assert solve_single(replace(problem, limits=(nothing,)), Effort()) is None


def test_several_workloads_are_another_problem():
    problem = job(1)
    second = replace(problem.options[0], workload="other")
    assert not is_single(replace(problem, options=(*problem.options, second)))
