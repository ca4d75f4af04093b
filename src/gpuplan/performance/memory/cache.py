"""Key-value cache: exact bytes per sequence, in whole blocks, per accelerator."""

import math
from dataclasses import replace

from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.serving import EngineSettings, ServingLayout
from gpuplan.domain.model.layers import Cache
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import NumberFormat
from gpuplan.domain.simulation.engine import HybridPool, KvGroup
from gpuplan.performance.memory.groups import grouped, paid_layers
from gpuplan.performance.serving.vllm import NONE, VllmVersion, vllm_version

N_NULL_BLOCKS = 1
NO_CACHE_BLOCKS = 2**30  # of a model that keeps nothing between iterations


def sequence_bytes(deployment: Deployment) -> float:
    """KV cache and state of one sequence on the fullest accelerator."""
    model, layout, engine = deployment.model, deployment.layout, deployment.engine
    caches = sum(
        n_layers
        * resident_entries(cache, deployment.load.context_tokens, engine)
        * entry_bytes(cache, deployment.storage.cache, layout)
        for n_layers, cache in paid_layers(model, layout, _rules(engine))
    )
    states = sum(
        group.n_layers * state.n_elements * state.element_bytes / min(layout.tp, state.n_heads)
        for group in model.main.groups
        for state in group.states
    )
    return (caches / layout.cp + states) * _stage_frac(model, layout)


def block_bytes(deployment: Deployment) -> float:
    """One block of every layer whose cache grows with the whole context."""
    model, layout = deployment.model, deployment.layout
    per_entry = sum(
        n * entry_bytes(cache, deployment.storage.cache, layout) / cache.tokens_per_entry
        for n, cache in paid_layers(model, layout, _rules(deployment.engine))
        if cache.window_tokens is None
    )
    return per_entry / layout.cp * deployment.engine.block_tokens * _stage_frac(model, layout)


def hybrid_pool(setup: ServingSetup, cache_bytes: float, rules: VllmVersion) -> HybridPool | None:
    """The pool that so many bytes make; None where the engine has one kind of blocks alone."""
    n_layers, kinds = grouped(setup.model, setup.layout, rules)
    if not n_layers:
        return None
    one = entry_bytes(next(iter(kinds)), setup.storage.cache, setup.layout)
    n_blocks = math.floor(cache_bytes / (n_layers * one * setup.settings.block_tokens))
    # Assumption: a window comes before full attention, as in the first layers of every model known.
    by_window = sorted(kinds.items(), key=lambda each: each[0].window_tokens is None)
    groups = [_group(cache) for cache, n in by_window for _ in range(math.ceil(n / n_layers))]
    n_left = n_blocks - N_NULL_BLOCKS
    return (
        HybridPool(groups=tuple(groups), n_blocks=n_left, n_layers=n_layers) if n_left > 0 else None
    )


def padded_ratio(setup: ServingSetup, context_tokens: int) -> float:
    """KV cache of a sequence over what its layers and their windows alone would take."""
    bare = replace(setup.settings, name="")
    need = [
        sum(
            n * resident_entries(cache, context_tokens, engine) * cache.elements_per_head
            for n, cache in paid_layers(setup.model, setup.layout, _rules(engine))
        )
        for engine in (setup.settings, bare)
    ]
    return need[0] / need[1] if need[1] else 1.0


def _group(cache: Cache) -> KvGroup:
    if cache.window_tokens is None:
        return KvGroup(kind="full")
    return KvGroup(kind="window", tokens=cache.window_tokens)


def _rules(engine: EngineSettings) -> VllmVersion:
    """Of vLLM's version; those of no version where the engine is another."""
    return vllm_version(engine.name) if engine.name.startswith("vllm") else NONE


def n_cache_blocks(
    cache_bytes: float, *, sequence_bytes: float, context_tokens: int, block_tokens: int
) -> int:
    """Blocks that so many bytes hold, where one sequence of this length takes so much.

    One block is never handed out [vLLM-V1-scheduler].
    """
    each = sequence_bytes / math.ceil(context_tokens / block_tokens)
    if each == 0:
        return NO_CACHE_BLOCKS
    return max(0, min(NO_CACHE_BLOCKS, math.floor(cache_bytes / each)) - N_NULL_BLOCKS)


def resident_entries(cache: Cache, context_tokens: int, engine: EngineSettings) -> int:
    """Entries that a sequence of this length holds, in whole blocks."""
    if cache.role == "cross":
        return cache.window_tokens or context_tokens
    held_tokens, n_extra_blocks = context_tokens, 0
    is_whole = cache.is_chunked and _rules(engine).keeps_chunks
    if cache.window_tokens is not None and cache.window_tokens < context_tokens and not is_whole:
        # A window need not start where a block does, so it can touch one block more.
        held_tokens, n_extra_blocks = cache.window_tokens, 1
    n_entries = math.ceil(held_tokens / cache.tokens_per_entry)
    n_blocks = math.ceil(n_entries / engine.block_tokens) + n_extra_blocks
    n_whole = math.ceil(context_tokens / cache.tokens_per_entry / engine.block_tokens)
    return min(n_blocks, n_whole) * engine.block_tokens


def entry_bytes(cache: Cache, cache_format: NumberFormat, layout: ServingLayout) -> float:
    """One entry of one layer on one rank: heads are cut until each rank has one, then copied."""
    heads_here = math.ceil(cache.n_heads / layout.tp)
    element_bytes = cache.fixed_element_bytes or cache_format.stored_bytes
    return heads_here * cache.elements_per_head * element_bytes


def _stage_frac(model: Model, layout: ServingLayout) -> float:
    """Share of the layers on the deepest pipeline stage."""
    n_layers = model.main.n_layers
    return math.ceil(n_layers / layout.pp) / n_layers if n_layers else 1.0
