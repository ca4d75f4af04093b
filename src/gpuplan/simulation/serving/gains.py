"""Tokens gained in each step of speculative decoding where acceptance is drawn: sums to look up.

A draw depends on its number and the seed alone, so that a run may skip steps and still see what
it would have seen in each. Assumption: the decodes of an engine share the draw of a step; a single
request sees the true law, while in a real batch the draws of others would even out.
"""

from collections.abc import Sequence

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import EngineLimits
from gpuplan.simulation.serving.kernels.engine.state import N_DRAWN, POSITIONS, SUMS

# Constants of the hash splitmix64.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_A, MIX_B = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _hashed(numbers: Ints, seed: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    with np.errstate(over="ignore"):
        x = (numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN
        x ^= np.uint64(seed & 0xFFFFFFFFFFFFFFFF) * MIX_A
        x = (x ^ (x >> np.uint64(30))) * MIX_A
        x = (x ^ (x >> np.uint64(27))) * MIX_B
        return np.asarray(x ^ (x >> np.uint64(31)), dtype=np.uint64)


def uniforms(n: int, seed: int) -> Floats:
    """Numbers from 0 to below 1; each depends on its place and the seed alone."""
    return np.asarray((_hashed(np.arange(n), seed) >> np.uint64(11)) * 2.0**-53)


def drawn_gains(drafts: SpeculativeDecoding, n: int, seed: int) -> Ints:
    """Tokens of each step: its own, and draft tokens up to the first that is not accepted."""
    u, retained = uniforms(n, seed), np.ones(n, dtype=np.int64)
    for place in range(1, drafts.n_tokens + 1):
        retained += u < drafts.acceptance_frac**place
    return retained


def first_ticks(n_engines: int, seed: int) -> Ints:
    """Where in the draws each engine begins."""
    return (_hashed(np.arange(n_engines), ~seed) % np.uint64(N_DRAWN)).astype(np.int64)


def gains_of(limits: Sequence[EngineLimits], seed: int) -> Ints:
    """By pool: positions after so many steps and their sums; a pool that draws nothing has ones."""
    if not any(one.draws_acceptance for one in limits):
        return np.zeros((len(limits), 2, 1), dtype=np.int64)
    values = np.zeros((len(limits), 2, N_DRAWN + 1), dtype=np.int64)
    for at, (row, one) in enumerate(zip(values, limits, strict=True)):
        gains = np.ones(N_DRAWN, dtype=np.int64)
        if one.draws_acceptance and one.drafts is not None:
            gains = drawn_gains(one.drafts, N_DRAWN, seed + at)
        row[POSITIONS, 1:] = np.cumsum(gains)
        row[SUMS, 1:] = np.cumsum(row[POSITIONS, :-1])
    return values
