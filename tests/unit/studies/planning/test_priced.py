"""The price of another fleet is what a selection that is forced to it would cost."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.selection import draw
from gpuplan.domain.plan.selection import NamedLimit, Selection
from gpuplan.selection.choose import select
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import FleetTable
from gpuplan.studies.planning.priced import priced


def choice_of(problem):
    found = select(problem)
    table = FleetTable(problem=problem, by_name={}, rates={})
    return Choice(table, found) if isinstance(found, Selection) else None


@given(st.integers(0, 10_000))
def test_each_option_costs_what_a_selection_forced_to_it_costs(seed):
    problem = draw(seed)
    choice = choice_of(problem)
    if choice is None:
        return
    for option in problem.options:
        kept = {o.workload: o for o in choice.selection.chosen} | {option.workload: option}
        forced = select(replace(problem, options=tuple(kept.values())))
        found = priced(choice, option)
        if isinstance(forced, Selection):
            assert found.selection.worth_cents == forced.worth_cents
            assert found.selection.worth_cents >= choice.selection.worth_cents
        else:
            assert found is None


@given(st.integers(0, 10_000))
def test_the_chosen_options_cost_what_was_chosen(seed):
    choice = choice_of(draw(seed))
    if choice is not None:
        again = priced(choice, *choice.selection.chosen)
        assert again.selection.worth_cents == choice.selection.worth_cents
        assert again.usd_per_month * again.n_months == pytest.approx(again.usd)


def test_limits_may_be_left_aside():
    seed = next(s for s in range(100) if choice_of(replace(draw(s), limits=())) is not None)
    free = choice_of(replace(draw(seed), limits=()))
    nothing = NamedLimit(name="nothing", kind="accelerators", most=0.0)
    table = free.table._replace(problem=replace(free.table.problem, limits=(nothing,)))
    bound = free._replace(table=table)
    assert priced(bound, *free.selection.chosen) is None
    found = priced(bound, *free.selection.chosen, has_limits=False)
    assert found.usd == free.usd
