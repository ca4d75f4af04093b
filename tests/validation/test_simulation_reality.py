"""The serving simulator beside real runs: what scheduling leaves when step times are the run's own.

Figures of every run: docs/validation-simulation.md. Budgets may only fall. Step times as calibrated
are judged in test_serving_runs.py; what is asserted here should hold whatever they are.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.replay.replicas import prepared
from shared_data import shared_file
from validation.multiturn_runs import Served, Users, closed, served, simulated
from validation.serving_runs import (
    MEAN_TARGET,
    P99_TARGET,
    Judged,
    judged,
    open_run,
    own_start_s,
    stretched,
)

# Largest error of the mean E2E with own steps, second half; the servers of one card slow down.
E2E_BUDGETS = {"tp1_bs16": 0.03, "tp1_bs128": 0.14, "tp1_bs256": 0.10, "tp8_bs64": 0.04}
# The same as calibrated, all requests: constants know nothing of these runs.
AS_IS_BUDGETS = {"tp1_bs16": 0.10, "tp1_bs128": 0.10, "tp1_bs256": 0.10, "tp8_bs64": 0.15}
CACHE_BUDGET, HITS_BUDGET, PREEMPTION_BUDGET = 0.02, 0.02, 0.25


@cache
def conversations(name: str) -> tuple[Served, Judged]:
    folder = shared_file("traces/inferencex_runs/multiturn_client_metrics.csv.gz").parent
    fewest = served(folder, f"{name.split('_', maxsplit=1)[0]}_bs16")
    found = served(folder, name)
    return found, judged(found.run, start_s=own_start_s(fewest.run))


@pytest.mark.shared
@pytest.mark.parametrize("gpu", ["RTX4090", "RTXPRO6000"])
def test_every_target_is_met_with_own_steps(gpu: str):
    found = judged(open_run(shared_file("measured/vllm_requests.csv"), gpu))
    missed = {name: error for name, error in found.own_errors.items() if not error.is_within}
    assert not missed, (found.factor, missed)
    assert max(abs(error.mean) for error in found.own_errors.values()) <= MEAN_TARGET / 2
    assert max(abs(error.p99) for error in found.own_errors.values()) <= P99_TARGET / 2


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(E2E_BUDGETS))
def test_answers_take_as_long_with_own_steps(name: str):
    _, found = conversations(name)
    assert abs(found.own_errors["e2e_s"].mean) <= E2E_BUDGETS[name], found.own_errors


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(AS_IS_BUDGETS))
def test_answers_take_about_as_long_as_calibrated(name: str):
    _, found = conversations(name)
    assert abs(found.as_is_errors["e2e_s"].mean) <= AS_IS_BUDGETS[name], found.as_is_errors


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(E2E_BUDGETS))
@pytest.mark.parametrize("steps", ["as_is", "own"])
def test_the_cache_fills_as_the_server_says(name: str, steps: str):
    run, found = conversations(name)
    ours = simulated(run, getattr(found, steps))
    assert ours.cache_frac == pytest.approx(run.counted.cache_frac, rel=CACHE_BUDGET)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["tp1_bs16", "tp1_bs128", "tp8_bs64"])
def test_prefixes_are_found_where_the_cache_has_room(name: str):
    run, found = conversations(name)
    ours = simulated(run, found.as_is)
    assert run.counted.n_preemptions == ours.n_preemptions == 0
    assert ours.hit_frac == pytest.approx(run.counted.hit_frac, abs=HITS_BUDGET)


@pytest.mark.shared
@pytest.mark.parametrize("steps", ["as_is", "own"])
def test_a_full_cache_costs_pace(steps: str):
    """From 128 to 256 users the server slows down, preempts and forgets prefixes; so do we."""
    (fewer, few), (more, many) = conversations("tp1_bs128"), conversations("tp1_bs256")
    assert more.counted.output_tokens_per_s < fewer.counted.output_tokens_per_s
    before, after = (
        simulated(fewer, getattr(few, steps)),
        simulated(more, getattr(many, steps)),
    )
    assert after.output_tokens_per_s < before.output_tokens_per_s
    assert after.hit_frac < before.hit_frac / 2
    assert after.n_preemptions == pytest.approx(more.counted.n_preemptions, rel=PREEMPTION_BUDGET)


def tiny_fleet(n_requests: int):
    requests = requests_of(np.arange(n_requests) * 0.02, [300] * n_requests, [40] * n_requests)
    scheduler = EngineRequest(max_sequences=8, max_batch_tokens=512, n_blocks=200)
    asked = SimulateRequest(tp=1, scheduler=scheduler)
    return requests, prepared("meta-llama/Llama-3.1-8B", "H100", requests, request=asked).fleet


def test_slower_steps_and_slower_arrivals_are_a_slower_clock():
    requests, fleet = tiny_fleet(60)
    fleet = replace(fleet, limits=replace(fleet.limits, start_s=0.0))
    once = simulate_serving(requests, fleet)
    slow = requests_of(3.0 * requests.arrive_s, requests.input_tokens, requests.output_tokens)
    thrice = simulate_serving(slow, replace(fleet, table=stretched(fleet.table, 3.0)))
    assert once.times.wait_s.max() > 0
    np.testing.assert_allclose(thrice.times.ttft_s, 3.0 * once.times.ttft_s, rtol=1e-6)
    np.testing.assert_allclose(thrice.times.e2e_s, 3.0 * once.times.e2e_s, rtol=1e-6)


def test_users_ask_when_they_are_answered():
    """Four users, five requests each: every arrival is the answer before it and the pause."""
    _, fleet = tiny_fleet(20)
    is_next = np.tile([False, True, True, True, True], 4)
    users = Users(
        is_next=is_next, pause_s=np.linspace(0.01, 0.2, 20), input_tokens=np.full(20, 300),
        output_tokens=np.arange(20, 40), conversation=np.arange(20),
        prefix_tokens=np.zeros(20, dtype=np.int64),
    )  # fmt: skip
    found = closed(users, fleet, np.ones(20))
    requested_s = np.zeros(20)
    for row in range(20):
        left_s = requested_s[row - 1] + found.times.e2e_s[row - 1] if is_next[row] else 0.0
        requested_s[row] = left_s + users.pause_s[row]
    np.testing.assert_allclose(np.sort(requested_s), found.outcome.requests.arrive_s, atol=0.02)
