"""What one iteration of a model does on one accelerator of a layout: shapes in, `StepWork` out."""

import math
from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.links import LinkModel
from gpuplan.domain.inference.serving import LoraUse, ServingLayout, StorageFormats
from gpuplan.domain.model.layers import (
    Attention,
    Cache,
    Experts,
    LatentAttention,
    LayerGroup,
    Recurrence,
)
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS, NumberFormat
from gpuplan.performance.collectives import (
    all_gather_curve,
)
from gpuplan.performance.kernels.step import (
    Adapters,
    ContextParallel,
    ExpertMatrices,
    Matrices,
    Mixing,
    StepWork,
)
from gpuplan.performance.memory.inference import lora_width
from gpuplan.performance.memory.weights import expert_ways, layer_pieces
from gpuplan.performance.serving.exchange import HALF_BYTES, exchange_work

UNLIMITED_TOKENS = 1e12
NOT_MULTIPLIED = ("other", "experts")  # norms and biases; experts have work of their own
INDEX_SPEED_UP = 2.0  # 8 bits over 16
# A shrinking and a growing product beside each packed projection: q-k-v, output, gate-up, down.
N_ADAPTER_OPERATORS = 8


class _Shares(NamedTuple):
    """How the layout divides work."""

    tp: int
    dp: int
    ep: int
    expert_ways: int


def step_work(
    model: Model,
    accelerator: Accelerator,
    *,
    storage: StorageFormats,
    layout: ServingLayout,
    link: LinkModel,
    adapters: LoraUse | None = None,
) -> StepWork:
    """Work of all layers in turn; pipeline stages follow each other, so pp divides nothing here."""
    shares = _Shares(layout.tp, layout.dp, layout.ep, expert_ways(layout))
    return StepWork(
        matrices=_matrices(model, accelerator, storage, layout),
        experts=_experts(model, accelerator, storage, shares),
        mixing=_mixing(model, accelerator, storage, shares),
        exchange=exchange_work(model, layout, link),
        memory_bytes_per_s=accelerator.memory.bytes_per_s,
        n_data_parallel=float(layout.dp),
        context=_context(model, storage, layout, link=link, shares=shares),
        adapters=_adapters(model, storage, layout, adapters),
    )


def _context(
    model: Model,
    storage: StorageFormats,
    layout: ServingLayout,
    *,
    link: LinkModel,
    shares: _Shares,
) -> ContextParallel:
    """Per layer with attention, on average over them."""
    groups = [g for g in model.main.groups if isinstance(g.mixer, Attention | LatentAttention)]
    n_layers = sum(g.n_layers for g in groups)
    if layout.cp == 1 or not n_layers:
        return ContextParallel()
    cached = sum(amount for g in groups for amount, _ in _cache_parts(g, storage, shares))
    answers = sum(g.n_layers * _answer_width(g) / layout.tp for g in groups)
    return ContextParallel(
        n_ranks=float(layout.cp),
        n_gathers=float(n_layers),
        gather=all_gather_curve(layout.cp, link),
        cache_bytes=cached / n_layers,
        answer_bytes=HALF_BYTES * answers / n_layers,
    )


def _answer_width(group: LayerGroup) -> float:
    """A token's queries, its partial answers and their weights, over all heads."""
    mixer = group.mixer
    if isinstance(mixer, LatentAttention):
        return mixer.n_heads * (2 * mixer.kv_rank + mixer.qk_rope_dim + 1.0)
    if isinstance(mixer, Attention):
        return mixer.n_heads * (mixer.qk_head_dim + mixer.v_head_dim + 1.0)
    return 0.0


def _adapters(
    model: Model, storage: StorageFormats, layout: ServingLayout, use: LoraUse | None
) -> Adapters:
    if use is None or use.request_frac == 0.0:
        return Adapters()
    hidden, groups = model.main.hidden_size, model.main.groups
    n_params = use.rank * sum(g.n_layers * lora_width(g, hidden, layout) for g in groups)
    return Adapters(
        flop=2.0 * n_params,
        adapter_bytes=n_params * storage.base.stored_bytes,
        n_adapters=float(use.n_adapters),
        token_frac=use.request_frac,
        n_operators=float(N_ADAPTER_OPERATORS * model.main.n_layers),
    )


def peak_flop_per_s(accelerator: Accelerator, form: NumberFormat) -> float:
    """Dense peak that weights in this format reach; formats the chip lacks run in 16 bits."""
    peaks = accelerator.peak_flop_per_s
    for name in (form.compute, "bf16", "fp16", "fp32"):
        if name in peaks:
            return peaks[name]
    return max(peaks.values())


def _matrices(
    model: Model, accelerator: Accelerator, storage: StorageFormats, layout: ServingLayout
) -> Matrices:
    """Matrices that every token passes; those of experts depend on who is asked."""
    params = {True: 0.0, False: 0.0}
    moved = {True: 0.0, False: 0.0}
    for group in model.main.groups:
        for part, n_params, ways in layer_pieces(group, layout, storage):
            if part in NOT_MULTIPLIED:
                continue
            form = storage.format_of(part)
            is_quantized = form is storage.quantized
            params[is_quantized] += group.n_layers * n_params / ways
            moved[is_quantized] += group.n_layers * n_params / ways * form.stored_bytes
    head = model.embedding.n_head_matrix_params / layout.tp
    return Matrices(
        quantized_flop=2.0 * params[True],
        quantized_bytes=moved[True],
        quantized_peak_flop_per_s=peak_flop_per_s(accelerator, storage.quantized or storage.base),
        base_flop=2.0 * params[False],
        base_bytes=moved[False],
        base_peak_flop_per_s=peak_flop_per_s(accelerator, storage.base),
        head_flop=2.0 * head,
        head_bytes=head * storage.format_of("head").stored_bytes,
        n_logits=float(model.embedding.n_vocab if head else 0),
    )


