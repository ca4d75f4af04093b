"""Demand of one workload in figures: arithmetic of users, documents, samples and tokens."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import read_scenario, scenario_from_dict
from gpuplan.studies.sizing.demand import demand_of, training_tokens
from gpuplan.units import HOUR

EXAMPLES = Path(__file__).parents[4] / "examples"
CHAT = read_scenario(EXAMPLES / "chat.yaml")
[SERVED] = CHAT.workloads


def generic(**work):
    tree = {"version": 1, "name": "x"}
    tree["workloads"] = [{"name": "w", "kind": "generic", "work": work}]
    scenario = scenario_from_dict(tree, name="s")
    return demand_of(scenario.workloads[0], scenario)


def served(**arrivals):
    work = replace(SERVED.work, arrivals=replace(SERVED.work.arrivals, **arrivals))
    workload = replace(SERVED, work=work)
    return workload, replace(CHAT, workloads=(workload,))


def test_users_times_requests_an_hour_make_the_peak():
    found = demand_of(SERVED, CHAT)
    arrivals = SERVED.work.arrivals
    assert found.peak_requests_per_s == arrivals.peak_requests_per_s
    [first, *_] = found.lines
    each = HOUR * arrivals.peak_requests_per_s / arrivals.n_users
    assert first.startswith(f"{arrivals.n_users:.0f} users x {each:.3g} requests an hour")


def test_a_flat_day_is_assumed_and_said_and_a_profile_is_not():
    assert [note.what for note in demand_of(SERVED, CHAT).assumptions] == ["hours of the day"]
    found = demand_of(*served(hourly_profile=(*[0.5] * 12, *[1.0] * 12)))
    assert found.assumptions == ()
    assert found.hours.mean_frac == pytest.approx(0.75)


def test_a_trace_gives_rate_and_lengths():
    """Two requests a second for an hour, of 100 and 20 tokens."""
    n = 7200
    trace = requests_of(np.arange(n) / 2.0, np.full(n, 100), np.full(n, 20))
    workload, scenario = served(
        trace="t.csv", peak_requests_per_s=None, mean_requests_per_s=None, n_users=None
    )
    found = demand_of(workload, scenario, read_trace=lambda path: trace)
    assert found.peak_requests_per_s == pytest.approx(2.0, rel=0.01)
    assert (found.input_tokens, found.output_tokens) == (pytest.approx(100), pytest.approx(20))
    with pytest.raises(InputError, match="cannot be read"):
        demand_of(workload, scenario)


def test_no_rate_is_an_error():
    workload, scenario = served(
        peak_requests_per_s=None, mean_requests_per_s=None, n_users=None, trace=None
    )
    with pytest.raises(InputError, match="no rate is known"):
        demand_of(workload, scenario)


def test_samples_over_a_deadline_are_a_rate():
    found = generic(samples=7200, deadline_h=1, gflop_per_sample=1000)
    assert (found.unit, found.peak_requests_per_s) == ("samples", pytest.approx(2.0))
    assert found.mean_requests_per_s == pytest.approx(2.0)


def test_counted_accelerators_are_their_own_unit():
    found = generic(accelerators=16)
    assert (found.unit, found.n_accelerators, found.peak_requests_per_s) == (
        "accelerators",
        16,
        None,
    )
    assert found.peak_of(0, 0) == 16


def test_tokens_of_a_run_count_every_epoch():
    scenario = read_scenario(EXAMPLES / "large-training.yaml")
    work = scenario.workloads[0].work
    assert training_tokens(replace(work, n_tokens=1e9, n_epochs=3)) == 3e9
    by_samples = replace(work, n_tokens=None, n_samples=100, sequence_tokens=2048, n_epochs=2)
    assert training_tokens(by_samples) == 2 * 100 * 2048
    assert demand_of(scenario.workloads[0], scenario).unit == "samples"
