"""Encoder-decoders of text: T5 and BART families. The decoder makes the output: it is main."""

from dataclasses import replace
from typing import NamedTuple

from gpuplan.catalog.architectures.blocks import Block, checked_heads, layers_of
from gpuplan.catalog.architectures.shape import Fields
from gpuplan.domain.model.network import Embedding, LayerStack, Role
from gpuplan.domain.noun import dataclass


class Side(NamedTuple):
    """Field names of one side."""

    n_layers: str
    n_heads: str
    inner: str


SIDES = {
    "decoder": Side("decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"),
    "encoder": Side("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"),
}
ROLES: tuple[Role, Role] = ("text", "encoder")
T5 = ("t5", "mt5", "umt5", "longt5", "byt5", "myt5")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Traits of a BART-like family."""

    position_rows: int | None = 0  # learned or stored rows beyond the context; None: computed
    has_embedding_norm: bool = True
    has_final_norm: bool = False


PAIRS = {
    "bart": Pair(position_rows=2),
    "blenderbot": Pair(has_embedding_norm=False, has_final_norm=True),
    "blenderbot-small": Pair(),
    "m2m_100": Pair(position_rows=None, has_embedding_norm=False, has_final_norm=True),
    "marian": Pair(has_embedding_norm=False),
    "mbart": Pair(position_rows=2, has_final_norm=True),
    "mvp": Pair(position_rows=2),
    "pegasus": Pair(has_embedding_norm=False, has_final_norm=True),
    "plbart": Pair(position_rows=2),
}


def t5_parts(f: Fields, *, is_tied: bool) -> tuple[Embedding, tuple[LayerStack, ...], int | None]:
    """Decoder and encoder of a T5-like network."""
    hidden, n_vocab = f.count("d_model", "hidden_size"), f.count("vocab_size")
    heads = f.count("num_heads", "num_attention_heads")
    buckets = f.count("relative_attention_num_buckets", default=32)
    block = Block(
        hidden=hidden,
        n_heads=heads,
        inner=f.count("d_ff", "intermediate_size"),
        bias="",
        head_dim=f.count("d_kv", default=max(1, hidden // heads)),
        norm_terms=1,
        is_gated=f.text("feed_forward_proj", default="relu").startswith("gated"),
    )
    n_encoder = f.count("num_layers", "num_hidden_layers")
    n_decoder = f.count("num_decoder_layers", default=n_encoder)
    is_every = f.text("model_type") == "umt5"  # relative positions in every layer
    groups = (
        layers_of(replace(block, is_causal=True), n_decoder, has_cross=True),
        layers_of(block, n_encoder),
    )
    stacks = tuple(
        LayerStack(
            role=role,
            hidden_size=hidden,
            groups=(group,),
            n_other_params=hidden + buckets * heads * (group.n_layers if is_every else 1),
        )
        for role, group in zip(ROLES, groups, strict=True)
    )
    table = n_vocab * hidden
    embedding = Embedding(
        n_vocab=n_vocab,
        n_input_params=table,
        n_output_params=0 if is_tied else table,
        is_tied=is_tied,
        n_head_matrix_params=table,
    )
    return embedding, stacks, f.maybe("n_positions", "max_position_embeddings", least=1)


def bart_parts(f: Fields, kind: str) -> tuple[Embedding, tuple[LayerStack, ...], int | None]:
    """Decoder and encoder of a BART-like network."""
    traits, hidden = PAIRS[kind], f.count("d_model", "hidden_size")
    context = f.maybe("max_position_embeddings", least=1)
    stacks = tuple(
        LayerStack(
            role=role,
            hidden_size=hidden,
            groups=(
                layers_of(
                    side_block(f, hidden, side),
                    f.count(SIDES[side].n_layers),
                    has_cross=side == "decoder",
                    cross_tokens=context if side == "decoder" else None,
                ),
            ),
            n_other_params=2 * hidden * (traits.has_embedding_norm + traits.has_final_norm),
        )
        for role, side in zip(ROLES, ("decoder", "encoder"), strict=True)
    )
    n_vocab = f.count("vocab_size")
    rows = 0 if traits.position_rows is None else 2 * ((context or 0) + traits.position_rows)
    embedding = Embedding(
        n_vocab=n_vocab,
        n_input_params=n_vocab * hidden,
        n_position_params=rows * hidden,
        is_tied=True,
        n_head_matrix_params=n_vocab * hidden,
    )
    return embedding, stacks, context


def side_block(f: Fields, hidden: int, side: str, bias: str = "qkvom") -> Block:
    """A layer of the encoder or of the decoder."""
    return Block(
        hidden=hidden,
        n_heads=checked_heads(f, hidden, SIDES[side].n_heads),
        inner=f.count(SIDES[side].inner),
        bias=bias,
        is_causal=side == "decoder",
    )
