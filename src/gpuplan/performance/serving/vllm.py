"""vLLM's scheduler by version: what each one does by default, as data.

[vLLM-V1-scheduler] A version has every rule that is not newer; without a minor number it is
taken for the newest. Before 0.8 the engine was another one (V0), which is simulated by the oldest
rules without a prefix cache.
"""

import re
from typing import NamedTuple


class VllmVersion(NamedTuple):
    """What a version does by default."""

    # Layers in groups, sliding windows beside full attention, share one pool (hybrid KV cache).
    has_groups: bool = False
    pads_groups: bool = False  # kinds of layers nearly as many as each other make one group each
    pads_more: bool = False  # the same where one is up to half as many again, not a quarter
    keeps_chunks: bool = False  # of local attention are whole, whatever has been passed of them
    caches_prefixes: bool = False  # equal leading blocks are kept and found again
    is_ahead: bool = False  # a step is drawn up while one runs (async scheduling)
    reserves_prompt: bool = False  # admitted only where the whole prompt has room
    reuses_bare_first: bool = False  # free blocks without text before the oldest with text
    fills_queue: bool = False  # of stages: with empty batches too, before one is waited for
    has_watermark: bool = False  # a share of blocks can be left free by admissions; 0 by default
    pads_decodes: bool = False  # one token of a prompt is read as a decode with its drafts is
    waits_for_late: bool = False  # of stages: preempted, with tokens on the way: not admitted yet
    keeps_turns: bool = False  # of stages: a victim that was passed over costs nobody a turn
    caps_windows: bool = False  # a prompt needs no more of a sliding window than it spans
    frees_windows_late: bool = False  # what a window has passed is free when its step has ended
    lone_prompt_is_whole: bool = False  # the limit on long prefills spares a request that is alone


# What each version brought; read in the source of every minor version from 0.15 to 0.32, and of
# groups in that of 0.8.5, 0.9.0 to 0.12.0, 0.17.0 and 0.18.0.
SINCE = (
    ((0, 8), "caches_prefixes"),
    ((0, 9, 1), "has_groups"),
    ((0, 10, 1), "keeps_chunks"),
    ((0, 12), "pads_groups"),
    ((0, 14), "is_ahead"),
    ((0, 18), "pads_more"),
    ((0, 19), "reserves_prompt"),
    ((0, 20), "caps_windows"),
    ((0, 23), "reuses_bare_first"),
    ((0, 23), "fills_queue"),
    ((0, 24), "has_watermark"),
    ((0, 25), "pads_decodes"),
    ((0, 26), "frees_windows_late"),
    ((0, 27), "waits_for_late"),
    ((0, 28), "keeps_turns"),
    ((0, 31), "lone_prompt_is_whole"),
)
N_PARTS, LAST_PATCH = 2, 99  # 0.9 alone is the last of its releases
NONE = VllmVersion()
NEWEST = VllmVersion(**{name: True for _, name in SINCE})
# Engines without rules of their own here: as the newest, but nothing is drawn up ahead.
OTHERS = NEWEST._replace(is_ahead=False)


def vllm_version(version: str) -> VllmVersion:
    """The rules of a version as its makers write it; the newest where it says none."""
    found = re.search(r"\d+(\.\d+)+", version)
    if found is None:
        return NEWEST
    given = tuple(int(part) for part in found[0].split("."))
    if len(given) == N_PARTS:
        given = (*given, LAST_PATCH)
    return VllmVersion(**{name: given >= since for since, name in SINCE})
