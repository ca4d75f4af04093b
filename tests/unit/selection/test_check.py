"""What is unsound is refused, all of it at once; a price of nothing never wins."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.selection import draw, horizon
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    FleetOption,
    NamedLimit,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.errors import InputError, SolverError
from gpuplan.selection.check import check
from gpuplan.selection.choose import select
from gpuplan.selection.program.builder import Builder
from gpuplan.selection.program.solver import Effort, solve
from gpuplan.selection.result.verify import breaches


def problem(*terms):
    return SelectionProblem(
        horizon=horizon(hours=(10.0,)),
        pools=(NodePool(name="p", accelerator="x", n_accelerators_per_node=8),),
        terms=terms,
        options=(FleetOption(workload="w", name="o", pool="p", need=ints([[[4]]])),),
    )


def terms(usd, name="t", **more):
    given = {"purchase": "on_demand"} | more
    return NodeTerms(name=name, pool="p", usd_per_node_h=usd, **given)


@pytest.mark.parametrize("usd", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("purchase", ["on_demand", "spot", "reserved"])
def test_a_price_that_is_none_is_refused(usd, purchase):
    with pytest.raises(InputError, match="price"):
        select(problem(terms(usd, purchase=purchase), terms(3.0, name="sound")))


def test_owned_nodes_need_a_price_somewhere():
    with pytest.raises(InputError, match="zero"):
        check(problem(terms(0.0, purchase="owned")))
    check(problem(terms(0.0, purchase="owned", upfront_usd=100.0)))


def test_what_is_left_may_not_be_worth_more_than_was_paid():
    left = floats([50.0, 50.0])
    with pytest.raises(InputError, match="worth more"):
        check(problem(terms(0.1, purchase="owned", upfront_usd=40.0, residual_usd=left)))


def test_every_fault_is_named_at_once():
    given = problem(terms(0.0), terms(1.0, name="existing"))
    limits = (NamedLimit(name="power", kind="power", most=-1.0, pools=("q",)),)
    with pytest.raises(InputError) as caught:
        check(replace(given, limits=limits))
    where = {fault.where for fault in caught.value.problems}
    assert {"terms.t", "terms.existing", "limits.power"} <= where


def test_carbon_must_be_known_where_it_counts():
    with pytest.raises(InputError, match="carbon"):
        check(replace(problem(terms(1.0)), objective="carbon"))


def test_whole_nodes_are_rented():
    assert select(problem(terms(3.0))).worth_usd == pytest.approx(30.0)


def test_a_solver_without_an_answer_says_so():
    builder = Builder()
    column = builder.columns((1,))
    rows = builder.rows((1,), lower=0.0)
    builder.put(rows, column, 1.0)
    with pytest.raises(SolverError, match="status"):
        solve(builder.program(np.array([-1.0])), Effort(max_s=0.0))


def test_a_broken_plan_is_found_out():
    given = draw(1)
    found = select(replace(given, limits=()))
    fewer = tuple(replace(held, n_nodes=ints(held.n_nodes - 1)) for held in found.provisioned)
    assert breaches(given, replace(found, provisioned=fewer))
    assert breaches(given, replace(found, chosen=found.chosen[1:]))
