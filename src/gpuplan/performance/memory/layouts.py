"""Which layouts a model allows: heads, experts and layers come in whole numbers."""

from collections.abc import Iterator

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import ServingLayout, StorageFormats
from gpuplan.domain.model.layers import Attention, Experts, FeedForward, LatentAttention
from gpuplan.domain.model.network import Model
from gpuplan.errors import Problem
from gpuplan.performance.memory.weights import expert_columns


def layout_problems(model: Model, storage: StorageFormats, layout: ServingLayout) -> list[Problem]:
    """Everything that keeps this layout from running; empty when it can run."""
    return [
        *_head_problems(model, layout),
        *_expert_problems(model, layout),
        *_group_problems(model, storage, layout),
        *_stage_problems(model, layout),
    ]


def allowed_tp(model: Model, storage: StorageFormats, *, most: int) -> list[int]:
    """Powers of two up to the limit that this model can be cut into."""
    sizes = [2**k for k in range(most.bit_length()) if 2**k <= most]
    return [tp for tp in sizes if not layout_problems(model, storage, ServingLayout(tp=tp))]


def layout_cautions(layout: ServingLayout, accelerator: Accelerator) -> list[str]:
    """What would run, but badly."""
    link = accelerator.scale_up
    if layout.tp == 1 or accelerator.is_cpu:
        return []
    if link is None:
        return [
            f"{accelerator.name} has no scale-up link: tensor parallelism over "
            f"{layout.tp} of them goes through the host and will be slow"
        ]
    if layout.tp > link.n_domain_max:
        return [
            f"tensor parallelism over {layout.tp} leaves the {link.name} domain of "
            f"{link.n_domain_max}: every layer waits for the host's bus or the network"
        ]
    return []


def _head_problems(model: Model, layout: ServingLayout) -> Iterator[Problem]:
    for n_heads, n_kv_heads in sorted(_head_counts(model)):
        if n_heads % layout.tp:
            yield Problem(
                "--tp",
                f"{layout.tp} does not divide the {n_heads} attention heads of {model.name}",
                f"use a divisor of {n_heads}",
            )
        if n_kv_heads and n_kv_heads % layout.tp and layout.tp % n_kv_heads:
            yield Problem(
                "--tp",
                f"{layout.tp} neither divides nor is a multiple of the {n_kv_heads} KV "
                f"heads of {model.name}",
                f"use a divisor or a multiple of {n_kv_heads}",
            )


def _head_counts(model: Model) -> set[tuple[int, int]]:
    counts = set()
    for group in model.main.groups:
        if isinstance(group.mixer, Attention):
            counts.add((group.mixer.n_heads, group.mixer.n_kv_heads))
        elif isinstance(group.mixer, LatentAttention):
            counts.add((group.mixer.n_heads, 0))
    return counts


def _experts(model: Model) -> list[Experts]:
    parts = [group.feed_forward for group in model.main.groups]
    return [part for part in parts if isinstance(part, Experts)]


def _expert_problems(model: Model, layout: ServingLayout) -> Iterator[Problem]:
    if layout.ep == 1:
        return
    experts = _experts(model)
    if not experts:
        yield Problem("--ep", f"{model.name} has no experts", "leave --ep out")
    if (layout.tp * layout.dp) % layout.ep:
        yield Problem(
            "--ep",
            f"{layout.ep} does not divide the {layout.tp * layout.dp} accelerators of a stage",
            "use a divisor of tp x dp",
        )
    for n_experts in sorted({part.n_experts for part in experts}):
        if n_experts % layout.ep:
            yield Problem(
                "--ep",
                f"{layout.ep} does not divide the {n_experts} experts",
                f"use a divisor of {n_experts}",
            )


def _group_problems(
    model: Model, storage: StorageFormats, layout: ServingLayout
) -> Iterator[Problem]:
    """Quantization groups must not be cut through: kernels refuse such shards, or engines pad."""
    for part, width in sorted(_cut_widths(model, layout)):
        if width % 1:
            yield Problem(
                "--tp",
                f"{layout.tp} does not divide the width of the {part} of {model.name}",
                "use a smaller power of two",
            )
        is_padded = part == "experts" and storage.format_of(part).pad_multiple is not None
        size = _group_side(storage) if part in storage.parts and not is_padded else 1
        if width % size and not width % 1:
            yield Problem(
                "--tp",
                f"cuts the {part} into {width:.0f} columns, not a multiple of the "
                f"{size}-wide groups of {storage.quantized.name if storage.quantized else ''}",
                "use less tensor parallelism, or --ep",
            )


def _group_side(storage: StorageFormats) -> int:
    quantized = storage.quantized
    if quantized is None or quantized.group_size is None:
        return 1
    return 128 if quantized.name == "fp8-block" else quantized.group_size


def _cut_widths(model: Model, layout: ServingLayout) -> set[tuple[str, float]]:
    widths: set[tuple[str, float]] = set()
    for group in model.main.groups:
        feed = group.feed_forward
        if isinstance(feed, FeedForward) and feed.intermediate_size:
            widths.add(("feed_forward", feed.intermediate_size / layout.tp))
        if isinstance(feed, Experts):
            widths.add(("experts", expert_columns(feed, layout)))
    return widths


def _stage_problems(model: Model, layout: ServingLayout) -> Iterator[Problem]:
    if layout.pp > model.main.n_layers:
        yield Problem(
            "--pp",
            f"{layout.pp} stages for {model.main.n_layers} layers",
            f"use at most {model.main.n_layers}",
        )
