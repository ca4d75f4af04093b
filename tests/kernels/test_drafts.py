"""Speculative decoding by its mean gain: jump = step, closed forms, no gain where none accepted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.engine import EngineLimits, Fleet
from gpuplan.domain.performance import Drafts
from gpuplan.domain.stream import requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, constant_table, limits_of
from kernels.test_engine import assert_same
from kernels.texts import grouped_stream


def drafting(limits: EngineLimits, n: int, acceptance: float) -> EngineLimits:
    tokens = limits.max_batch_tokens + n * limits.max_sequences
    drafts = Drafts(n_tokens=n, acceptance_frac=acceptance)
    return replace(limits, drafts=drafts, max_batch_tokens=tokens, n_blocks=limits.n_blocks + n + 1)


@given(
    seed=st.integers(0, 2**32 - 1), n=st.integers(1, 7), acceptance=st.floats(0, 1),
    caches=st.booleans(),
)  # fmt: skip
@settings(max_examples=40, deadline=None, derandomize=True)
def test_jumping_equals_stepping_bit_for_bit(seed: int, n: int, acceptance: float, caches: bool):
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, 100)
    limits = drafting(limits_of(draw, requests, caches_prefixes=caches), n, acceptance)
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
        drafts=Drafts(n_tokens=n, acceptance_frac=acceptance),
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
        scheduling="priority", drafts=Drafts(n_tokens=3, acceptance_frac=0.5),
    )  # fmt: skip
    table = constant_table(0.01, max_tokens=16, max_sequences=32)
    with pytest.raises(InputError) as caught:
        simulate_serving(requests_of([0.0], [1], [1]), Fleet(limits=limits, table=table))
    assert len(caught.value.problems) == 2
