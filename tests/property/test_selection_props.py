"""Selection keeps its promises on any small problem: order of costs, names, the bill."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.selection import draw, worth_usd
from gpuplan.domain.columns import ints
from gpuplan.domain.plan.selection import Conflict
from gpuplan.selection.choose import select
from gpuplan.selection.result.verify import breaches

CENT = 0.011
SEEDS = st.integers(min_value=10_000, max_value=90_000)
FEW = settings(max_examples=60, deadline=None, derandomize=True)


def usd(problem):
    """Cost of the best plan; infinite where there is none."""
    found = select(problem)
    return np.inf if isinstance(found, Conflict) else found.worth_usd


@FEW
@given(seed=SEEDS, factor=st.floats(1.0, 3.0))
def test_a_looser_limit_never_costs_more(seed, factor):
    problem = draw(seed)
    limits = tuple(replace(limit, most=limit.most * factor) for limit in problem.limits)
    assert usd(replace(problem, limits=limits)) <= usd(problem) + CENT


@FEW
@given(seed=SEEDS, more=st.integers(1, 3))
def test_more_demand_never_costs_less(seed, more):
    problem = draw(seed)
    options = tuple(replace(o, need=ints(o.need + more)) for o in problem.options)
    assert usd(replace(problem, options=options)) >= usd(problem) - CENT


@FEW
@given(seed=SEEDS)
def test_one_option_more_never_costs_more(seed):
    problem = draw(seed)
    first = problem.options[0]
    other = replace(first, name="another", pool="pool0", n_reserve=0)
    assert usd(replace(problem, options=(*problem.options, other))) <= usd(problem) + CENT


@FEW
@given(seed=SEEDS)
def test_order_of_names_does_not_matter(seed):
    problem = draw(seed)
    turned = replace(
        problem,
        options=problem.options[::-1],
        pools=problem.pools[::-1],
        terms=problem.terms[::-1],
        limits=problem.limits[::-1],
    )
    here, there = usd(problem), usd(turned)
    assert here == there or abs(here - there) <= CENT


@FEW
@given(seed=SEEDS, scale=st.floats(0.1, 50.0))
def test_resizing_the_dollar_resizes_the_bill(seed, scale):
    problem = draw(seed)
    money = {"upfront"}
    resized = replace(
        problem,
        pools=tuple(
            replace(p, existing_usd_per_node_h=p.existing_usd_per_node_h * scale)
            for p in problem.pools
        ),
        terms=tuple(
            replace(
                t,
                usd_per_node_h=t.usd_per_node_h * scale,
                upfront_usd=t.upfront_usd * scale,
                residual_usd=None if t.residual_usd is None else t.residual_usd * scale,
            )
            for t in problem.terms
        ),
        options=tuple(replace(o, once_usd=o.once_usd * scale) for o in problem.options),
        limits=tuple(
            replace(x, most=x.most * scale * (1 + 1e-9)) if x.kind in money else x
            for x in problem.limits
        ),
    )
    here, there = usd(problem), usd(resized)
    assert here == there or abs(here * scale - there) <= CENT * (1 + scale)


@FEW
@given(seed=SEEDS)
def test_the_bill_adds_up_and_is_the_objective(seed):
    problem = draw(seed)
    found = select(problem)
    if isinstance(found, Conflict):
        return
    exact = worth_usd(problem, found)
    assert found.worth_cents == round(exact * 100)
    assert found.proof.value == found.worth_usd
    assert found.proof.bound <= found.proof.value
    assert found.proof.gap_frac == 0.0
    assert not breaches(problem, found)
