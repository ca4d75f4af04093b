"""Models that tables give by their dimensions alone: layers, width and heads in, a Model out."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from gpuplan.csv_rows import noun_from, packaged_rows
from gpuplan.domain.model.layers import Attention, Experts, FeedForward, LayerGroup
from gpuplan.domain.model.network import Checkpoint, Embedding, LayerStack, Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.domain.provenance import Assumption

ASSUMED_VOCAB = 51_200
ASSUMED_HEAD_DIM = 128


class Dimensions(NamedTuple):
    """A decoder by its numbers; None follows the usual form of a GPT."""

    n_layers: int
    hidden: int
    n_heads: int | None = None
    n_kv_heads: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    is_gated: bool = False
    n_vocab: int | None = None
    is_tied: bool = True
    n_experts: int = 0
    n_active: int = 0


def model_from(name: str, dimensions: Dimensions, *, source: str) -> Model:
    """The decoder with these dimensions; what is not stated is assumed."""
    assumed: list[Assumption] = []
    n_heads = dimensions.n_heads or _assume(assumed, "heads", dimensions.hidden // ASSUMED_HEAD_DIM)
    n_vocab = dimensions.n_vocab or _assume(assumed, "vocab", ASSUMED_VOCAB)
    head_dim = dimensions.head_dim or dimensions.hidden // n_heads
    ffn = dimensions.ffn or 4 * dimensions.hidden
    group = LayerGroup(
        n_layers=dimensions.n_layers,
        mixer=_attention(dimensions, n_heads, head_dim),
        feed_forward=_feed_forward(dimensions, ffn),
        n_norm_params=4 * dimensions.hidden,
    )
    table = n_vocab * dimensions.hidden
    embedding = Embedding(
        n_vocab=n_vocab,
        n_input_params=table,
        n_output_params=0 if dimensions.is_tied else table,
        is_tied=dimensions.is_tied,
        n_head_matrix_params=table,
    )
    stack = LayerStack(role="text", hidden_size=dimensions.hidden, groups=(group,))
    return Model(
        name=name,
        kind="decoder",
        architecture="gpt",
        embedding=embedding,
        stacks=(stack,),
        max_context_tokens=None,
        checkpoint=Checkpoint(base=FORMATS["bf16"]),
        assumptions=tuple(assumed),
        source=source,
    )


def known_model(name: str) -> Model | None:
    """A published model whose configuration is in no catalog, or None."""
    row = _known().get(_key(name))
    if row is None:
        return None
    return model_from(row["name"], noun_from(Dimensions, row), source=row["source"])


def _attention(dimensions: Dimensions, n_heads: int, head_dim: int) -> Attention:
    n_kv = dimensions.n_kv_heads or n_heads
    kv = 2 * dimensions.hidden * n_kv * head_dim
    return Attention(
        n_heads=n_heads,
        n_kv_heads=n_kv,
        qk_head_dim=head_dim,
        v_head_dim=head_dim,
        n_matrix_params=2 * dimensions.hidden * n_heads * head_dim + kv,
        n_kv_matrix_params=kv,
    )


def _feed_forward(dimensions: Dimensions, ffn: int) -> FeedForward | Experts:
    n_params = (3 if dimensions.is_gated else 2) * dimensions.hidden * ffn
    if not dimensions.n_experts:
        return FeedForward(
            intermediate_size=ffn, is_gated=dimensions.is_gated, n_matrix_params=n_params
        )
    return Experts(
        n_experts=dimensions.n_experts,
        n_active=dimensions.n_active,
        intermediate_size=ffn,
        is_gated=dimensions.is_gated,
        n_expert_matrix_params=n_params,
        n_router_params=dimensions.hidden * dimensions.n_experts,
    )


def _assume(assumed: list[Assumption], what: str, value: int) -> int:
    why = "the row does not say"
    assumed.append(Assumption(what=what, value=str(value), why=why, change=f"column {what}"))
    return value


@cache
def _known() -> Mapping[str, Mapping[str, str]]:
    rows = packaged_rows("gpuplan.calibration", "data/training_models.csv")
    return {_key(row["name"]): row for row in rows}


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())
