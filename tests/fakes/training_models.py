"""Small and well-known networks, written out by hand for tests of training."""

from gpuplan.domain.model.layers import Attention, Experts, FeedForward, LayerGroup
from gpuplan.domain.model.network import Checkpoint, Embedding, LayerStack, Model
from gpuplan.domain.model.precision import FORMATS


def dense(
    n_layers: int = 32,
    hidden: int = 4096,
    *,
    n_heads: int = 32,
    n_kv_heads: int = 32,
    intermediate: int = 11008,
    n_vocab: int = 32000,
) -> Model:
    """A Llama-like decoder; the usual one is Llama-2-7B."""
    dim = hidden // n_heads
    n_kv = 2 * hidden * n_kv_heads * dim
    group = LayerGroup(
        n_layers=n_layers,
        mixer=Attention(
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            qk_head_dim=dim,
            v_head_dim=dim,
            n_matrix_params=2 * hidden * n_heads * dim + n_kv,
            n_kv_matrix_params=n_kv,
        ),
        feed_forward=FeedForward(
            intermediate_size=intermediate, is_gated=True, n_matrix_params=3 * hidden * intermediate
        ),
        n_norm_params=2 * hidden,
    )
    return _model(group, hidden, n_vocab)


def llama_3_8b() -> Model:
    """8,030,261,248 parameters."""
    return dense(n_kv_heads=8, intermediate=14336, n_vocab=128256)


def gpt(n_layers: int = 96, hidden: int = 12288, n_heads: int = 96) -> Model:
    """A GPT-3-like decoder with an ungated feed-forward part."""
    dim = hidden // n_heads
    group = LayerGroup(
        n_layers=n_layers,
        mixer=Attention(
            n_heads=n_heads,
            n_kv_heads=n_heads,
            qk_head_dim=dim,
            v_head_dim=dim,
            n_matrix_params=4 * hidden * hidden,
            n_kv_matrix_params=2 * hidden * hidden,
        ),
        feed_forward=FeedForward(
            intermediate_size=4 * hidden, is_gated=False, n_matrix_params=8 * hidden * hidden
        ),
        n_norm_params=4 * hidden,
    )
    return _model(group, hidden, 51200)


def mixture(n_experts: int = 8, n_active: int = 2) -> Model:
    """A small mixture of experts."""
    hidden, intermediate = 1024, 2048
    group = LayerGroup(
        n_layers=8,
        mixer=Attention(
            n_heads=16,
            n_kv_heads=4,
            qk_head_dim=64,
            v_head_dim=64,
            n_matrix_params=2 * hidden * hidden + hidden * 512,
            n_kv_matrix_params=hidden * 512,
        ),
        feed_forward=Experts(
            n_experts=n_experts,
            n_active=n_active,
            intermediate_size=intermediate,
            is_gated=True,
            n_expert_matrix_params=3 * hidden * intermediate,
            n_router_params=hidden * n_experts,
        ),
        n_norm_params=2 * hidden,
    )
    return _model(group, hidden, 32000)


def _model(group: LayerGroup, hidden: int, n_vocab: int) -> Model:
    table = n_vocab * hidden
    return Model(
        name="hand-made",
        kind="decoder",
        architecture="llama",
        embedding=Embedding(
            n_vocab=n_vocab,
            n_input_params=table,
            n_output_params=table,
            n_head_matrix_params=table,
        ),
        stacks=(
            LayerStack(role="text", hidden_size=hidden, groups=(group,), n_other_params=hidden),
        ),
        max_context_tokens=None,
        checkpoint=Checkpoint(base=FORMATS["bf16"]),
    )
