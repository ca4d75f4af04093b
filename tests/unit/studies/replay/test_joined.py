"""Unequal pools behind one router: every request once, sums and means over all of them."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.outcome import WEIGHTED
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.studies.replay.joined import joined
from gpuplan.studies.replay.replicas import simulate

MODEL = "meta-llama/Llama-3.1-8B-Instruct"


def stream(n: int, per_s: float, seed: int):
    rng = np.random.default_rng(seed)
    at = floats(np.cumsum(rng.exponential(1.0 / per_s, n)))
    return requests_of(at, np.full(n, 400), np.full(n, 40))


@pytest.fixture(scope="module")
def runs():
    asked = SimulateRequest(warmup_s=0.0)
    fast = simulate(MODEL, "h100-sxm", stream(600, 4.0, 1), asked)
    slow = simulate(MODEL, "l40s", stream(200, 1.5, 2), replace(asked, n_replicas=2))
    return [fast, slow]


@pytest.fixture(scope="module")
def whole(runs):
    return joined(runs, SimulateRequest(warmup_s=0.0))


def test_every_request_is_there_once_in_the_order_in_which_they_came(runs, whole):
    assert len(whole.outcome.requests) == 800
    assert np.all(np.diff(whole.outcome.requests.arrive_s) >= 0)
    for column in ("ttft_s", "e2e_s"):
        both = np.concatenate([getattr(run.outcome.times, column) for run in runs])
        assert sorted(getattr(whole.outcome.times, column)) == sorted(both)
    # A request keeps its own times.
    at = runs[1].outcome.requests.arrive_s[17]
    row = int(np.flatnonzero(whole.outcome.requests.arrive_s == at)[0])
    assert whole.outcome.times.ttft_s[row] == runs[1].outcome.times.ttft_s[17]


def test_percentiles_are_over_all_requests(runs, whole):
    both = np.concatenate([run.outcome.times.ttft_s for run in runs])
    assert whole.statistics.ttft.p50_s == pytest.approx(np.percentile(both, 50), rel=0.01)
    least, most = sorted(run.statistics.ttft.p95_s for run in runs)
    assert least <= whole.statistics.ttft.p95_s <= most


def test_sums_and_shares_are_those_of_all_engines(runs, whole):
    totals = whole.outcome.totals
    assert totals.busy_s == pytest.approx(sum(run.outcome.totals.busy_s for run in runs))
    assert totals.span_s == max(run.outcome.totals.span_s for run in runs)
    assert whole.outcome.n_engines == 3
    use = whole.outcome.use
    busy_s = use.busy_frac.sum() * use.bin_s * whole.outcome.n_engines
    assert busy_s == pytest.approx(totals.busy_s, rel=1e-6)
    assert whole.power.energy_j.value == pytest.approx(
        sum(run.power.energy_j.value for run in runs)
    )


def test_each_pool_is_a_class_by_its_hardware(whole):
    assert whole.fleet.router == WEIGHTED
    assert [each.n_completed for each in whole.classes] == [600, 200]
    assert "H100" in whole.classes[0].name
    assert whole.classes[1].name.startswith("2 × 1 L40S")
