"""Users who wait for their answers: Little's law over the whole loop, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.demand import TokenLengths
from gpuplan.domain.drawn import DrawnLoad
from gpuplan.domain.simulation import SimulateRequest, Simulation
from gpuplan.errors import InputError

LOOP = DrawnLoad(
    law="closed", n_users=16, think_s=2.0, n_requests=3200,
    input=TokenLengths(shape="exponential", mean_tokens=300),
    output=TokenLengths(shape="exponential", mean_tokens=100),
)  # fmt: skip


def run(load: DrawnLoad, **asked: object) -> Simulation:
    taken, request = api.drawn_load(load, seed=1), SimulateRequest(**asked)  # type: ignore[arg-type]
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", taken.requests, request)
    return api.simulate_load(ready, taken, request)


def test_users_are_rate_times_residence_and_thought():
    found = run(LOOP)
    outcome = found.outcome
    assert outcome.n_completed == 3200
    # Near the end some users have asked all they had to.
    since_s = outcome.requests.arrive_s - outcome.requests.arrive_s[0]
    low_s, high_s = 0.05 * since_s[-1], 0.65 * since_s[-1]
    rate = ((since_s >= low_s) & (since_s < high_s)).sum() / (high_s - low_s)
    cycle_s = outcome.times.e2e_s.mean() + 2.0
    assert rate * cycle_s == pytest.approx(16, rel=0.06)


def test_never_more_in_flight_than_users():
    found = run(replace(LOOP, think_s=0.0))
    asked_s = np.sort(found.outcome.requests.arrive_s)
    # A user asks again when the engine has answered; what lies outside of it is told only.
    inside_s = found.outcome.times.e2e_s - found.fleet.limits.start_s
    answered_s = np.sort(found.outcome.requests.arrive_s + inside_s)
    n_answered = np.searchsorted(answered_s, asked_s + 1e-6, side="right")
    in_flight = np.arange(1, len(asked_s) + 1) - n_answered
    assert in_flight.max() == 16  # at every instant that someone asks
    assert found.flow.n_outstanding[-1] == 0
    assert not found.statistics.is_overloaded
    assert found.holding is None


def test_more_users_ask_more_and_wait_longer():
    few, many = run(replace(LOOP, n_users=4)), run(replace(LOOP, n_users=64))
    assert many.statistics.delivery.requests_per_s > 3 * few.statistics.delivery.requests_per_s
    assert many.outcome.times.e2e_s.mean() > few.outcome.times.e2e_s.mean()


def test_what_is_left_out_is_told_and_what_is_wrong_is_named():
    taken = api.drawn_load(replace(LOOP, think_s=None, n_requests=None))
    assert {a.what for a in taken.assumptions} == {"think time", "requests"}
    assert len(taken.requests) == 16 * 50
    bad = DrawnLoad(law="closed", n_users=0, think_s=-1.0, requests_per_s=5.0, duration_s=10.0)
    with pytest.raises(InputError) as caught:
        api.drawn_load(bad)
    places = {problem.where for problem in caught.value.problems}
    assert places == {
        "--users", "--think-s", "--rate", "--duration", "--input-tokens", "--output-tokens"
    }  # fmt: skip
