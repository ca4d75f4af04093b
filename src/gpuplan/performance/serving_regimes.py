"""One deployment under one load: work, constants and case in; throughput and latency out."""

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.performance import Regime, ServingSetup
from gpuplan.domain.serving import InferenceMemory, Load
from gpuplan.performance.kernels.closed_loop import LoopLoad, PromptTimes, first_token_waits
from gpuplan.performance.kernels.regimes import (
    REGIMES,
    LoopTimes,
    RegimeConstants,
    Served,
    ServingCase,
    closed_loop,
    decode_token_s,
    loop_times,
    mixed_load,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork, step_time_s
from gpuplan.performance.memory.inference import inference_memory

N_WAVES = 4
# Benchmarks draw answer lengths from the upper fifth of the asked one [vLLM-bench-random].
LENGTH_SPREAD_FRAC = 0.2
LEAST_PROMPTS = 1.5  # below, an iteration has room for one prompt only
MANY = 1e9  # requests wait without end
# A model that does not fit is answered as if a hundredth of the memory were left: the caller says
# that it does not fit, the time is what it would take if it did.
LEAST_CACHE_FRAC = 0.01


def serving_case(setup: ServingSetup) -> tuple[ServingCase, bool]:
    """One replica's share of the load, and whether it fits."""
    load = setup.load
    memory = inference_memory(
        setup.model,
        setup.accelerator,
        storage=setup.storage,
        layout=setup.layout,
        engine=setup.settings,
        load=Load(context_tokens=int(load.input_tokens + load.output_tokens), n_sequences=1),
    )
    return case_in(memory, setup), memory.cache_bytes >= memory.sequence_bytes


def case_in(memory: InferenceMemory, setup: ServingSetup) -> ServingCase:
    """One replica's share of the load, where its memory is known."""
    load, n = setup.load, setup.n_replicas
    least = LEAST_CACHE_FRAC * memory.visible_bytes
    return ServingCase(
        n_sequences=MANY if load.n_sequences is None else max(1.0, load.n_sequences / n),
        requests_per_s=(load.requests_per_s or 0.0) / n,
        input_tokens=float(load.input_tokens),
        output_tokens=float(load.output_tokens),
        cache_bytes=max(memory.cache_bytes, least),
        n_stages=float(setup.layout.pp),
        cached_tokens=load.input_tokens * load.cached_input_frac,
        checked_tokens=1.0 if setup.drafts is None else setup.drafts.checked_tokens,
        gained_tokens=1.0 if setup.drafts is None else setup.drafts.gained_tokens,
    )


def serve(
    regime: Regime, work: StepWork, k: StepConstants, *, r: RegimeConstants, case: ServingCase,
    batch_tokens: float,
) -> Served:  # fmt: skip
    """What one replica gives in this regime."""
    if regime == "fixed_concurrency":
        times = loop_times(work, k, r, case)
        first_s, later_s = loop_waits(work, k, times, case=case, batch_tokens=batch_tokens)
        wait_s = r.first_wave_frac * first_s + (1.0 - r.first_wave_frac) * later_s
        return closed_loop(work, k, r, case, wait_s, times=times)
    served: Served = REGIMES[regime](work, k, r, case)
    return served


def loop_waits(
    work: StepWork, k: StepConstants, times: LoopTimes, *, case: ServingCase, batch_tokens: float
) -> tuple[float, float]:
    """Mean wait of a closed loop's first wave and of the later ones, simulated."""
    n_users = max(1, round(case.n_sequences))
    n_slots = max(1, min(n_users, int(times.n_running + 0.5)))
    decode_s = _decode_steps_s(work, k, case, n_slots)
    load = LoopLoad(case.input_tokens, case.output_tokens, LENGTH_SPREAD_FRAC, batch_tokens)
    prompt = _prompt_times(work, k, times, case=case, batch_tokens=batch_tokens)
    waits_s = first_token_waits(decode_s, prompt, n_users, n_slots, load, N_WAVES * n_users)
    return float(waits_s[:n_users].mean()), float(waits_s[n_users:].mean())


def _prompt_times(
    work: StepWork, k: StepConstants, times: LoopTimes, *, case: ServingCase, batch_tokens: float
) -> PromptTimes:
    """One prompt alone, and each further one up to the iteration's budget."""
    first_s = float(times.prompt_s)
    n_most = batch_tokens / case.input_tokens
    if n_most < LEAST_PROMPTS:
        return PromptTimes(first_s, first_s)
    here = times.n_running / case.n_stages
    all_s = step_time_s(work, k, mixed_load(case, n_most, here)) - times.step_s
    return PromptTimes(first_s, min(first_s, float(all_s - first_s) / (n_most - 1.0)))


def _decode_steps_s(
    work: StepWork, k: StepConstants, case: ServingCase, n_slots: int
) -> NDArray[np.float64]:
    """Time per token with 0, 1 … n_slots decoding; the empty one costs what a prompt does not."""
    counts = np.arange(n_slots + 1, dtype=np.float64) / case.n_stages
    return np.ascontiguousarray(decode_token_s(work, k, case, counts))
