"""Plans under other futures, and training runs as options."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.selection import draw, horizon
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    Conflict,
    FleetOption,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.selection.choose import only, select
from gpuplan.selection.sensitivity.recourse import recost
from gpuplan.selection.training import training_need, training_options

HOUR = 3600.0


def test_a_plan_re_costed_on_its_own_scenarios_is_its_bill():
    n_tried = 0
    for seed in range(60):
        problem = replace(draw(seed), limits=())
        found = select(problem)
        if not isinstance(found, Conflict):
            usd = recost(problem, found) @ problem.horizon.probability_frac
            assert usd == pytest.approx(found.worth_usd, rel=1e-3, abs=0.01), seed
            n_tried += 1
    assert n_tried > 20


def test_a_plan_never_beats_the_scenarios_own_best():
    n_tried = 0
    for seed in range(40):
        problem = replace(draw(seed), limits=())
        found = select(problem)
        if not isinstance(found, Conflict) and problem.horizon.shape[0] > 1:
            for s, usd in enumerate(recost(problem, found)):
                assert usd >= select(only(problem, s)).worth_usd - 0.011, seed
            n_tried += 1
    assert n_tried > 5


def test_needs_beyond_every_quota_are_infinite():
    problem = SelectionProblem(
        horizon=horizon(),
        pools=(NodePool(name="p", accelerator="x", n_accelerators_per_node=1),),
        terms=(
            NodeTerms(
                name="t", pool="p", purchase="on_demand", usd_per_node_h=1.0, n_nodes_max=5
            ),
        ),
        options=(FleetOption(workload="w", name="o", pool="p", need=ints([[[4]]])),),
    )  # fmt: skip
    found = select(problem)
    time = replace(problem.horizon, probability_frac=floats([0.5, 0.5]))
    more = replace(problem.options[0], need=ints([[[5]], [[6]]]))
    usd = recost(replace(problem, horizon=time, options=(more,)), found)
    assert list(usd) == [5.0, np.inf]


def test_a_run_takes_its_hours_and_no_more():
    time = horizon(n_periods=3, hours=(10.0, 10.0))
    need = training_need(time, 8, run_s=25 * HOUR, start_period=1)
    assert need[0].tolist() == [[0, 0], [8, 8], [8, 0]]
    assert training_need(time, 8, run_s=50 * HOUR, start_period=1) is None


def test_only_starts_that_meet_the_deadline_are_offered():
    time = horizon(n_periods=3, hours=(10.0, 10.0))
    option = FleetOption(workload="train", name="a", pool="p", need=ints(np.zeros(time.shape)))
    kept = training_options(time, option, n_accelerators=4, run_s=30 * HOUR, deadline_s=52 * HOUR)
    assert [o.name for o in kept] == ["a, start 0", "a, start 1"]
    assert [o.time_s for o in kept] == [30 * HOUR, 50 * HOUR]


def test_training_starts_where_the_load_leaves_room():
    """Four nodes are owned anyway; serving needs them in the first period only."""
    time = horizon(n_periods=3, hours=(10.0,))
    option = FleetOption(workload="train", name="a", pool="p", need=ints(np.zeros(time.shape)))
    runs = training_options(time, option, n_accelerators=4, run_s=10 * HOUR, deadline_s=20 * HOUR)
    serving = FleetOption(workload="chat", name="c", pool="p", need=ints([[[4], [0], [4]]]))
    problem = SelectionProblem(
        horizon=time,
        pools=(NodePool(name="p", accelerator="x", n_accelerators_per_node=1),),
        terms=(NodeTerms(name="own", pool="p", purchase="owned", usd_per_node_h=1.0),),
        options=(serving, *runs),
    )
    found = select(problem)
    assert found.option_of("train").name == "a, start 1"
    assert found.worth_usd == pytest.approx(4 * 30)
