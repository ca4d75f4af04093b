"""Text of the prompts of a scaled load: what a service says to all, and what each copy says."""

import numpy as np

from gpuplan.demand.scale import Scaled
from gpuplan.domain.columns import Ints, ints
from gpuplan.domain.traffic.stream import PrefixBlocks

COMMON_FRAC = 0.01
LEAST_COMMON = 10


def scaled_blocks(blocks: PrefixBlocks, scaled: Scaled) -> PrefixBlocks:
    """Blocks of every request of the load; those of one copy are no other copy's.

    Assumption: a block that a hundredth of the requests begin with is the service's own (a system
    prompt, a tool's description), and copies have it in common; others are somebody's words.
    """
    n_each = np.diff(blocks.first)[scaled.row]
    first = np.concatenate([[0], np.cumsum(n_each)])
    place = np.repeat(blocks.first[scaled.row] - first[:-1], n_each) + np.arange(first[-1])
    number, copy = blocks.block[place], np.repeat(scaled.copy, n_each)
    own = number + copy * blocks.n_distinct
    mixed = np.where(_is_common(blocks)[number], number, own)
    return PrefixBlocks(
        n_block_tokens=blocks.n_block_tokens, first=ints(first), block=_dense(mixed)
    )


def _is_common(blocks: PrefixBlocks) -> "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]":
    n_requests = len(blocks.first) - 1
    used = np.bincount(blocks.block, minlength=blocks.n_distinct)
    return np.asarray(used >= max(LEAST_COMMON, COMMON_FRAC * n_requests), dtype=np.bool_)


def _dense(number: Ints) -> Ints:
    """The same numbers as 0, 1, 2 … in order of first use."""
    _, at, place = np.unique(number, return_index=True, return_inverse=True)
    rank = np.empty(len(at), dtype=np.int64)
    rank[np.argsort(at)] = np.arange(len(at))
    return ints(rank[place])
