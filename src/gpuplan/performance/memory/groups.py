"""Groups of layers that share KV blocks: vLLM's hybrid KV cache, from a model's own layers.

Layers of a kind (full attention, a sliding window) are dealt out to groups of equally many layers,
the last one padded; a block is as many tokens of one group [vLLM-V1-scheduler].
"""

from collections.abc import Iterator
from math import ceil

from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.layers import Cache
from gpuplan.domain.model.network import Model
from gpuplan.performance.serving.vllm import VllmVersion

# One kind of layers may be so much more numerous than another before it is cut into more groups.
PADDED_RATIO, MORE_PADDED_RATIO = 1.25, 1.5


def has_windows(model: Model) -> bool:
    """Some layer keeps a sliding window of the context, or a chunk of it."""
    return any(c.window_tokens is not None and c.role == "kv" for _, c in model.caches())


def paid_layers(
    model: Model, layout: ServingLayout, rules: VllmVersion
) -> Iterator[tuple[int, Cache]]:
    """Every cache with the layers that memory is paid for: whole groups of them."""
    n_each, kinds = grouped(model, layout, rules)
    if not n_each:
        yield from model.caches()
    for cache, n_layers in kinds.items():
        yield ceil(n_layers / n_each) * n_each, cache


def grouped(
    model: Model, layout: ServingLayout, rules: VllmVersion
) -> tuple[int, dict[Cache, int]]:
    """Layers of one group, and those of each kind; 0 and none where there is one kind of blocks."""
    kinds = _kinds(model)
    if not kinds or not has_windows(model) or not rules.has_groups or layout.cp > 1:
        return 0, {}
    return _layers_of_a_group(list(kinds.values()), rules), kinds


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
