"""A prefix cache where no prompt shares text: left out as long as nobody is preempted."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.columns import ints
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import Grouping, PrefixBlocks, requests_of
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.text import shares_text
from oracles.recorded import table_of

STEP = {"step_s": 0.008, "token_s": 2e-5, "context_s": 4e-8, "pair_s": 1e-9}
SIZES = {"max_batch_tokens": 2048, "max_sequences": 64}


def fleet(n_blocks: int, **changes: bool) -> Fleet:
    limits = EngineLimits(n_blocks=n_blocks, block_tokens=16, **SIZES, **changes)
    return Fleet(limits=limits, table=table_of(STEP, SIZES))


def stream(**grouping: object):
    draws = np.random.default_rng(5)
    arrive = np.cumsum(draws.exponential(0.05, 60))
    lengths = draws.integers(50, 400, 60), draws.integers(5, 200, 60)
    return requests_of(arrive, *lengths, grouping=Grouping(**grouping))


def test_without_preemptions_the_cache_changes_nothing_but_what_is_told():
    plain = simulate_serving(stream(), fleet(5000))
    cached = simulate_serving(stream(), fleet(5000, caches_prefixes=True))
    assert np.array_equal(plain.times.e2e_s, cached.times.e2e_s)
    assert plain.times.n_cached_tokens is None
    assert cached.times.n_cached_tokens.tolist() == [0] * 60
    assert cached.totals.n_asked_tokens == stream().input_tokens.sum()


def test_who_is_preempted_finds_its_own_text_again():
    plain = simulate_serving(stream(), fleet(60))
    cached = simulate_serving(stream(), fleet(60, caches_prefixes=True))
    assert cached.totals.n_preemptions > 0
    assert cached.totals.n_computed_tokens < plain.totals.n_computed_tokens


def test_text_is_shared_where_groups_or_blocks_say_so():
    assert not shares_text(stream())
    assert shares_text(stream(prefix_group=np.zeros(60), prefix_tokens=np.full(60, 32)))
    one = PrefixBlocks(n_block_tokens=16, first=ints(np.zeros(61)), block=ints([]))
    assert shares_text(stream(), one)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_response_is_found_again_where_its_blocks_are_told(is_told: bool):
    """The second prompt is the first with its response; blocks of the prompt alone end before."""
    requests = requests_of([0.0, 10.0], [64, 128], [64, 8])
    first = list(range(8)) if is_told else [0, 1, 2, 3]
    second = list(range(8))
    text = PrefixBlocks(
        n_block_tokens=16,
        first=ints([0, len(first), len(first) + 8]),
        block=ints([*first, *second]),
    )
    found = simulate_serving(requests, fleet(500, caches_prefixes=True), blocks=text)
    # The last token of a response is never computed, and a prompt is found up to its last token.
    assert found.times.n_cached_tokens.tolist() == [0, 112 if is_told else 64]


@pytest.mark.parametrize("is_full", [True, False])
def test_short_responses_are_told_where_all_blocks_are_full(is_full: bool):
    """31 blocks of 495 + 9 tokens look like the prompt's alone; another request tells which."""
    requests = requests_of([0.0, 0.1, 10.0], [495, 20, 600], [9, 4, 8])
    first, second, third = [*range(31)], [31] if is_full else [31, 32], [*range(31), *range(33, 40)]
    text = PrefixBlocks(
        n_block_tokens=16,
        first=ints(np.cumsum([0, 31, len(second), 38])),
        block=ints([*first, *second, *third]),
    )
    found = simulate_serving(requests, fleet(500, caches_prefixes=True), blocks=text)
    assert found.times.n_cached_tokens.tolist() == [0, 0, 496 if is_full else 480]


def test_pools_without_a_cache_are_as_they_were():
    bare = fleet(60)
    again = replace(bare, limits=replace(bare.limits, caches_prefixes=False))
    assert simulate_serving(stream(), bare).totals == simulate_serving(stream(), again).totals
