"""Replicas by the hour: enough everywhere, none where nothing is asked."""

from math import ceil, sqrt

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.candidates.need import load_points, loads_of, need_in_proportion, need_of
from gpuplan.domain.columns import floats
from gpuplan.domain.plan.sizing import DemandProfile, HourLoads, Periods


def demand(peak, hours, ratios=((1.0,),)):
    n_periods = len(ratios[0])
    return DemandProfile(
        workload="w",
        unit="requests",
        peak_requests_per_s=peak,
        n_accelerators=None,
        mean_requests_per_s=peak,
        input_tokens=1.0,
        output_tokens=1.0,
        hours=HourLoads(
            load_frac=floats(hours), hours_per_week=floats([168 / len(hours)] * len(hours))
        ),
        periods=Periods(
            scenarios=tuple("mlh"[: len(ratios)]),
            start_s=floats(np.arange(n_periods)),
            length_s=floats(np.ones(n_periods)),
            load_ratio=floats(ratios),
        ),
        lines=(),
    )


def square_root_need(load):
    """What a pool with square-root staffing needs: economies of scale, whole replicas."""
    return ceil(load + 1.5 * sqrt(load)) if load > 0 else 0


@given(
    peak=st.floats(0.5, 200),
    hours=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=24),
    growth=st.lists(st.floats(0.5, 3.0), min_size=1, max_size=6),
)
def test_every_hour_has_enough(peak, hours, growth):
    hours = [*hours, 1.0]
    asked = demand(peak, hours, (tuple(growth),))
    sized = {load: square_root_need(load) for load in load_points(asked)}
    need = need_of(asked, sized)
    loads = loads_of(asked)
    assert need.n_replicas.shape == loads.shape
    for load, n in zip(loads.ravel(), need.n_replicas.ravel(), strict=True):
        assert n >= square_root_need(load * (1 - 1e-8))
        assert (n == 0) == (load == 0)


@given(peak=st.floats(0.5, 50), hours=st.lists(st.floats(0.01, 1.0), min_size=2, max_size=24))
def test_more_load_never_takes_fewer(peak, hours):
    asked = demand(peak, [*hours, 1.0])
    need = need_of(asked, {load: square_root_need(load) for load in load_points(asked)})
    order = np.argsort(loads_of(asked).ravel(), kind="stable")
    assert np.all(np.diff(need.n_replicas.ravel()[order]) >= 0)


def test_proportion_is_rounded_up():
    need = need_in_proportion(demand(40.0, [1.0, 0.5, 0.0]), 21.0)
    assert need.n_replicas[0, 0].tolist() == [2, 1, 0]
    assert need.n_peak == 2


def test_the_least_load_needs_a_replica():
    need = need_in_proportion(demand(1e-6, [1.0, 0.5, 0.0]), 1e18)
    assert need.n_replicas[0, 0].tolist() == [1, 1, 0]


def test_growth_counts():
    need = need_in_proportion(demand(10.0, [1.0], ((1.0, 2.0, 4.0), (1.0, 1.0, 1.0))), 10.0)
    assert need.n_replicas[:, :, 0].tolist() == [[1, 2, 4], [1, 1, 1]]
    assert need.n_most(0) == 4
