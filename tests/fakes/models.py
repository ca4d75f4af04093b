"""Small networks with figures that can be checked by hand, and a device to put them on."""

from gpuplan.domain.hardware.devices import (
    Accelerator,
    AcceleratorId,
    DeviceMemory,
    Lifecycle,
    PowerDraw,
    ScaleUpLink,
)
from gpuplan.domain.inference.fit import Deployment
from gpuplan.domain.inference.serving import SequenceLoad, ServingLayout, StorageFormats
from gpuplan.domain.model.layers import Attention, Cache, Experts, FeedForward, LayerGroup
from gpuplan.domain.model.network import Checkpoint, Embedding, LayerStack, Model
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.serving.engines import vllm_settings
from gpuplan.units import GIB

HIDDEN = 64
N_HEADS = 8
HEAD_DIM = 8
FFN = 256
VOCAB = 1024


def attention(*, n_kv_heads: int = 2, window_tokens: int | None = None) -> Attention:
    """q and o are 64 x 64; k and v are 64 x (8 per head)."""
    kv = 2 * HIDDEN * n_kv_heads * HEAD_DIM
    return Attention(
        n_heads=N_HEADS,
        n_kv_heads=n_kv_heads,
        qk_head_dim=HEAD_DIM,
        v_head_dim=HEAD_DIM,
        n_matrix_params=2 * HIDDEN * N_HEADS * HEAD_DIM + kv,
        n_kv_matrix_params=kv,
        window_tokens=window_tokens,
    )


def feed_forward(intermediate: int = FFN) -> FeedForward:
    return FeedForward(
        intermediate_size=intermediate, is_gated=True, n_matrix_params=3 * HIDDEN * intermediate
    )


def experts(n_experts: int = 8, n_active: int = 2) -> Experts:
    return Experts(
        n_experts=n_experts,
        n_active=n_active,
        intermediate_size=128,
        is_gated=True,
        n_expert_matrix_params=3 * HIDDEN * 128,
        n_router_params=HIDDEN * n_experts,
    )


def cache(*, n_kv_heads: int = 2, window_tokens: int | None = None) -> Cache:
    return Cache(n_heads=n_kv_heads, elements_per_head=2 * HEAD_DIM, window_tokens=window_tokens)


def model(
    *groups: LayerGroup, is_tied: bool = False, max_context_tokens: int | None = 4096
) -> Model:
    table = VOCAB * HIDDEN
    layers = groups or (dense_group(),)
    return Model(
        name="tiny",
        kind="decoder",
        architecture="llama",
        embedding=Embedding(
            n_vocab=VOCAB,
            n_input_params=table,
            n_output_params=0 if is_tied else table,
            is_tied=is_tied,
            n_head_matrix_params=table,
        ),
        stacks=(LayerStack(role="text", hidden_size=HIDDEN, groups=layers, n_other_params=HIDDEN),),
        max_context_tokens=max_context_tokens,
        checkpoint=Checkpoint(base=FORMATS["bf16"]),
    )


def dense_group(n_layers: int = 4, *, n_kv_heads: int = 2, window_tokens: int | None = None):
    return LayerGroup(
        n_layers=n_layers,
        mixer=attention(n_kv_heads=n_kv_heads, window_tokens=window_tokens),
        feed_forward=feed_forward(),
        caches=(cache(n_kv_heads=n_kv_heads, window_tokens=window_tokens),),
        n_norm_params=2 * HIDDEN,
    )


def moe_group(n_layers: int = 4, *, n_experts: int = 8) -> LayerGroup:
    return LayerGroup(
        n_layers=n_layers,
        mixer=attention(),
        feed_forward=experts(n_experts),
        caches=(cache(),),
        n_norm_params=2 * HIDDEN,
    )


def device(visible_bytes: float = 79.18 * GIB, *, name: str = "test-gpu") -> Accelerator:
    return Accelerator(
        id=AcceleratorId(name),
        name=name,
        vendor="test",
        family="Hopper",
        form_factor="SXM5",
        instruction_set="sm_90",
        peak_flop_per_s={"bf16": 989.4e12, "fp8": 1979e12},
        memory=DeviceMemory(
            kind="HBM3",
            marketed_bytes=visible_bytes * 1.02,
            driver_bytes=visible_bytes * 1.01,
            visible_bytes=visible_bytes,
            bytes_per_s=3.35e12,
        ),
        scale_up=ScaleUpLink(
            name="NVLink4", bytes_per_s=450e9, pair_bytes_per_s=450e9, n_domain=8, n_domain_max=8
        ),
        host_link=None,
        power=PowerDraw(limit_w=700.0, idle_w=70.0, loaded_idle_w=120.0),
        lifecycle=Lifecycle(launched="2022-10", status="on sale"),
    )


def deployment(
    network: Model,
    context_tokens: int = 1,
    *,
    layout: ServingLayout | None = None,
    cache: str = "bf16",
) -> Deployment:
    """The network on one device in 16 bits, with one sequence."""
    card = device()
    return Deployment(
        model=network,
        accelerator=card,
        storage=StorageFormats(
            base=FORMATS["bf16"], quantized=None, parts=(), cache=FORMATS[cache]
        ),
        layout=layout or ServingLayout(),
        engine=vllm_settings(card),
        load=SequenceLoad(context_tokens=context_tokens, n_sequences=1),
    )
