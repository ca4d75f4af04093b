"""Command lines of serving engines, with the settings that the plan was simulated with."""

import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gpuplan.domain.plan.deployed import (
    Deployed,
    DeployedPool,
    RenderedFile,
    ReplicaShape,
    ServedModel,
)
from gpuplan.render.reasons import commented, head, reasons
from gpuplan.render.text import text_file

Args = list[tuple[str, object]]
# How vLLM hands KV caches over: both roles start alike, a router decides who does what.
KV_TRANSFER = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
QUANTIZED = {"fp8": "fp8", "int8": "int8"}  # that engines make from 16-bit weights as they load


# Builds of vLLM for boards other than NVIDIA's, by vendor. Those for TPUs are not published for
# every version, so the newest is named, and a comment says so.
VENDOR_IMAGES = {"amd": "vllm/vllm-openai-rocm:v{}", "google": "vllm/vllm-tpu:latest"}
CPU_IMAGE = "vllm/vllm-openai-cpu:v{}"


class EngineKind(NamedTuple):
    """How an engine is started and found."""

    program: tuple[str, ...]
    flags: Callable[[ReplicaShape, ServedModel], Args]
    port: int
    image: str
    running: str  # requests in flight, as Prometheus knows them; empty: it does not tell
    waiting: str
    ttft: str
    tpot: str


def kind_of(served: ServedModel) -> EngineKind:
    """The engine's own ways; one that is not known is started by hand."""
    return ENGINES.get(served.engine.name, ENGINES["vllm"])


def image_of(one: DeployedPool, served: ServedModel) -> str:
    """The published image of the engine's version."""
    version = served.engine.version or "latest"
    full = version if version.count(".") != 1 else f"{version}.0"
    name = kind_of(served).image
    if served.engine.name == "vllm":
        name = CPU_IMAGE if one.card.is_cpu else VENDOR_IMAGES.get(one.card.vendor.lower(), name)
    return name.format(full) if version != "latest" else name.split(":")[0] + ":latest"


def command_of(one: ReplicaShape, served: ServedModel) -> list[str]:
    """The whole command of one replica, word by word."""
    kind = kind_of(served)
    words = [*kind.program, *_subject(one, served)]
    for flag, value in kind.flags(one, served):
        words += [flag] if value is True else [flag, str(value)]
    return words


def _subject(one: ReplicaShape, served: ServedModel) -> list[str]:
    return ["--model-path", one.model] if served.engine.name == "sglang" else [one.model]


def precision_notes(one: DeployedPool, served: ServedModel) -> Iterator[str]:
    """What the engine cannot do by a flag, and boards that its image does not run on."""
    vendor = one.card.vendor.lower()
    if not one.card.is_cpu and vendor != "nvidia" and vendor not in VENDOR_IMAGES:
        yield (
            f"{image_of(one, served)} does not run on {one.card.vendor} {one.card.family}: put "
            "the vendor's own build in its place."
        )
    if vendor == "google" and served.engine.version:
        yield (
            f"The plan was simulated with {served.engine.name} {served.engine.version}: name that "
            "tag of the TPU build where it is published."
        )
    if served.is_published_precision or one.pool.precision in ("bf16", "fp16", *QUANTIZED):
        return
    yield (
        f"{one.model} is not published in {one.pool.precision}: put a checkpoint in that format "
        "in its place, and check its quality on your own task."
    )


def role_notes(one: DeployedPool) -> Iterator[str]:
    """What a pool of one role needs around it."""
    role = one.pool.layout.role
    if not role:
        return
    yield (
        f"These replicas {role} under prefill/decode disaggregation. A router sends each request "
        "to a prefill replica with max_tokens 1, then to a decode replica with the "
        "kv_transfer_params of its answer: `--to llm-d` and `--to dynamo` bring one."
    )
    yield (
        "Set VLLM_NIXL_SIDE_CHANNEL_HOST to the address of the replica's server; KV caches travel "
        "by RDMA where UCX finds NICs (UCX_NET_DEVICES)."
    )


def _vllm(one: ReplicaShape, served: ServedModel) -> Args:
    layout, settings = one.layout, served.settings
    lora = settings.lora
    found: list[tuple[str, object, bool]] = [
        ("--tensor-parallel-size", layout.tp, True),
        ("--pipeline-parallel-size", layout.pp, layout.pp > 1),
        ("--data-parallel-size", layout.dp, layout.dp > 1),
        ("--decode-context-parallel-size", layout.cp, layout.cp > 1),
        ("--enable-expert-parallel", True, layout.ep > 1),
        ("--max-model-len", served.max_context_tokens, served.max_context_tokens is not None),
        ("--max-num-seqs", settings.max_sequences, True),
        ("--max-num-batched-tokens", settings.max_batch_tokens, True),
        ("--gpu-memory-utilization", f"{settings.memory_use_frac:g}", True),
        ("--quantization", QUANTIZED.get(one.precision), _is_quantized(one, served)),
        ("--kv-cache-dtype", "fp8", served.cache_precision.startswith("fp8")),
        ("--enable-lora", True, lora is not None),
        ("--max-loras", lora.n_slots if lora else 0, lora is not None),
        ("--max-lora-rank", lora.max_rank if lora else 0, lora is not None),
        ("--kv-transfer-config", KV_TRANSFER, bool(one.role)),
    ]
    return [(flag, value) for flag, value, is_set in found if is_set]


