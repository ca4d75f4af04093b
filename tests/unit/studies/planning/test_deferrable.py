"""Deferrable work in quiet hours: every window does the whole day's work."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import demand, estimate, sized, sizing
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.scenario.workload import Batch
from gpuplan.studies.planning.deferrable import in_quiet_hours, is_deferrable, quietest_first
from gpuplan.units import DAY, HOUR

DAY_HOURS = floats(np.full(24, 7.0))
IDLE_AT_NIGHT = ints([*range(8), *range(8, 24)])


def test_windows_are_the_quietest_hours_with_replicas_for_the_whole_day():
    fleet = sized(1, capacity_per_s=estimate(10.0))
    found = list(in_quiet_hours(fleet, demand(10.0), DAY_HOURS, IDLE_AT_NIGHT))
    assert [int(is_in.sum()) for _, is_in in found] == [4, 8, 12]
    assert [each.need.n_peak for each, _ in found] == [6, 3, 2]
    assert all(is_in[:4].all() for _, is_in in found)
    assert found[1][0].remarks[-1] == "deferrable: it runs in the quietest 8 hours of the day"


def test_one_block_of_hours_leaves_no_window():
    whole = floats([168.0])
    assert not list(
        in_quiet_hours(sized(1, capacity_per_s=estimate(1.0)), demand(1.0), whole, ints([0]))
    )
    assert not list(in_quiet_hours(sized(1), demand(1.0), DAY_HOURS, IDLE_AT_NIGHT))


@given(rate=st.floats(0.01, 1e4), each=st.floats(0.01, 1e3), seed=st.integers(0, 99))
def test_no_window_does_less_than_the_demand(rate, each, seed):
    order = ints(np.random.default_rng(seed).permutation(24))
    for found, is_in in in_quiet_hours(
        sized(1, capacity_per_s=estimate(each)), demand(rate), DAY_HOURS, order
    ):
        n = found.need.n_replicas[0, 0]
        assert np.all((n > 0) == (is_in > 0))
        assert float((n * each * DAY_HOURS).sum()) >= rate * 168.0 * (1 - 1e-6)


def test_hours_are_ranked_by_what_all_workloads_ask():
    loads = [
        SimpleNamespace(demand=demand(1.0, fracs, (56.0, 56.0, 56.0)))
        for fracs in ((1.0, 0.2, 0.6), (0.1, 1.0, 0.2))
    ]
    axis = ints([0, 1, 2])
    assert list(quietest_first(loads, [axis, axis])) == [2, 0, 1]


@pytest.mark.parametrize(
    ("per_s", "deadline_s", "n_works", "expected"),
    [(1.0, DAY, 2, True), (1.0, DAY, 1, False), (1.0, HOUR, 2, False), (None, DAY, 2, False)],
)
def test_streams_with_a_day_to_spare_beside_others_may_wait(per_s, deadline_s, n_works, expected):
    work = SimpleNamespace(
        work=Batch(docs_per_s=per_s, n_docs=None, deadline_s=deadline_s, request=None)
    )
    scenario = SimpleNamespace(workload=lambda _: work, workloads=(work,) * n_works)
    assert is_deferrable(scenario, sizing()) is expected
