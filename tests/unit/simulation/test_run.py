"""Requests and a fleet in, an outcome out: refusals, ties, bins and bad settings."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import no_requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import constant_table

STEP_S = 0.01


def fleet(**changes: object) -> Fleet:
    limits = EngineLimits(max_batch_tokens=100, max_sequences=4, n_blocks=20, block_tokens=16)
    limits = replace(limits, **changes)  # type: ignore[arg-type]
    table = constant_table(STEP_S, max_tokens=4096, max_sequences=64)
    return Fleet(limits=limits, table=table)


def test_one_request_alone_takes_its_steps():
    # 250 tokens are read 100 at a time: 3 steps, the third of which writes the first token.
    found = simulate_serving(requests_of([7.0], [250], [5]), fleet())
    assert found.times.wait_s[0] == 0.0
    assert found.times.ttft_s[0] == pytest.approx(3 * STEP_S)
    assert found.times.tpot_s[0] == pytest.approx(STEP_S)
    assert found.times.e2e_s[0] == pytest.approx(7 * STEP_S)
    assert found.totals.n_steps == 7
    assert found.totals.n_computed_tokens == 250 + 4


def test_nothing_is_a_defined_result():
    found = simulate_serving(no_requests(), fleet())
    assert found.n_completed == 0
    assert found.totals.span_s == 0.0
    assert found.use.busy_frac.tolist() == [0.0]


def test_what_cannot_be_served_is_refused_with_its_reason():
    stream = requests_of([0, 1, 2, 3, 4], [0, 10, 310, 10, 90], [5, 0, 20, 5, 20])
    found = simulate_serving(stream, fleet(max_context_tokens=100))
    assert dict(found.refused) == {
        "no tokens to read or to write": 2,
        "larger than the whole cache": 1,
        "longer than the model's context": 1,
    }
    assert found.times.is_finished.tolist() == [0, 0, 0, 1, 0]
    assert found.n_completed + found.n_refused == len(stream)


def test_a_request_that_fills_the_cache_is_served_alone():
    stream = requests_of([0.0, 0.0], [300, 300], [21, 21])  # 320 tokens in 20 blocks of 16
    found = simulate_serving(stream, fleet())
    assert found.n_completed == 2
    assert found.times.wait_s[1] == pytest.approx(found.times.e2e_s[0])


def test_a_request_outside_the_engine_takes_its_start():
    stream = requests_of([0.0], [10], [2])
    inside, outside = (
        simulate_serving(stream, fleet()),
        simulate_serving(stream, fleet(start_s=0.5)),
    )
    assert outside.times.ttft_s[0] == pytest.approx(inside.times.ttft_s[0] + 0.5)
    assert outside.times.e2e_s[0] == pytest.approx(inside.times.e2e_s[0] + 0.5)
    assert outside.times.tpot_s[0] == inside.times.tpot_s[0]


def test_an_arrival_at_the_start_of_a_step_is_seen_by_it():
    stream = requests_of([0.0, 0.02], [10, 10], [10, 10])
    assert simulate_serving(stream, fleet()).times.wait_s[1] == 0.0


def test_times_do_not_depend_on_when_the_clock_starts():
    arrive_s = np.array([0.0, 0.013, 0.5])
    early = simulate_serving(requests_of(arrive_s, [50] * 3, [9] * 3), fleet())
    late = simulate_serving(requests_of(arrive_s + 2.0**20, [50] * 3, [9] * 3), fleet())
    np.testing.assert_allclose(early.times.e2e_s, late.times.e2e_s, atol=1e-9)


@pytest.mark.parametrize("bin_s", [0.007, 1.0, 60.0])
def test_bins_hold_all_busy_time(bin_s: float):
    draw = np.random.default_rng(0)
    stream = requests_of(np.cumsum(draw.exponential(1.0, 400)), [50] * 400, [40] * 400)
    found = simulate_serving(stream, fleet(), bin_s=bin_s)
    assert found.use.busy_frac.sum() * found.use.bin_s == pytest.approx(found.totals.busy_s)
    assert found.use.busy_frac.max() <= 1 + 1e-9
    assert found.use.cache_frac.max() <= 1 + 1e-9
    assert found.use.bin_s / bin_s in (1, 2, 4, 8, 16, 32, 64)
    # One request at a time: each is busy for 40 steps of its own, or shares them.
    assert found.totals.busy_s == pytest.approx(found.totals.n_steps * STEP_S)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"max_sequences": 0}, "max_num_batched_tokens"),
        ({"max_batch_tokens": 2}, "max_num_batched_tokens"),
        ({"block_tokens": 24}, "block tokens"),
        ({"n_blocks": 0}, "KV cache"),
    ],
)
def test_settings_that_no_engine_takes_are_named(changes: dict[str, int], where: str):
    with pytest.raises(InputError, match=where):
        simulate_serving(requests_of([0.0], [1], [1]), fleet(**changes))


def test_every_problem_is_told_at_once():
    bad = replace(fleet(n_blocks=0), n_engines=0, router="magic")
    with pytest.raises(InputError) as caught:
        simulate_serving(requests_of([0.0], [1], [1]), bad)
    assert len(caught.value.problems) == 3


def test_more_than_the_clock_holds_is_refused():
    with pytest.raises(InputError, match="40 days"):
        simulate_serving(requests_of([0.0, 5e6], [1, 1], [1, 1]), fleet())
