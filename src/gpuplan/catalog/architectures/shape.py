"""The sizes that all parts of a decoder share, under the many names that configurations use."""

from gpuplan.catalog.architectures.families import Family, canonical, family_of
from gpuplan.catalog.architectures.fields import STAND_IN, Fields
from gpuplan.domain.noun import dataclass

HIDDEN = ("hidden_size", "d_model", "n_embd", "hidden_dim", "dim", "model_dim", "embed_dim")
LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "num_decoder_layers")
HEADS = ("num_attention_heads", "n_heads", "n_head", "num_heads", "decoder_attention_heads")
KV_HEADS = (
    "num_key_value_heads",
    "n_kv_heads",
    "num_kv_heads",
    "n_head_kv",
    "multi_query_group_num",
    "num_query_groups",
    "kv_n_heads",
)
HEAD_DIM = ("head_dim", "kv_channels", "attention_head_dim", "d_kv", "head_size", "d_head")
INNER = (
    "intermediate_size",
    "ffn_dim",
    "n_inner",
    "ffn_hidden_size",
    "d_ff",
    "ffn_embed_dim",
    "feed_forward_hidden_size",
    "block_ff_dim",
    "mlp_hidden_size",
    "ffn_intermediate_size",
)
VOCAB = ("vocab_size", "n_vocab", "padded_vocab_size", "text_vocab_size", "embedding_size")
CONTEXT = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "n_ctx",
    "seq_length",
    "model_max_length",
    "max_context_length",
    "max_target_positions",
)
# Families whose inner width is four times the hidden one when nothing is said.
FOURFOLD = ("bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gptj", "mpt", "phi")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of a decoder and the configuration that they came from."""

    f: Fields
    model_type: str
    family: Family
    hidden: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    v_head_dim: int
    max_context: int | None
    cross_tokens: int | None = None  # what cross-attention layers see of the other stack

    def biases(self, letters: str) -> bool:
        """Whether any projection among these letters has a bias."""
        if any(letter in self.family.bias for letter in letters):
            return True
        flags = self.family.flags
        return any(
            self.f.flag(name) for name, where in flags if any(letter in where for letter in letters)
        )

    def norm(self, width: int) -> int:
        """Parameters of one norm over this many channels."""
        return self.family.norm_terms * width


def read_shape(f: Fields, model_type: str) -> Shape:
    """The sizes, each checked; heads must divide as the arithmetic needs."""
    kind = canonical(model_type)
    hidden = f.count(*HIDDEN)
    n_layers = _n_layers(f)
    n_heads = 1 if kind in ATTENTION_FREE else f.count(*HEADS)
    head_dim = _head_dim(f, hidden, n_heads)
    n_kv_heads = _n_kv_heads(f, kind, n_heads)
    shape = Shape(
        f=f,
        model_type=kind,
        family=family_of(model_type),
        hidden=hidden,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        v_head_dim=f.count("v_head_dim", default=head_dim),
        max_context=f.maybe(*CONTEXT, least=1),
    )
    _check_heads(f, shape)
    return shape


ATTENTION_FREE = ("mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm")


def _n_layers(f: Fields) -> int:
    listed = max(len(f.texts("layers_block_type")), len(f.text("hybrid_override_pattern")))
    n_layers = f.count(*LAYERS, default=listed or None)
    if n_layers > 4096:
        f.bad(LAYERS[0], f"got {n_layers:,}", "no network has more than 4,096 layers")
        return 1
    return n_layers


def _head_dim(f: Fields, hidden: int, n_heads: int) -> int:
    if f.given("head_dim") or not hidden % n_heads:
        return f.count(*HEAD_DIM, default=max(1, hidden // n_heads))
    found = f.maybe(*HEAD_DIM, least=1)
    is_known = hidden != STAND_IN  # else the width itself is the problem, and told
    if found is None and is_known and not f.given("kv_lora_rank"):
        f.bad(HEADS[0], f"{n_heads} heads do not divide {hidden} channels", "mend it or head_dim")
    return found or 1


def _n_kv_heads(f: Fields, kind: str, n_heads: int) -> int:
    if kind == "falcon" and is_new_falcon(f, n_heads):
        return f.count(*KV_HEADS, default=n_heads)
    if kind in ("falcon", "gpt_bigcode"):
        return 1 if f.flag("multi_query", default=True) else n_heads
    if kind == "chatglm" and not f.flag("multi_query_attention"):
        return n_heads
    config = f.child("attn_config")
    if config is not None and config.given("kv_n_heads"):
        return config.count("kv_n_heads")
    found = f.maybe(*KV_HEADS, least=1)
    is_misfit = found is not None and not f.given(*KV_HEADS) and n_heads % found
    return n_heads if found is None or is_misfit else found


def is_new_falcon(f: Fields, n_heads: int) -> bool:
    """The decoder of Falcon 40B and 180B: grouped heads, two norms."""
    n_kv_heads = f.maybe(*KV_HEADS, least=1) if f.given(*KV_HEADS) else None
    is_grouped = n_kv_heads is not None and 1 < n_kv_heads < n_heads
    return f.flag("new_decoder_architecture", default=is_grouped) or (
        is_grouped and not f.given("new_decoder_architecture")
    )


def _check_heads(f: Fields, shape: Shape) -> None:
    is_known = shape.n_heads != STAND_IN or f.given(*HEADS)
    if is_known and shape.n_heads % shape.n_kv_heads and "latent" not in shape.family.mixer:
        f.bad(
            KV_HEADS[0],
            f"{shape.n_heads} query heads are not a multiple of {shape.n_kv_heads}",
            "each key-value head serves the same number of query heads",
        )
