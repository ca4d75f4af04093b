"""SGLang's scheduler by version: what each one does by default, on which device, as data.

[SGLang-scheduler] A version takes the last row that is not newer; without a patch number, the
newest of its kind. 0.5.20 was not looked at: it is taken as 0.5.21.
"""

import re
from typing import NamedTuple

from gpuplan.units import GIB

NEWEST = 10**6  # above any patch number
LEAST_SEQUENCES, MOST_SEQUENCES = 2048, 4096
SEQUENCES_PER_CONTEXT = 512
MAX_PREFILL_TOKENS = 16384  # of a batch of prompts that are not cut
FEW_SIZES = ((25, 2048), (NEWEST, 8192))
OLD_SIZES = ((35, 2048), (60, 4096), (160, 8192), (NEWEST, 16384))
SIZES = ((20, 2048), (60, 4096), (160, 8192), (NEWEST, 16384))


class SglangVersion(NamedTuple):
    """What versions from `since` on do by default."""

    since: tuple[int, int, int]
    chunk_sizes: tuple[tuple[int, int], ...]  # tokens of a prefill batch below so many GB of memory
    is_ahead: bool  # a batch is drawn up while one runs (overlap)
    is_longest_first: bool  # longest known prefix first (LPM), not first come
    knows_ends: bool  # known lengths are reserved whole, and last tokens foreseen


VERSIONS = (
    SglangVersion((0, 0, 0), FEW_SIZES, False, True, False),
    SglangVersion((0, 3, 6), FEW_SIZES, True, True, False),
    SglangVersion((0, 4, 0), FEW_SIZES, True, False, False),
    SglangVersion((0, 5, 0), OLD_SIZES, True, False, False),
    SglangVersion((0, 5, 20), SIZES, True, False, False),
    SglangVersion((0, 5, 22), SIZES, True, False, True),
)


def sglang_version(version: str) -> SglangVersion:
    """The rules of a version as its makers write it; the newest where it says none."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if found is None:
        return VERSIONS[-1]
    given = (int(found[1]), int(found[2]), int(found[3] or NEWEST))
    return next(row for row in reversed(VERSIONS) if given >= row.since)


def chunk_tokens(version: SglangVersion, memory_bytes: float) -> int:
    """Tokens of a prefill batch on a device with so much memory."""
    return next(n for gb, n in version.chunk_sizes if memory_bytes < gb * GIB)


def most_sequences(n_cache_tokens: int, context_tokens: int | None) -> int:
    """Sequences that run at once by default, by how many whole contexts the cache holds."""
    if not context_tokens:
        return LEAST_SEQUENCES
    n = int(n_cache_tokens / context_tokens * SEQUENCES_PER_CONTEXT)
    return min(max(n, LEAST_SEQUENCES), MOST_SEQUENCES)
