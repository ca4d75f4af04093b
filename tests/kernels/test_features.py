"""Prefix cache, priorities and limits on long prefills: jump = step = an oracle, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.simulation.engine import Fleet
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, limits_of
from kernels.oracles import assert_equals_oracle, oracle
from kernels.test_engine import assert_same
from kernels.texts import grouped_stream, traced_stream

POLICIES = {
    "prefixes": {"caches_prefixes": True},
    "priority": {"scheduling": "priority"},
    "priority and prefixes": {"caches_prefixes": True, "scheduling": "priority"},
    "long": {"long_prefill_tokens": 24},
    "long prefixes": {"caches_prefixes": True, "long_prefill_tokens": 24},
    "all": {"caches_prefixes": True, "scheduling": "priority", "long_prefill_tokens": 24},
}


def case(
    seed: int, n: int, policy: dict[str, object], *, is_traced: bool
) -> tuple[Requests, Fleet, PrefixBlocks | None]:
    draw = np.random.default_rng(seed)
    blocks = None
    if is_traced:
        requests, blocks = traced_stream(draw, n)
    else:
        requests = grouped_stream(draw, n)
    limits = limits_of(draw, requests, **policy)
    return requests, Fleet(limits=limits, table=bent_table(draw, limits)), blocks


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(seed=st.integers(0, 2**32 - 1), is_traced=st.booleans())
@settings(max_examples=25, deadline=None, derandomize=True)
def test_an_independent_engine_agrees_bit_for_bit(
    policy: dict[str, object], seed: int, is_traced: bool
):
    requests, fleet, blocks = case(seed, 40, policy, is_traced=is_traced)
    found = simulate_serving(requests, fleet, blocks=blocks)
    assert_equals_oracle(found, *oracle(requests, fleet, blocks))


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(seed=st.integers(0, 2**32 - 1), is_traced=st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_jumping_equals_stepping_bit_for_bit(policy: dict[str, object], seed: int, is_traced: bool):
    requests, fleet, blocks = case(seed, 150, policy, is_traced=is_traced)
    jumped = simulate_serving(requests, fleet, blocks=blocks)
    stepped = simulate_serving(requests, fleet, blocks=blocks, method="step")
    assert_same(jumped, stepped)
    assert jumped.totals.n_hit_tokens == stepped.totals.n_hit_tokens
    assert jumped.totals.n_free_blocks == fleet.limits.n_blocks
