"""Engines whose layers are in groups: sliding windows beside full attention, on one pool."""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Ints
from gpuplan.domain.simulation.engine import EngineLimits, KvGroup
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import Problem
from gpuplan.simulation.serving.features import in_lines
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.groups import state as gr
from gpuplan.simulation.serving.kernels.groups.state import GroupedEngines

KINDS = {"full": gr.FULL, "window": gr.WINDOW, "chunk": gr.CHUNK, "state": gr.STATE}


def group_problems(limits: EngineLimits, *, is_lockstep: bool) -> list[Problem]:
    """Why these groups of layers cannot be simulated."""
    groups, rules = limits.groups, limits.admission
    if not groups:
        return []
    found = [
        Problem("KV groups", f"got {one.kind!r} of {one.tokens} tokens", "use full, window, …")
        for one in groups
        if one.kind not in KINDS or (one.kind in ("window", "chunk")) != (one.tokens > 0)
    ]
    others = {
        "SGLang": rules.prefill_first is not None,
        "pipeline stages": rules.n_stages > 1,
        "speculative decoding": limits.drafts is not None,
        "ranks in lockstep": is_lockstep,
        "a prefix cache of states": limits.caches_prefixes and "state" in {g.kind for g in groups},
    }
    what = [name for name, is_there in others.items() if is_there]
    fix = "not simulated together: leave one out"
    return found + [Problem("KV groups", f"with {name}", fix) for name in what]


def most_blocks(one: KvGroup, limits: EngineLimits) -> int:
    """Blocks of a group that a request, however long, has at once at most."""
    rules, longest = limits.admission, limits.max_context_tokens or st.FOREVER
    if one.kind == "state":
        return 1
    if one.kind == "full":
        return -(-longest // limits.block_tokens)
    n_batches = 2 if rules.blocks.frees_windows_late and rules.is_ahead else 1
    span = one.tokens - (one.kind == "window") + n_batches * limits.max_batch_tokens
    return -(-min(span, longest) // limits.block_tokens) + (one.kind == "window")


def blocks_needed(n_tokens: Ints, limits: EngineLimits) -> Ints:
    """Blocks that requests of so many tokens need at most, of all groups."""
    each = -(-np.maximum(n_tokens, 0) // limits.block_tokens)
    if not limits.groups:
        return each
    needed: Ints = sum(np.minimum(each, most_blocks(one, limits)) for one in limits.groups)
    return needed


def without_hybrid(limits: EngineLimits) -> EngineLimits:
    """The engine whose layers are all alike, with blocks for as many requests of mean length."""
    return _with_blocks(limits, limits.n_blocks)


def with_hybrid(limits: EngineLimits) -> EngineLimits:
    """The engine with the pool that its model's own groups of layers share."""
    pool = limits.admission.blocks.hybrid
    return limits if pool is None else _with_blocks(limits, pool.n_blocks, pool.groups)


def _with_blocks(
    limits: EngineLimits, n_blocks: int, groups: tuple[KvGroup, ...] = ()
) -> EngineLimits:
    blocks = replace(limits.admission.blocks, hybrid=None, groups=groups)
    return replace(limits, n_blocks=n_blocks, admission=replace(limits.admission, blocks=blocks))


def holds_each(limits: EngineLimits, n_tokens: Ints) -> bool:
    """The pool of groups has room for each request of so many tokens, alone."""
    grouped = with_hybrid(limits)
    return bool((blocks_needed(n_tokens, grouped) <= grouped.n_blocks).all())


def bounds(limits: EngineLimits, requests: Requests) -> tuple[EngineLimits, EngineLimits]:
    """Engines of equal layers: whose blocks run out before those of the groups, and never.

    Where both serve a stream alike, so does the engine with groups. A window holds at most all
    blocks of the requests that run; beyond its span, only what iterations on the way read.
    """
    grouped, size = with_hybrid(limits), limits.block_tokens
    total = requests.input_tokens + requests.output_tokens
    plenty = limits.max_sequences * (int(total.max(initial=1)) // size + 2)
    n_read = 2 * (limits.max_batch_tokens // size + 1)
    spans = [
        limits.max_sequences * (one.tokens // size + 3) + n_read + most_blocks(one, grouped)
        if one.tokens
        else plenty
        for one in grouped.groups
    ]
    low, high = 0, plenty
    while low < high:
        n = (low + high + 1) // 2
        low, high = (n, high) if sum(min(n, w) for w in spans) <= grouped.n_blocks else (low, n - 1)
    return _with_blocks(limits, max(1, min(low, limits.n_blocks))), _with_blocks(limits, plenty)


def with_groups(
    sim: st.FeaturedEngines, requests: Requests, limits: EngineLimits
) -> GroupedEngines:
    """The same engines with blocks one by one, all of them free."""
    n, widest, n_groups = *sim.slot.shape[:2], len(limits.groups)
    size, total = limits.block_tokens, requests.input_tokens + requests.output_tokens
    longest = int(total.max(initial=0)) // size + 2
    block = in_lines(n, limits.n_blocks, gr.N_BLOCK)
    block[:] = 0
    block[:, :, [gr.TEXT, gr.MET]] = st.NONE
    block[:, :, gr.FREE_BEFORE] = np.arange(-1, limits.n_blocks - 1)
    block[:, :, gr.FREE_AFTER] = np.arange(1, limits.n_blocks + 1)
    block[:, -1, gr.FREE_AFTER] = st.NONE
    sim.scalar[:, st.OLDEST], sim.scalar[:, st.NEWEST] = 0, limits.n_blocks - 1
    n_own = total // size + 1
    sim.extra[:, gr.FIRST_TEXT] = np.cumsum(n_own) - n_own
    n_buckets = 1 << max(4, limits.n_blocks.bit_length())
    return GroupedEngines(
        **sim._asdict()
        | {
            "limit": np.concatenate([sim.limit[0], _limits(limits)])[None],
            "bucket": np.full((n, n_buckets), st.NONE, dtype=np.int64),
            "extent": block,
            "entry": np.zeros((n, widest, n_groups, 2), dtype=np.int64),
            "chain": np.empty((n, widest, n_groups, longest), dtype=np.int64),
            "found": np.empty((n_groups, longest), dtype=np.int64),
        }
    )


def _limits(limits: EngineLimits) -> Ints:
    """Columns from `gr.FREES_LATE` on."""
    rules = limits.admission
    each = []
    for one in limits.groups:
        most = most_blocks(one, limits) if rules.blocks.caps_windows else st.FOREVER
        each += [KINDS[one.kind], one.tokens, most]
    return np.array([rules.is_ahead and rules.blocks.frees_windows_late, *each], dtype=np.int64)
