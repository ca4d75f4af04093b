"""Users who wait for their answers: Little's law over the whole loop, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.simulation.simulation import SimulateRequest, Simulation
from gpuplan.domain.traffic.drawn import DrawnLoad
from gpuplan.domain.traffic.stream import ClosedLoop
from gpuplan.errors import InputError
from gpuplan.studies.inference.closed_loop import closed_outcome
from gpuplan.studies.replay.closed_loop import ended_together

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
    rate = found.statistics.delivery.requests_per_s
    cycle_s = outcome.times.e2e_s.mean() + 2.0
    assert rate * cycle_s == pytest.approx(16, rel=0.03)


@pytest.mark.parametrize("n", [16, 17, 500, 3201])
def test_as_many_are_asked_as_were_wanted_and_all_users_ask_to_the_end(n: int):
    requests = run(replace(LOOP, n_requests=n)).outcome.requests
    assert len(requests) == n
    if n > 1000:
        last_s = [requests.arrive_s[requests.session == user][-1] for user in range(16)]
        # The last question of each is within a few cycles of the end: nobody was done early.
        assert min(last_s) > requests.arrive_s[-1] - 30.0


def test_the_run_is_that_of_a_longer_one_up_to_its_end():
    taken = api.drawn_load(replace(LOOP, n_requests=800), seed=1)
    assert taken.loop is not None
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", taken.requests, SimulateRequest())

    def replay(loop: ClosedLoop) -> Outcome:
        return closed_outcome(loop, ready.fleet, bin_s=60.0)

    whole, cut = replay(taken.loop), replay(ended_together(taken.loop, 800, replay))
    assert (cut.n_requests, whole.n_requests) == (800, len(taken.loop.user))
    assert cut.requests.arrive_s.tobytes() == whole.requests.arrive_s[:800].tobytes()


def test_never_more_in_flight_than_users():
    found = run(replace(LOOP, think_s=0.0))
    requested_s = np.sort(found.outcome.requests.arrive_s)
    # A user asks again when the engine has answered; what lies outside of it is told only.
    inside_s = found.outcome.times.e2e_s - found.fleet.limits.start_s
    answered_s = np.sort(found.outcome.requests.arrive_s + inside_s)
    n_answered = np.searchsorted(answered_s, requested_s + 1e-6, side="right")
    in_flight = np.arange(1, len(requested_s) + 1) - n_answered
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
    assert taken.n_loop == 16 * 50
    bad = DrawnLoad(law="closed", n_users=0, think_s=-1.0, requests_per_s=5.0, duration_s=10.0)
    with pytest.raises(InputError) as caught:
        api.drawn_load(bad)
    places = {problem.where for problem in caught.value.problems}
    assert places == {
        "--users", "--think-time-s", "--rate", "--duration", "--input-tokens", "--output-tokens"
    }  # fmt: skip
