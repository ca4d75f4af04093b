"""Shared prefixes from block hashes, against a plain loop over the prompts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.columns import ints
from gpuplan.domain.traffic.stream import PrefixBlocks
from gpuplan.inputs.traces.prefixes import permuted, shared_prefixes

prompts = st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=8)


def blocks_of(rows, order=None):
    first = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    flat = np.array([number for row in rows for number in row], dtype=np.int64)
    order = np.arange(len(rows)) if order is None else np.array(order)
    return permuted(ints(first), ints(flat), ints(order), n_block_tokens=16)


def rows_of(blocks: PrefixBlocks):
    return [
        blocks.block[start:end].tolist()
        for start, end in zip(blocks.first[:-1], blocks.first[1:], strict=True)
    ]


def n_common(one, other):
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return n


def test_blocks_follow_their_requests_and_are_numbered_by_first_use():
    found = blocks_of([[7, 8], [9], [7, 5]], order=[2, 0, 1])
    assert rows_of(found) == [[0, 1], [0, 2], [3]]


def test_a_group_shares_what_all_of_it_begin_with():
    found = blocks_of([[1, 2, 3], [1, 2, 4], [1, 2], [9], []])
    group, tokens = shared_prefixes(found, ints([48, 48, 20, 16, 5]))
    assert group is not None
    assert tokens is not None
    assert group.tolist()[:3] == [group[0]] * 3
    assert group.tolist()[3:] == [-1, -1]
    assert tokens.tolist() == [32, 32, 20, 0, 0]  # never more than the prompt itself


def test_without_blocks_nothing_is_shared():
    assert shared_prefixes(None, ints([5])) == (None, None)


@given(prompts, st.randoms())
def test_any_order_tells_prompts_apart_as_before(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    found = rows_of(blocks_of(rows, order))
    for i, one in enumerate(order):
        for j, other in enumerate(order):
            assert n_common(found[i], found[j]) == n_common(rows[one], rows[other])


@given(prompts)
def test_groups_are_the_prompts_with_the_same_first_block(rows):
    lengths = ints([16 * len(row) for row in rows])
    group, tokens = shared_prefixes(blocks_of(rows), lengths)
    assert group is not None
    assert tokens is not None
    for i, row in enumerate(rows):
        members = [other for other in rows if row and other and other[0] == row[0]]
        if len(members) < 2:
            assert (group[i], tokens[i]) == (-1, 0)
        else:
            # All members share at least what each shares with the first of them.
            assert tokens[i] == 16 * min(n_common(members[0], other) for other in members)
