"""How each engine takes memory and fills a batch by default: few constants per engine version.

vLLM profiles a full batch before it sizes the cache, sampling included. From 0.21 on, captured
graphs are counted inside the engine's share, and the default share is 0.92 instead of 0.90
[vLLM-0.11, vLLM-0.21]. Fused kernels may sample with less than the sort that the logs show; no log
of a version that does so by default is public, so the sort's peak stands for all.
"""

from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import USUAL_ENGINE
from gpuplan.domain.inference.serving import EngineSettings, LoraSlots
from gpuplan.performance.serving.sglang import LEAST_SEQUENCES, chunk_tokens, sglang_version
from gpuplan.units import GIB

# Sorting one logit: 2 as computed + 4 in fp32, 4 + 8 sorted with its index,
# and the sort's own double buffer of 4 + 8 + 8 (index counter). Found in the logs (38.4 to 39.5)
# before it was explained so [measured:vllm-h100-2025].
SORT_BYTES_PER_LOGIT = 38.0
LARGE_DEVICE_BYTES = 70 * GIB
GRAPHS_COUNTED_SINCE = (0, 21)
USUAL_VERSION = tuple(int(part) for part in USUAL_ENGINE.version.split("."))
# TensorRT-LLM's benchmarks hand 0.95 of what the weights leave to the cache
# [TensorRT-LLM-perf-overview]; its sampler works on what it needs only.
TRTLLM_USE_FRAC = 0.97
# SGLang's default static share on large devices [SGLang-server-arguments].
SGLANG_USE_FRAC = 0.90
LEAN_SAMPLER_BYTES_PER_LOGIT = 6.0
TRTLLM_BATCH_TOKENS = 8192


def engine_settings(
    engine: str, version: tuple[int, ...] | None, accelerator: Accelerator
) -> EngineSettings:
    """The engine with its defaults for this device; engines not listed are set up like vLLM."""
    pair = (version[0], version[1]) if engine == "vllm" and version else None
    vllm = vllm_settings(accelerator, version=pair)
    if engine == "trtllm":
        return replace(
            vllm,
            name="trtllm",
            memory_use_frac=TRTLLM_USE_FRAC,
            max_sequences=2048,
            max_batch_tokens=TRTLLM_BATCH_TOKENS,
            block_tokens=64,
            sampler_bytes_per_logit=LEAN_SAMPLER_BYTES_PER_LOGIT,
        )
    if engine == "sglang":
        rules = sglang_version(".".join(map(str, version or ())))
        return replace(
            vllm,
            name="sglang",
            memory_use_frac=SGLANG_USE_FRAC,
            max_sequences=LEAST_SEQUENCES,
            max_batch_tokens=chunk_tokens(rules, accelerator.memory.visible_bytes),
            block_tokens=1,
            sampler_bytes_per_logit=LEAN_SAMPLER_BYTES_PER_LOGIT,
        )
    return vllm if engine == "vllm" else replace(vllm, name=engine)


def vllm_settings(
    accelerator: Accelerator,
    *,
    version: tuple[int, int] | None = None,
    memory_use_frac: float | None = None,
    max_sequences: int | None = None,
    lora: LoraSlots | None = None,
) -> EngineSettings:
    """vLLM as an API server with its defaults for this device [vLLM-defaults]."""
    # Large devices get larger batches, except the A100, where they cost throughput.
    is_large = accelerator.memory.visible_bytes >= LARGE_DEVICE_BYTES
    is_large = is_large and not accelerator.id.startswith("a100")
    major, minor = version or USUAL_VERSION
    counts_graphs = (major, minor) >= GRAPHS_COUNTED_SINCE
    return EngineSettings(
        name=f"vllm {major}.{minor}",
        memory_use_frac=memory_use_frac or (0.92 if counts_graphs else 0.90),
        max_sequences=max_sequences or (1024 if is_large else 256),
        max_batch_tokens=8192 if is_large else 2048,
        block_tokens=16,
        sampler_bytes_per_logit=SORT_BYTES_PER_LOGIT,
        counts_graphs=counts_graphs,
        lora=lora,
    )
