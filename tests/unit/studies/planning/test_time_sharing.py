"""Idle hours of services by hand: who is idle, for how long, and what a run makes of it."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan import api
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import FleetOption, NodePool, ProvisionedNodes
from gpuplan.studies.planning.time_sharing import (
    IdleWindow,
    idle_accelerators,
    idle_windows,
)
from gpuplan.units import DAY, HOUR

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
    held = ProvisionedNodes(
        terms="existing", pool=POOL.name, purchase="owned", n_nodes=ints(np.full((1, 2, 24), 2))
    )
    horizon = SimpleNamespace(hour_s=floats(np.full(24, 3600.0)), shape=(1, 2, 24))
    problem = SimpleNamespace(horizon=horizon, pools=(POOL,))
    return SimpleNamespace(
        table=SimpleNamespace(problem=problem),
        selection=SimpleNamespace(chosen=(option,), provisioned=(held,)),
        pool=lambda name: POOL,
    )


def test_idle_is_what_the_fullest_period_leaves():
    assert list(idle_accelerators(host(), POOL.name)) == [0.0] * 12 + [9.0] * 12
    assert list(idle_accelerators(host(n_reserve=2), POOL.name))[-1] == 7.0
    assert idle_accelerators(host(slice_kind="1g.10gb"), POOL.name).max() == 0.0


def test_every_number_that_is_idle_at_once_is_a_window():
    [window] = idle_windows(host())
    assert (window.n_accelerators, window.h_per_day) == (9, pytest.approx(12.0))
    assert not list(idle_windows(host(n_reserve=9)))


def test_work_waits_for_each_night_and_starts_anew():
    window = IdleWindow("a x8", 8, 12.0)
    assert window.useful_s == 12 * HOUR - 600
    assert window.wall_s(HOUR) == pytest.approx(12 * HOUR + 600 + HOUR)
    assert window.wall_s(2 * window.useful_s) == pytest.approx(2 * DAY)
    assert window.work_s(2 * DAY) == pytest.approx(2 * window.useful_s)
    assert window.work_s(12 * HOUR) == 0.0


@given(h=st.floats(1.0, 24.0), work=st.floats(60.0, 90 * DAY))
def test_what_is_done_by_the_end_is_the_work(h, work):
    window = IdleWindow("a x8", 8, h)
    assert window.work_s(window.wall_s(work) + 1e-3) == pytest.approx(work, rel=1e-6, abs=0.1)


CHAT = {
    "name": "chat",
    "kind": "online_inference",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "request": {"input_tokens": 1000, "output_tokens": 300},
    "demand": {"requests_per_s": 40, "hourly_profile": [0.05] * 8 + [1.0] * 10 + [0.05] * 6},
    "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
}
TUNE = {
    "name": "tune",
    "kind": "finetuning",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "training": {"tokens": 2e8, "method": "full", "deadline_days": 3},
}


def both(**training):
    """Chat by day and a run, on the one server that there is."""
    run = TUNE | {"training": TUNE["training"] | training}
    return {
        "version": 1,
        "name": "day and night",
        "workloads": [CHAT, run],
        "owned": [{"accelerator": "H100", "nodes": 1, "accelerators_per_node": 8}],
        "policy": {"accelerators": {"allowed": ["H100"]}, "max_accelerators": 8},
    }


def test_a_run_at_night_is_the_plan_where_the_servers_stand_idle():
    answer = api.plan(both(), n_samples=50)
    chat, tune = answer.plan.pools
    assert tune.purchases == ()
    assert tune.source.startswith("time-sharing")
    assert chat.purchases[0].n_nodes == 1
    [deadline] = [slo for slo in answer.plan.slo.promises if slo.what == "deadline"]
    assert deadline.is_kept
    flop_s = 6 * 8.03e9 * 2e8 / (tune.n_accelerators * 989.4e12)
    assert deadline.reached_s.value > 2 * flop_s  # it waits for the night, at an MFU below a half
    alone = api.plan(both() | {"workloads": [CHAT]}, n_samples=50)
    assert answer.plan.cost_usd_per_month.value == alone.plan.cost_usd_per_month.value


def test_a_run_that_the_nights_are_too_short_for_names_the_whole_that_is_missing():
    answer = api.plan(both(tokens=2e10), n_samples=0)
    assert answer.plan is None
    lines = " ".join(answer.explanation.conflicts)
    assert "now 8 accelerators" in lines
    assert "8 accelerators would be enough" not in lines
