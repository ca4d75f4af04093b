"""Weights on one accelerator: which matrices a layout can cut, and in which format they lie."""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.model.layers import (
    Attention,
    Experts,
    FeedForward,
    LatentAttention,
    LayerGroup,
    Recurrence,
)
from gpuplan.domain.model.network import LayerStack, Model

# Engines pad the vocabulary so that every rank gets whole rows [vLLM-vocab-padding].
VOCAB_MULTIPLE = 64


class Piece(NamedTuple):
    """Parameters of one kind in one layer, and how many accelerators share them."""

    part: str
    n_params: float
    n_ways: float


# A sweep asks for the same deployment under many loads.
@lru_cache(maxsize=2048)
def weights_bytes(model: Model, storage: StorageFormats, layout: ServingLayout) -> float:
    """Weights on the fullest accelerator: layers of the deepest stage, then tables."""
    layers = sum(_stack_bytes(stack, storage, layout) for stack in model.stacks)
    return layers + _table_bytes(model, storage, layout)


def _stack_bytes(stack: LayerStack, storage: StorageFormats, layout: ServingLayout) -> float:
    if stack.role == "mtp":
        return 0.0  # loaded only for speculative decoding
    # Pipelines cut the main stack; towers stay whole on the first stage.
    n_stages = layout.pp if stack.role in ("text", "denoiser") else 1
    deepest_frac = math.ceil(stack.n_layers / n_stages) / stack.n_layers if stack.n_layers else 1.0
    is_tower = stack.role in ("vision", "audio")
    total = sum(
        group.n_layers
        * _pieces_bytes(layer_pieces(group, layout, storage), storage, is_tower=is_tower)
        for group in stack.groups
    )
    return total * deepest_frac + stack.n_other_params * storage.base.stored_bytes


def _pieces_bytes(pieces: Iterable[Piece], storage: StorageFormats, *, is_tower: bool) -> float:
    return sum(p.n_params / p.n_ways * _param_bytes(p.part, storage, is_tower) for p in pieces)


def _param_bytes(part: str, storage: StorageFormats, is_tower: bool) -> float:
    part = "tower" if is_tower and part != "other" else part
    return storage.format_of(part).stored_bytes


def layer_pieces(group: LayerGroup, layout: ServingLayout, storage: StorageFormats) -> list[Piece]:
    """All parameters that one layer holds, by part; step times read the same."""
    pieces = [Piece("other", group.n_norm_params, 1)]
    for mixer in (group.mixer, group.cross):
        if isinstance(mixer, Attention):
            pieces += _attention_pieces(mixer, layout)
        elif isinstance(mixer, LatentAttention):
            pieces += _latent_pieces(mixer, layout)
        elif isinstance(mixer, Recurrence):
            pieces.append(Piece("attention", mixer.n_matrix_params, layout.tp))
            pieces.append(Piece("other", mixer.n_other_params, layout.tp))
    if isinstance(group.feed_forward, FeedForward):
        pieces += _feed_forward_pieces(group.feed_forward, layout, "feed_forward")
    if isinstance(group.feed_forward, Experts):
        pieces += _expert_pieces(group.feed_forward, layout, storage)
    return pieces


def _attention_pieces(mixer: Attention, layout: ServingLayout) -> list[Piece]:
    # With more ranks than key-value heads the heads are copied, not cut.
    kv_ways = min(layout.tp, mixer.n_kv_heads)
    return [
        Piece("attention", mixer.n_matrix_params - mixer.n_kv_matrix_params, layout.tp),
        Piece("attention", mixer.n_kv_matrix_params, kv_ways),
        Piece("other", mixer.n_other_params, 1),
    ]


def _latent_pieces(mixer: LatentAttention, layout: ServingLayout) -> list[Piece]:
    # The down-projections make one vector for all heads: every rank needs them whole.
    return [
        Piece("attention", mixer.n_matrix_params - mixer.n_down_matrix_params, layout.tp),
        Piece("attention", mixer.n_down_matrix_params, 1),
        Piece("other", mixer.n_other_params, 1),
    ]


def _feed_forward_pieces(feed: FeedForward, layout: ServingLayout, part: str) -> list[Piece]:
    return [
        Piece(part, feed.n_matrix_params, layout.tp),
        Piece("other", feed.n_other_params, 1),
    ]


def _expert_pieces(experts: Experts, layout: ServingLayout, storage: StorageFormats) -> list[Piece]:
    ways = expert_ways(layout)
    n_params = experts.n_experts * experts.n_expert_matrix_params
    pieces = [
        Piece("experts", n_params * padded_frac(experts, layout, storage), ways),
        Piece("other", experts.n_experts * experts.n_expert_other_params, ways),
        Piece("router", experts.n_router_params, 1),
        Piece("other", experts.n_other_params, 1),
    ]
    if experts.shared:
        pieces += _feed_forward_pieces(experts.shared, layout, "shared_experts")
    return pieces


def expert_columns(experts: Experts, layout: ServingLayout) -> float:
    """Columns of one expert on one accelerator before padding."""
    cuts = layout.tp if layout.ep == 1 else max(1, layout.tp * layout.dp // layout.ep)
    return experts.intermediate_size / cuts


def padded_frac(experts: Experts, layout: ServingLayout, storage: StorageFormats) -> float:
    """Columns of an expert's shard as engines hold it, over those that it has."""
    multiple = storage.format_of("experts").pad_multiple
    columns = expert_columns(experts, layout)
    if multiple is None or columns % 1 or not columns:
        return 1.0
    return math.ceil(columns / multiple) * multiple / columns


def expert_ways(layout: ServingLayout) -> int:
    """Accelerators that the routed experts of one stage are spread over."""
    if layout.ep == 1:
        return layout.tp
    # Ranks left over by a small expert group cut each expert further.
    return layout.ep * max(1, layout.tp * layout.dp // layout.ep)


def _table_bytes(model: Model, storage: StorageFormats, layout: ServingLayout) -> float:
    tables = model.embedding
    inputs = _padded_frac(tables.n_vocab, layout.tp) * tables.n_input_params / layout.tp
    outputs = _padded_frac(tables.n_vocab, layout.tp) * tables.n_output_params / layout.tp
    input_bytes = inputs * _param_bytes("embedding", storage, False)
    output_bytes = outputs * _param_bytes("head", storage, False)
    positions_bytes = tables.n_position_params * storage.base.stored_bytes
    if layout.pp == 1:
        return input_bytes + output_bytes + positions_bytes
    # The first stage has the input table, the last the output table; no stage has both.
    return max(input_bytes, output_bytes) + positions_bytes


def _padded_frac(n_vocab: int, tp: int) -> float:
    if n_vocab == 0:
        return 1.0
    multiple = VOCAB_MULTIPLE * tp
    return math.ceil(n_vocab / multiple) * multiple / n_vocab