def _experts(
    model: Model, accelerator: Accelerator, storage: StorageFormats, shares: _Shares
) -> ExpertMatrices:
    form = storage.format_of("experts")
    peak = peak_flop_per_s(accelerator, form)
    groups = [(g.n_layers, g.feed_forward) for g in model.main.groups]
    routed = [(n, feed) for n, feed in groups if isinstance(feed, Experts)]
    if not routed:
        return ExpertMatrices(0.0, 0.0, peak, 0.0, 0.0, 0.0)
    # All expert layers of a network have the same counts; the largest group speaks for them.
    _, largest = max(routed, key=lambda pair: pair[0])
    n_params = sum(n * feed.n_expert_matrix_params for n, feed in routed) / shares.expert_ways
    return ExpertMatrices(
        flop=2.0 * n_params,
        expert_bytes=n_params * form.stored_bytes,
        peak_flop_per_s=peak,
        n_experts=float(largest.n_experts),
        n_active=float(largest.n_active),
        uneven_ranks=1.0 - 1.0 / shares.ep,
    )


class _Reach(NamedTuple):
    """Per token of context, without and with a limit, and the limit."""

    whole: float
    limited: float
    limit_tokens: float


def _reach(parts: list[tuple[float, float | None]]) -> _Reach:
    """Sums apart what sees everything and what sees at most a window."""
    whole = sum(amount for amount, limit in parts if limit is None)
    windows = [(amount, limit) for amount, limit in parts if limit is not None]
    limited = sum(amount for amount, _ in windows)
    if not limited:
        return _Reach(whole, 0.0, UNLIMITED_TOKENS)
    return _Reach(whole, limited, sum(a * w for a, w in windows) / limited)


def _mixing(
    model: Model, accelerator: Accelerator, storage: StorageFormats, shares: _Shares
) -> Mixing:
    groups = model.main.groups
    reads = _reach([part for g in groups for part in _cache_parts(g, storage, shares)])
    decode = _reach([part for g in groups for part in _score_parts(g, shares, is_decode=True)])
    prefill = _reach([part for g in groups for part in _score_parts(g, shares, is_decode=False)])
    states = sum(
        g.n_layers * s.n_elements * s.element_bytes / min(shares.tp, s.n_heads)
        for g in groups
        for s in g.states
    )
    scan = sum(
        g.n_layers * g.mixer.scan_flop_per_token / shares.tp
        for g in groups
        if isinstance(g.mixer, Recurrence)
    )
    return Mixing(
        cache_bytes=reads.whole,
        limited_cache_bytes=reads.limited,
        limit_tokens=min(reads.limit_tokens, decode.limit_tokens),
        state_bytes=2.0 * states,
        decode_flop=decode.whole,
        limited_decode_flop=decode.limited,
        prefill_flop=prefill.whole,
        limited_prefill_flop=prefill.limited,
        scan_flop=scan,
        peak_flop_per_s=peak_flop_per_s(accelerator, FORMATS["bf16"]),
    )


def _cache_parts(
    group: LayerGroup, storage: StorageFormats, shares: _Shares
) -> list[tuple[float, float | None]]:
    return [
        (group.n_layers * _token_bytes(cache, storage, shares), _limit(group, cache))
        for cache in group.caches
    ]


def _token_bytes(cache: Cache, storage: StorageFormats, shares: _Shares) -> float:
    heads_here = math.ceil(cache.n_heads / shares.tp)
    element_bytes = cache.fixed_element_bytes or storage.cache.stored_bytes
    return heads_here * cache.elements_per_head * element_bytes / cache.tokens_per_entry


def _limit(group: LayerGroup, cache: Cache) -> float | None:
    """Context that a decoding token reads of this cache at most."""
    limits = [] if cache.window_tokens is None else [float(cache.window_tokens)]
    mixer = group.mixer
    if isinstance(mixer, Attention | LatentAttention) and cache.role == "kv":
        selected = mixer.selected_tokens
        limits += [] if selected is None else [float(selected) * cache.tokens_per_entry]
    return min(limits, default=None)


def _score_parts(
    group: LayerGroup, shares: _Shares, *, is_decode: bool
) -> list[tuple[float, float | None]]:
    """Scores and values per token and token of context."""
    mixer = group.mixer
    if not isinstance(mixer, Attention | LatentAttention):
        return []
    if isinstance(mixer, LatentAttention):
        # Decoding works on the latent vector itself; prefill unpacks it first.
        absorbed = 2 * mixer.kv_rank + mixer.qk_rope_dim
        unpacked = mixer.qk_nope_dim + mixer.qk_rope_dim + mixer.v_head_dim
        width = absorbed if is_decode else unpacked
        entry = mixer.tokens_per_entry
    else:
        width, entry = mixer.qk_head_dim + mixer.v_head_dim, 1
    flop = group.n_layers * 2.0 * mixer.n_heads / shares.tp * width / entry
    limits = [n for n in (mixer.window_tokens, mixer.selected_tokens) if n is not None]
    return [(flop, float(min(limits) * entry) if limits else None), *_index_parts(group)]


def _index_parts(group: LayerGroup) -> list[tuple[float, float | None]]:
    """Scores of an indexer: over the whole context, in 8 bits, on every rank alike."""
    return [
        (
            group.n_layers
            * 2.0
            * cache.n_index_heads
            * cache.elements_per_head
            / cache.tokens_per_entry
            / INDEX_SPEED_UP,
            None,
        )
        for cache in group.caches
        if cache.n_index_heads
    ]
