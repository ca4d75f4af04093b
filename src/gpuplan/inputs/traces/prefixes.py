"""What prompts have in common, from the hashes of their blocks."""

import numpy as np

from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.traffic.stream import NONE, PrefixBlocks


def permuted(first: Ints, block: Ints, order: Ints, *, n_block_tokens: int) -> PrefixBlocks:
    """The blocks of requests in another order, numbered anew by first use."""
    n_each = np.diff(first)[order]
    starts = np.cumsum(n_each) - n_each
    within = np.arange(int(n_each.sum())) - np.repeat(starts, n_each)
    moved = block[np.repeat(first[:-1][order], n_each) + within]
    _, first_use, inverse = np.unique(moved, return_index=True, return_inverse=True)
    number = np.empty(len(first_use), dtype=np.int64)
    number[np.argsort(first_use)] = np.arange(len(first_use))
    return PrefixBlocks(
        n_block_tokens=n_block_tokens,
        first=ints(np.concatenate([[0], np.cumsum(n_each)])),
        block=ints(number[inverse]),
    )


def shared_prefixes(
    blocks: PrefixBlocks | None, input_tokens: Ints
) -> tuple[Ints | None, Ints | None]:
    """Group and tokens that all of a group share: requests with the same first block.

    The blocks tell more (prompts form a tree); groups tell what holds for every member.
    """
    if blocks is None or not len(input_tokens):
        return None, None
    n_each = np.diff(blocks.first)
    lead = np.full(len(n_each), NONE)
    lead[n_each > 0] = blocks.block[blocks.first[:-1][n_each > 0]]
    n_members = np.bincount(lead[lead >= 0], minlength=blocks.n_distinct + 1)
    is_shared = (lead >= 0) & (n_members[lead] > 1)
    common = np.full(blocks.n_distinct + 1, np.iinfo(np.int64).max)
    example: dict[int, Ints] = {}
    for row in np.flatnonzero(is_shared):
        own = blocks.block[blocks.first[row] : blocks.first[row + 1]]
        group = int(lead[row])
        other = example.setdefault(group, own)
        common[group] = min(common[group], _n_equal(own, other))
    tokens = np.minimum(np.where(is_shared, common[lead], 0) * blocks.n_block_tokens, input_tokens)
    return ints(np.where(is_shared, lead, NONE)), ints(tokens)


def _n_equal(one: Ints, other: Ints) -> int:
    """How many leading blocks are the same."""
    n = min(len(one), len(other))
    differs = one[:n] != other[:n]
    return int(np.argmax(differs)) if differs.any() else n
