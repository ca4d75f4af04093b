"""Speculative decoding, by its mean gain or by chance: jump = step, closed forms, the law."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.gains import drawn_gains, first_ticks
from gpuplan.simulation.serving.kernels.engine.state import N_DRAWN
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, constant_table, limits_of
from kernels.test_engine import assert_same
from kernels.texts import grouped_stream


def drafting(limits: EngineLimits, n: int, acceptance: float) -> EngineLimits:
    tokens = limits.max_batch_tokens + n * limits.max_sequences
    drafts = SpeculativeDecoding(n_tokens=n, acceptance_frac=acceptance)
    return replace(limits, drafts=drafts, max_batch_tokens=tokens, n_blocks=limits.n_blocks + n + 1)


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), acceptance=st.floats(0, 1),
    caches=st.booleans(), is_drawn=st.booleans(),
)  # fmt: skip
@settings(max_examples=80, deadline=None, derandomize=True)
def test_jumping_equals_stepping_bit_for_bit(
    seed: int, n: int, acceptance: float, caches: bool, is_drawn: bool
):
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, 100)
    limits = drafting(limits_of(draw, requests, caches_prefixes=caches), n, acceptance)
    limits = replace(limits, draws_acceptance=is_drawn)
    rows = replace(limits, max_sequences=limits.max_sequences * (1 + n))
    fleet = Fleet(limits=limits, table=bent_table(draw, rows))
    jumped = simulate_serving(requests, fleet)
    assert_same(jumped, simulate_serving(requests, fleet, method="step"))
    assert jumped.totals.n_free_blocks == limits.n_blocks


@pytest.mark.parametrize(("n", "acceptance"), [(3, 0.7), (1, 0.5), (5, 1.0), (4, 0.0)])
def test_a_lone_answer_takes_its_tokens_over_the_mean_gain(n: int, acceptance: float):
    n_tokens, step_s = 4001, 0.01
    limits = EngineLimits(
        max_batch_tokens=512, max_sequences=8, n_blocks=1000, block_tokens=16,
        drafts=SpeculativeDecoding(n_tokens=n, acceptance_frac=acceptance),
    )  # fmt: skip
    table = constant_table(step_s, max_tokens=512, max_sequences=8 * (1 + n))
    found = simulate_serving(
        requests_of([0.0], [100], [n_tokens]), Fleet(limits=limits, table=table)
    )
    gained = sum(acceptance**i for i in range(n + 1))
    expected = (n_tokens - 1) / gained * step_s
    decode_s = float(found.times.e2e_s[0] - found.times.ttft_s[0])
    assert decode_s == pytest.approx(expected, abs=2 * step_s, rel=1e-4)


def test_drafts_with_priorities_are_refused_with_a_reason():
    limits = EngineLimits(
        max_batch_tokens=16, max_sequences=8, n_blocks=100, block_tokens=16,
        scheduling="priority", drafts=SpeculativeDecoding(n_tokens=3, acceptance_frac=0.5),
    )  # fmt: skip
    table = constant_table(0.01, max_tokens=16, max_sequences=32)
    with pytest.raises(InputError) as caught:
        simulate_serving(requests_of([0.0], [1], [1]), Fleet(limits=limits, table=table))
    assert len(caught.value.problems) == 2


def lone(n: int, acceptance: float, *, is_drawn: bool, seed: int = 0, n_tokens: int = 4001):
    limits = EngineLimits(
        max_batch_tokens=512, max_sequences=8, n_blocks=1000, block_tokens=16,
        drafts=SpeculativeDecoding(n_tokens=n, acceptance_frac=acceptance),
        draws_acceptance=is_drawn,
    )  # fmt: skip
    table = constant_table(0.01, max_tokens=512, max_sequences=8 * (1 + n))
    return simulate_serving(
        requests_of([0.0], [100], [n_tokens]), Fleet(limits=limits, table=table, seed=seed)
    )


@pytest.mark.parametrize("seed", [0, 1, 99])
def test_a_lone_answer_takes_as_many_steps_as_its_draws_say(seed: int):
    """Walked here one draw after another, from where the engine begins."""
    n, acceptance, n_tokens = 3, 0.7, 4001
    drawn = drawn_gains(SpeculativeDecoding(n_tokens=n, acceptance_frac=acceptance), N_DRAWN, seed)
    at, left, n_steps = int(first_ticks(1, seed)[0]), n_tokens - 1, 0
    # The step that reads the prompt is a tick as well.
    at += 1
    while left > 0:
        left -= int(drawn[at % N_DRAWN])
        at, n_steps = at + 1, n_steps + 1
    found = lone(n, acceptance, is_drawn=True, seed=seed, n_tokens=n_tokens)
    decode_s = float(found.times.e2e_s[0] - found.times.ttft_s[0])
    assert decode_s == pytest.approx(n_steps * 0.01, abs=1e-9)


@pytest.mark.parametrize(("n", "acceptance"), [(1, 0.5), (3, 0.7), (7, 0.9)])
def test_drawn_gains_follow_the_law_of_first_refusal(n: int, acceptance: float):
    """Gain i + 1 with chance a^i (1 - a), all with a^n; the mean is the deterministic gain."""
    drafts = SpeculativeDecoding(n_tokens=n, acceptance_frac=acceptance)
    gains = drawn_gains(drafts, N_DRAWN, 5)
    expected = [acceptance**i * (1 - acceptance) for i in range(n)] + [acceptance**n]
    observed = np.bincount(gains, minlength=n + 2)[1:] / N_DRAWN
    sigma = np.sqrt(np.array(expected) * (1 - np.array(expected)) / N_DRAWN)
    assert np.all(np.abs(observed - expected) < 4.5 * sigma)
    assert gains.mean() == pytest.approx(drafts.gained_tokens, rel=0.02)
    lags = np.corrcoef(gains[:-1], gains[1:])[0, 1]
    assert abs(lags) < 4.5 / np.sqrt(N_DRAWN)


@pytest.mark.parametrize(("n", "acceptance"), [(4, 0.0), (5, 1.0)])
def test_where_nothing_is_left_to_chance_both_ways_agree(n: int, acceptance: float):
    a, b = (lone(n, acceptance, is_drawn=is_drawn) for is_drawn in (False, True))
    assert a.times.e2e_s.tobytes() == b.times.e2e_s.tobytes()


def test_another_seed_draws_otherwise_and_the_same_does_not():
    ends = [float(lone(3, 0.6, is_drawn=True, seed=s).times.e2e_s[0]) for s in (1, 1, 2)]
    assert ends[0] == ends[1] != ends[2]
