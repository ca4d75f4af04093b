"""Prefixes, urgency and limits on long prompts: jump = step = an oracle, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.simulation.serving.kernels.engine.state import FRAC_BITS, TICKS_PER_S
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import bent_table, limits_of
from kernels.reference_features import Engine, Request, Rules
from kernels.test_engine import assert_same
from kernels.texts import (
    exact_time,
    grouped_stream,
    rows_of,
    texts_of_blocks,
    texts_of_groups,
    traced_stream,
)

POLICIES = {
    "prefixes": {"caches_prefixes": True},
    "urgent": {"scheduling": "priority"},
    "urgent prefixes": {"caches_prefixes": True, "scheduling": "priority"},
    "long": {"long_prefill_tokens": 24},
    "long prefixes": {"caches_prefixes": True, "long_prefill_tokens": 24},
    "all": {"caches_prefixes": True, "scheduling": "priority", "long_prefill_tokens": 24},
}


def rules_of(limits: EngineLimits) -> Rules:
    return Rules(
        max_tokens=limits.max_batch_tokens, max_sequences=limits.max_sequences,
        n_blocks=limits.n_blocks, block_tokens=limits.block_tokens,
        reserves_prompt=limits.admission.reserves_prompt, is_ahead=limits.admission.is_ahead,
        long_prefill_tokens=limits.long_prefill_tokens or 0,
        caches=limits.caches_prefixes, is_priority=limits.scheduling == "priority",
    )  # fmt: skip


def oracle(
    requests: Requests, fleet: Fleet, blocks: PrefixBlocks | None, *, keeps_copies: bool = False
) -> tuple[Engine, list[Request]]:
    if blocks is None:
        paths = texts_of_groups(requests, fleet.limits.block_tokens)
    else:
        paths = texts_of_blocks(requests, blocks, fleet.limits.block_tokens)
    rows = rows_of(requests, paths)
    rules = replace(rules_of(fleet.limits), keeps_copies=keeps_copies)
    engine = Engine(rules, exact_time(fleet))
    engine.run(rows)
    return engine, rows


def assert_equals_oracle(found: Outcome, engine: Engine, rows: list[Request]) -> None:
    for name, instants in (
        ("wait_s", [r.start for r in rows]),
        ("ttft_s", [r.first for r in rows]),
        ("e2e_s", [r.end for r in rows]),
    ):
        since = [
            ((at >> FRAC_BITS) - (r.arrive >> FRAC_BITS)) / TICKS_PER_S
            for at, r in zip(instants, rows, strict=True)
        ]
        np.testing.assert_array_equal(getattr(found.times, name), since, name)
    assert found.times.n_preemptions.tolist() == [r.n_preemptions for r in rows]
    assert found.times.n_cached_tokens.tolist() == [r.n_hit for r in rows]
    assert found.totals.n_steps == engine.n_steps
    assert found.totals.n_free_blocks == engine.rules.n_blocks


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
