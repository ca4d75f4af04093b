"""How each engine takes memory and fills a batch when nobody says otherwise."""

from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import EngineSettings
from gpuplan.performance.memory.engines import vllm_settings

# TensorRT-LLM's benchmarks hand 0.95 of what the weights leave to the cache
# [TensorRT-LLM-perf-overview]; its sampler works on what it needs only.
TRTLLM_USE_FRAC = 0.97
# SGLang's default static share on large devices [SGLang-server-arguments].
SGLANG_USE_FRAC = 0.90
LEAN_SAMPLER_BYTES_PER_LOGIT = 6.0
TRTLLM_BATCH_TOKENS = 8192


def engine_settings(
    engine: str, version: tuple[int, int] | None, accelerator: Accelerator
) -> EngineSettings:
    """The engine with its defaults for this device; engines not listed are set up like vLLM."""
    vllm = vllm_settings(accelerator, version=version if engine == "vllm" and version else (0, 11))
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
        return replace(
            vllm,
            name="sglang",
            memory_use_frac=SGLANG_USE_FRAC,
            block_tokens=1,
            sampler_bytes_per_logit=LEAN_SAMPLER_BYTES_PER_LOGIT,
        )
    return vllm if engine == "vllm" else replace(vllm, name=engine)
