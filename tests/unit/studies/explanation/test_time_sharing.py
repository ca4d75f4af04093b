"""Idle hours of services by hand: who is idle, for how long, and what a run makes of it."""

from types import SimpleNamespace

import numpy as np
import pytest

from fakes.fleets import job
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import FleetOption, NodePool, NodesHeld
from gpuplan.studies.explanation.time_sharing import (
    IdleWindow,
    idle_accelerators,
    idle_windows,
    shared_wall_s,
)
from gpuplan.units import DAY

POOL = NodePool(name="a x8", accelerator="a", n_accelerators_per_node=8)
NEED = np.array([[[16] * 12 + [4] * 12, [16] * 12 + [7] * 12]])


def host(*, slice_kind="", n_reserve=0):
    """Two nodes of eight, full by day; at night 4, later 7 of them are needed."""
    option = FleetOption(
        workload="chat",
        name="a on a x8",
        pool=POOL.name,
        need=ints(NEED),
        slice_kind=slice_kind,
        n_reserve=n_reserve,
    )
    held = NodesHeld(
        terms="existing", pool=POOL.name, purchase="owned", n_nodes=ints(np.full((1, 2, 24), 2))
    )
    horizon = SimpleNamespace(hour_s=floats(np.full(24, 3600.0)), shape=(1, 2, 24))
    problem = SimpleNamespace(horizon=horizon, pools=(POOL,))
    return SimpleNamespace(
        table=SimpleNamespace(problem=problem),
        selection=SimpleNamespace(chosen=(option,), held=(held,)),
        pool=lambda name: POOL,
    )


def test_idle_is_what_the_fullest_period_leaves():
    assert list(idle_accelerators(host(), POOL.name)) == [0.0] * 12 + [9.0] * 12
    assert list(idle_accelerators(host(n_reserve=2), POOL.name))[-1] == 7.0
    assert idle_accelerators(host(slice_kind="1g.10gb"), POOL.name).max() == 0.0


@pytest.mark.parametrize(("n", "hours"), [(8, [12.0]), (9, [12.0]), (10, [])])
def test_a_run_needs_all_its_accelerators_at_once(n, hours):
    assert [found.h_per_day for found in idle_windows(host(), "a", n)] == pytest.approx(hours)
    assert not list(idle_windows(host(), "b", n))


def test_half_the_day_takes_twice_as_long_and_a_restart_each_night():
    window = IdleWindow("a x8", 8, 12.0)
    found = shared_wall_s(job("a", n=8, wall_s=3 * DAY), window)
    assert found == pytest.approx(3 * DAY / (0.5 - 600 / 86_400))
    assert shared_wall_s(job("a"), IdleWindow("a x8", 8, 0.1)) == float("inf")
