"""A prefix cache as an engine without one sees it: less to read, as much to hold.

Prompts keep only the tokens that must be computed. What is cached still lies in memory and is
still attended to: each sequence reads it at every step, and holds its blocks. Exact for sequences
that share nothing and are equally long; conversations that share a prefix hold it once and need
less memory than is counted here.
"""

from dataclasses import replace
from math import ceil, floor

import numpy as np

from gpuplan.domain.simulation.engine import AttentionWork, EngineLimits, StepTable
from gpuplan.domain.traffic.stream import Requests, alike


def fresh_requests(requests: Requests, hit_frac: float) -> Requests:
    """The same arrivals and outputs, prompts without the share that the prefix cache holds."""
    if not hit_frac:
        return requests
    fresh = np.maximum(1, requests.input_tokens - np.floor(requests.input_tokens * hit_frac))
    return alike(requests, requests.arrive_s, fresh)


def with_cached_prefix(table: StepTable, cached_tokens: float) -> StepTable:
    """Step times of prompts that leave their cached tokens out."""
    work = table.attention
    in_window = min(cached_tokens, work.window_tokens)
    read = work.cache_bytes * cached_tokens + work.window_cache_bytes * in_window
    moved: AttentionWork = replace(
        work,
        # Latent attention does several times as much arithmetic for a decode as for a prompt token.
        prefix_decode_flop=work.decode_flop * cached_tokens + work.window_decode_flop * in_window,
        prefix_prefill_flop=work.prefill_flop * cached_tokens
        + work.window_prefill_flop * in_window,
        state_bytes=work.state_bytes + read,
    )
    return replace(table, attention=moved)


def with_resident_prefix(
    limits: EngineLimits, *, cached_tokens: float, other_tokens: float
) -> EngineLimits:
    """Blocks for the rest of a request, so that as many requests fit as with their prefix."""
    size = limits.block_tokens
    whole = ceil((cached_tokens + other_tokens) / size)
    n_blocks = floor(limits.n_blocks * ceil(other_tokens / size) / whole)
    return replace(limits, n_blocks=max(1, n_blocks))
