"""The jumping engine equals stepping bit for bit, and an independent engine by request."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.steps import work
from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Requests
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, constant_table, fleet_of, limits_of, stream_of, true_time_s
from kernels.oracles import assert_equals_oracle, oracle
from kernels.reference import Engine, Request, rules_of

WORK = work()
COLUMNS = ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions", "is_finished")


def assert_same(a: Outcome, b: Outcome) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(a.times, name), getattr(b.times, name), name)
    assert (a.totals.n_steps, a.totals.n_computed_tokens, a.totals.n_preemptions) == (
        b.totals.n_steps, b.totals.n_computed_tokens, b.totals.n_preemptions
    )  # fmt: skip
    assert a.totals.n_free_blocks == b.totals.n_free_blocks
    np.testing.assert_allclose(a.use.busy_frac, b.use.busy_frac, rtol=1e-9, atol=1e-12)
    # Within a jump held blocks are taken as growing evenly.
    np.testing.assert_allclose(a.use.compute_frac, b.use.compute_frac, atol=0.02)


def test_jumping_equals_stepping_bit_for_bit():
    n_preemptions = 0
    for seed in range(150):
        draw = np.random.default_rng(seed)
        requests = stream_of(draw, 120)
        fleet = fleet_of(limits_of(draw, requests), WORK)
        jumped = simulate_serving(requests, fleet, method="jump")
        assert_same(jumped, simulate_serving(requests, fleet, method="step"))
        if seed % 10 == 0:  # the oracle takes every sequence through every step
            assert_equals_oracle(jumped, *oracle(requests, fleet))
        n_preemptions += jumped.totals.n_preemptions
    assert n_preemptions > 1000  # the trials would prove little otherwise


def test_jumping_equals_stepping_over_every_bend():
    for seed in range(150):
        draw = np.random.default_rng(7000 + seed)
        requests = stream_of(draw, 120)
        limits = limits_of(draw, requests)
        fleet = Fleet(limits=limits, table=bent_table(draw, limits))
        jumped = simulate_serving(requests, fleet, method="jump")
        assert_same(jumped, simulate_serving(requests, fleet, method="step"))
        if seed % 10 == 0:  # the oracle takes every sequence through every step
            assert_equals_oracle(jumped, *oracle(requests, fleet))


def test_arrivals_at_the_instant_of_a_step_are_seen_alike():
    """Steps of 10 ms and arrivals on their grid: every arrival is a tie."""
    for seed in range(40):
        draw = np.random.default_rng(9000 + seed)
        requests = stream_of(draw, 120)
        arrive_s = floats(np.sort(draw.integers(0, 2000, 120)) / 100)
        requests = replace(requests, arrive_s=arrive_s)
        limits = limits_of(draw, requests)
        table = constant_table(
            0.01, max_tokens=limits.max_batch_tokens, max_sequences=limits.max_sequences
        )
        fleet = Fleet(limits=limits, table=table)
        jumped = simulate_serving(requests, fleet, method="jump")
        if seed % 10 == 0:  # the oracle takes every sequence through every step
            assert_equals_oracle(jumped, *oracle(requests, fleet))


def reference_run(requests: Requests, engine: Engine) -> list[Request]:
    rows = [
        Request(number, float(at), int(n_in), int(n_out))
        for number, (at, n_in, n_out) in enumerate(
            zip(requests.arrive_s, requests.input_tokens, requests.output_tokens, strict=True)
        )
    ]
    engine.run(rows)
    return rows


@pytest.mark.parametrize("long_prefill", [None, 7, 64])
def test_an_independent_engine_agrees_request_by_request(long_prefill: int | None):
    for seed in range(25):
        draw = np.random.default_rng(1000 + seed)
        requests = stream_of(draw, 40)
        # Arrivals off the grid: floats and integers of time may not disagree on ties.
        requests = replace(
            requests, arrive_s=np.sort(requests.arrive_s + draw.uniform(0, 1e-3, 40))
        )
        limits = limits_of(draw, requests, long_prefill_tokens=long_prefill)
        rules = rules_of(limits)
        engine = Engine(rules, lambda *load: true_time_s(*load, WORK))
        rows = reference_run(requests, engine)
        found = simulate_serving(requests, fleet_of(limits, WORK))
        arrive_s = requests.arrive_s
        expected = {
            "ttft_s": [r.first_s for r in rows] - arrive_s,
            "e2e_s": [r.end_s for r in rows] - arrive_s,
            "wait_s": [r.start_s for r in rows] - arrive_s,
        }
        for name, values in expected.items():
            np.testing.assert_allclose(getattr(found.times, name), values, rtol=1e-9, atol=1e-8)
        assert found.times.n_preemptions.tolist() == [r.n_preemptions for r in rows]
        assert found.totals.n_steps == engine.n_steps
