"""vLLM's scheduler by version: what each one does by default, as data.

[vLLM-V1-scheduler] A version takes the last row that is not newer; without a minor number it is
taken for the newest. Before 0.8 the engine was another one (V0), which is simulated by the first
row's rules without a prefix cache.
"""

import re
from typing import NamedTuple


class VllmVersion(NamedTuple):
    """What versions from `since` on do by default."""

    since: tuple[int, int]
    caches_prefixes: bool  # equal leading blocks are kept and found again
    is_ahead: bool  # a step is drawn up while one runs (async scheduling); not across stages
    reserves_prompt: bool  # admitted only where the whole prompt has room, not its first chunk
    reuses_bare_first: bool  # free blocks without text before the oldest with text
    has_watermark: bool  # a share of blocks can be left free by admissions; 0 by default
    lone_prompt_is_whole: bool  # the limit on long prefills spares a request that is alone
    # Of stages: the queue is filled before a batch is waited for, with empty ones too. Seen in
    # 0.32 and not in 0.15; the version between them is not known.
    fills_queue: bool = False


VERSIONS = (
    VllmVersion((0, 0), False, False, False, False, False, False),
    VllmVersion((0, 8), True, False, False, False, False, False),
    VllmVersion((0, 14), True, True, False, False, False, False),
    VllmVersion((0, 19), True, True, True, False, False, False),
    VllmVersion((0, 23), True, True, True, True, False, False),
    VllmVersion((0, 24), True, True, True, True, True, False),
    VllmVersion((0, 31), True, True, True, True, True, True, True),
)


# Engines without rules of their own here: as the newest, but nothing is drawn up ahead.
OTHERS = VERSIONS[-1]._replace(is_ahead=False)


def vllm_version(version: str) -> VllmVersion:
    """The rules of a version as its makers write it; the newest where it says none."""
    found = re.search(r"(\d+)\.(\d+)", version)
    if found is None:
        return VERSIONS[-1]
    given = (int(found[1]), int(found[2]))
    return next(row for row in reversed(VERSIONS) if given >= row.since)