def _sglang(one: ReplicaShape, served: ServedModel) -> Args:
    layout, settings = one.layout, served.settings
    lora = settings.lora
    found: list[tuple[str, object, bool]] = [
        ("--tp-size", layout.tp * layout.dp, True),
        ("--pp-size", layout.pp, layout.pp > 1),
        ("--dp-size", layout.dp, layout.dp > 1),
        ("--enable-dp-attention", True, layout.dp > 1),
        ("--ep-size", layout.ep, layout.ep > 1),
        ("--context-length", served.max_context_tokens, served.max_context_tokens is not None),
        ("--max-running-requests", settings.max_sequences, True),
        ("--chunked-prefill-size", settings.max_batch_tokens, True),
        ("--mem-fraction-static", f"{settings.memory_use_frac:g}", True),
        ("--quantization", QUANTIZED.get(one.precision), _is_quantized(one, served)),
        ("--kv-cache-dtype", "fp8_e4m3", served.cache_precision.startswith("fp8")),
        ("--enable-lora", True, lora is not None),
        ("--max-loras-per-batch", lora.n_slots if lora else 0, lora is not None),
        ("--max-lora-rank", lora.max_rank if lora else 0, lora is not None),
        ("--enable-metrics", True, True),
        ("--host", "0.0.0.0", True),
    ]
    return [(flag, value) for flag, value, is_set in found if is_set]


def _trtllm(one: ReplicaShape, served: ServedModel) -> Args:
    layout, settings = one.layout, served.settings
    found: list[tuple[str, object, bool]] = [
        ("--tp_size", layout.tp * layout.dp, True),
        ("--pp_size", layout.pp, layout.pp > 1),
        ("--ep_size", layout.ep, layout.ep > 1),
        ("--max_seq_len", served.max_context_tokens, served.max_context_tokens is not None),
        ("--max_batch_size", settings.max_sequences, True),
        ("--max_num_tokens", settings.max_batch_tokens, True),
        ("--kv_cache_free_gpu_memory_fraction", f"{settings.memory_use_frac:g}", True),
        ("--host", "0.0.0.0", True),
    ]
    return [(flag, value) for flag, value, is_set in found if is_set]


def _is_quantized(one: ReplicaShape, served: ServedModel) -> bool:
    return not served.is_published_precision and one.precision in QUANTIZED


ENGINES = {
    "vllm": EngineKind(
        program=("vllm", "serve"),
        flags=_vllm,
        port=8000,
        image="vllm/vllm-openai:v{}",
        running="vllm:num_requests_running",
        waiting="vllm:num_requests_waiting",
        ttft="vllm:time_to_first_token_seconds",
        tpot="vllm:request_time_per_output_token_seconds",
    ),
    "sglang": EngineKind(
        program=("python3", "-m", "sglang.launch_server"),
        flags=_sglang,
        port=30000,
        image="lmsysorg/sglang:v{}",
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        ttft="sglang:time_to_first_token_seconds",
        tpot="sglang:inter_token_latency_seconds",
    ),
    "trtllm": EngineKind(
        program=("trtllm-serve",),
        flags=_trtllm,
        port=8000,
        image="nvcr.io/nvidia/tensorrt-llm/release:{}",
        running="",
        waiting="",
        ttft="trtllm_time_to_first_token_seconds",
        tpot="trtllm_time_per_output_token_seconds",
    ),
}


def engine_scripts(deployed: Deployed, engine: str) -> Iterator[RenderedFile]:
    """A script for each pool of one server a replica that this engine serves."""
    for one in deployed.pools:
        served = one.served
        if served is None or served.engine.name != engine:
            continue
        yield text_file(f"serve-{one.name}.sh", _script(deployed, one, served))


def _script(deployed: Deployed, one: DeployedPool, served: ServedModel) -> str:
    notes = [*head(deployed), *reasons(one), *precision_notes(one, served), *role_notes(one)]
    notes.append(f"Start it on each of {one.pool.n_replicas} replicas; {image_of(one, served)}.")
    if one.pool.layout.n_servers_per_replica > 1:
        n = one.pool.layout.n_servers_per_replica
        notes.append(f"A replica spans {n} servers: start Ray on them first (ray start).")
    return "#!/usr/bin/env bash\n" + commented(notes) + f"set -eu\n{wrapped(one, served)}\n"


def wrapped(one: DeployedPool, served: ServedModel) -> str:
    """The command with one flag a line."""
    words = [shlex.quote(word) for word in command_of(one.shape, served)]
    lines, current = [], ""
    for word in words:
        if word.startswith("--") and current:
            lines.append(current)
            current = f"  {word}"
        else:
            current = f"{current} {word}".lstrip() if not lines else f"{current} {word}"
    return " \\\n".join([*lines, current])
