"""Parameters of one pipeline stage on one accelerator, before data-parallel sharding."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from gpuplan.domain.model.layers import Attention, Experts, FeedForward, LatentAttention, LayerGroup
from gpuplan.domain.model.network import LayerStack, Model
from gpuplan.domain.training.setup import LoRA, ParallelLayout, Target

V_SHAPED = ("zbv", "v-half", "v-min")


class Stage(NamedTuple):
    """A place in the pipeline: what of the network stands there."""

    place: int
    layers_frac: float  # of all layers of the main stack
    has_input: bool
    has_head: bool


class StageParams(NamedTuple):
    """Counts on one accelerator; matrices can be quantized, the others cannot."""

    n_matrix: float
    n_other: float
    n_expert: float  # sharded over fewer ranks: expert parallelism took its part
    n_input: float
    n_head: float

    @property
    def n_dense(self) -> float:
        """All parameters but those of routed experts."""
        return self.n_matrix + self.n_other + self.n_input + self.n_head


def stages(model: Model, layout: ParallelLayout) -> list[Stage]:
    """The stages that can be the fullest: the first, the second and the last."""
    n_layers = model.main.n_layers
    if layout.pp == 1:
        return [Stage(0, 1.0, has_input=True, has_head=True)]
    deepest, ends = _layers_per_stage(n_layers, layout)
    first_has_head = layout.schedule in V_SHAPED
    found = [Stage(0, ends / n_layers, has_input=True, has_head=first_has_head)]
    if layout.pp > 2:
        found.append(Stage(1, deepest / n_layers, has_input=False, has_head=False))
    if not first_has_head:
        found.append(Stage(layout.pp - 1, ends / n_layers, has_input=False, has_head=True))
    return found


def _layers_per_stage(n_layers: int, layout: ParallelLayout) -> tuple[int, int]:
    if layout.counts_embedding_as_layer:
        slots = math.ceil((n_layers + 2) / layout.pp)
        return slots, slots - 1
    even = math.ceil(n_layers / layout.pp)
    return even, even


def stage_params(model: Model, layout: ParallelLayout, stage: Stage) -> StageParams:
    """What the stage keeps on each accelerator of its tensor- and expert-parallel group."""
    layers = [_layer_params(g, layout.tp, layout.ep) for g in model.main.groups]
    counts = [g.n_layers * stage.layers_frac for g in model.main.groups]
    table = model.embedding
    n_head = table.n_output_params
    # A tied head needs its own copy only where the input table stands on another accelerator.
    if table.is_tied and not stage.has_input:
        n_head = table.n_input_params
    others = _weighted([layer.n_other for layer in layers], counts)
    if stage.has_input:
        others += table.n_position_params + _n_towers(model)
    if stage.has_head:
        others += model.main.n_other_params
    return StageParams(
        n_matrix=_weighted([layer.n_matrix for layer in layers], counts),
        n_other=others,
        n_expert=_weighted([layer.n_expert for layer in layers], counts),
        n_input=table.n_input_params / layout.tp if stage.has_input else 0.0,
        n_head=n_head / layout.tp if stage.has_head else 0.0,
    )


def largest_layer(model: Model, layout: ParallelLayout) -> float:
    """Parameters of the largest single layer on one accelerator."""
    layers = [_layer_params(g, layout.tp, layout.ep) for g in model.main.groups]
    return max(layer.n_matrix + layer.n_other + layer.n_expert for layer in layers)


def largest_matrix(model: Model, layout: ParallelLayout) -> float:
    """Parameters of the largest single matrix of a layer on one accelerator."""
    return max(_widest(g, model.main.hidden_size) for g in model.main.groups) / layout.tp


class _LayerParams(NamedTuple):
    n_matrix: float
    n_other: float
    n_expert: float


@lru_cache(maxsize=4096)
def _layer_params(group: LayerGroup, tp: int, ep: int) -> _LayerParams:
    feed = group.feed_forward
    total = group.n_params / group.n_layers
    n_matrix = sum(part.n_matrix_params for part in (group.mixer, group.cross) if part)
    n_whole = group.mixer.n_down_matrix_params if isinstance(group.mixer, LatentAttention) else 0
    n_expert = 0.0
    if isinstance(feed, FeedForward):
        n_matrix += feed.n_matrix_params
    if isinstance(feed, Experts):
        n_matrix += feed.shared.n_matrix_params if feed.shared else 0
        n_expert = feed.n_experts * (feed.n_expert_matrix_params + feed.n_expert_other_params)
    n_other = total - n_matrix - n_expert
    split = (n_matrix - n_whole) / tp + n_whole
    return _LayerParams(split, n_other, n_expert / (tp * ep))


def _widest(group: LayerGroup, hidden_size: int) -> float:
    feed = group.feed_forward
    if feed is None:
        return group.mixer.n_matrix_params / 2 if group.mixer else 0.0
    return float(feed.intermediate_size * hidden_size)


def _n_towers(model: Model) -> float:
    return sum(s.n_params for s in model.stacks if s is not model.main and s.role != "mtp")


def _weighted(values: Sequence[float], counts: Sequence[float]) -> float:
    return sum(value * count for value, count in zip(values, counts, strict=True))


def adapter_params(model: Model, layout: ParallelLayout, adapter: LoRA) -> float:
    """Parameters of all adapters on one accelerator of a stage with 1/pp of the layers."""
    stack = model.main
    layers = sum(g.n_layers * _layer_adapters(g, stack, adapter) for g in stack.groups) / layout.pp
    head = 0.0
    if "head" in adapter.targets:
        head = adapter.rank * (stack.hidden_size + model.embedding.n_vocab / layout.tp)
    return layers / layout.tp + head


def _layer_adapters(group: LayerGroup, stack: LayerStack, adapter: LoRA) -> float:
    sizes = matrix_sizes(group, stack.hidden_size)
    wanted = [sizes[target] for target in adapter.targets if target in sizes]
    return float(adapter.rank * sum(n_in + n_out for n_in, n_out in wanted))


def matrix_sizes(group: LayerGroup, hidden_size: int) -> dict[Target, tuple[int, int]]:
    """Inputs and outputs of the matrices that adapters name; all experts count as one."""
    h = hidden_size
    sizes: dict[Target, tuple[int, int]] = {}
    mixer, feed = group.mixer, group.feed_forward
    if isinstance(mixer, Attention):
        q, kv = mixer.n_heads * mixer.qk_head_dim, mixer.n_kv_heads * mixer.qk_head_dim
        sizes |= {"q": (h, q), "k": (h, kv), "v": (h, kv), "o": (q, h)}
    if feed is not None:
        n = feed.n_experts if isinstance(feed, Experts) else 1
        wide, f = n * h, n * feed.intermediate_size
        sizes |= {"up": (wide, f), "down": (f, wide)}
        if feed.is_gated:
            sizes["gate"] = (wide, f)
    return sizes
