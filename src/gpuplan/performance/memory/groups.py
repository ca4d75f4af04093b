"""Groups of layers that share KV blocks: vLLM's hybrid KV cache, from a model's own layers.

Layers of a kind (full attention, a sliding window) are dealt out to groups of equally many layers,
the last one padded; a block is as many tokens of one group [vLLM-V1-scheduler].
"""

from math import ceil, floor

from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.model.layers import Cache
from gpuplan.domain.model.network import Model
from gpuplan.domain.simulation.engine import HybridPool, KvGroup
from gpuplan.performance.memory.cache import N_NULL_BLOCKS, entry_bytes
from gpuplan.performance.serving.vllm import VllmVersion

# One kind of layers may be so much more numerous than another before it is cut into more groups.
PADDED_RATIO, MORE_PADDED_RATIO = 1.25, 1.5


def has_windows(model: Model) -> bool:
    """Some layer keeps a sliding window of the context, or a chunk of it."""
    return any(c.window_tokens is not None and c.role == "kv" for _, c in model.caches())


def hybrid_pool(setup: ServingSetup, cache_bytes: float, rules: VllmVersion) -> HybridPool | None:
    """The pool that so many bytes make; None where the engine has one kind of blocks alone."""
    kinds, layout = _kinds(setup.model), setup.layout
    if not kinds or not rules.has_groups or layout.cp > 1 or not has_windows(setup.model):
        return None
    n_layers = _layers_of_a_group(list(kinds.values()), rules)
    one = entry_bytes(next(iter(kinds)), setup.storage.cache, layout)
    n_blocks = floor(cache_bytes / (n_layers * one * setup.settings.block_tokens))
    # Assumption: a window comes before full attention, as in the first layers of every model known.
    by_window = sorted(kinds.items(), key=lambda each: each[0].window_tokens is None)
    groups = [_group(cache) for cache, n in by_window for _ in range(ceil(n / n_layers))]
    n_left = n_blocks - N_NULL_BLOCKS
    return (
        HybridPool(groups=tuple(groups), n_blocks=n_left, n_layers=n_layers) if n_left > 0 else None
    )


def _group(cache: Cache) -> KvGroup:
    if cache.window_tokens is None:
        return KvGroup(kind="full")
    return KvGroup(kind="window", tokens=cache.window_tokens)


def _kinds(model: Model) -> dict[Cache, int]:
    """Layers by what they keep; none where blocks differ in size or something else is kept.

    Chunks of local attention: vLLM switches groups off for them by default. Recurrent states: its
    blocks are then as large as a state, which is no power of two of tokens.
    """
    found: dict[Cache, int] = {}
    for n_layers, cache in model.caches():
        found[cache] = found.get(cache, 0) + n_layers
    shapes = {(c.n_heads, c.elements_per_head, c.fixed_element_bytes) for c in found}
    is_plain = all(c.role == "kv" and c.tokens_per_entry == 1 for c in found)
    is_other = any(c.is_chunked for c in found) or any(g.states for g in model.main.groups)
    return found if len(shapes) == 1 and is_plain and not is_other else {}


def _layers_of_a_group(n_layers: list[int], rules: VllmVersion) -> int:
    """As many as the rarest kind has, or as the most frequent where they are nearly as many."""
    least, most = min(n_layers), max(n_layers)
    ratio = MORE_PADDED_RATIO if rules.pads_more else PADDED_RATIO
    return most if rules.pads_groups and most < least * ratio else least
