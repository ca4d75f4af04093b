"""One deployment under one load: work, constants and case in; throughput and latency out."""

from gpuplan.domain.inference.performance import Regime, ServingSetup
from gpuplan.domain.inference.serving import InferenceMemory
from gpuplan.performance.kernels.closed_loop import mean_waits, served_loop, users_room
from gpuplan.performance.kernels.columns import all_floats
from gpuplan.performance.kernels.regimes import (
    REGIMES,
    LoopTimes,
    RegimeConstants,
    Served,
    ServingCase,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork
from gpuplan.performance.memory.cache import padded_ratio
from gpuplan.performance.memory.inference import setup_memory

MANY = 1e9  # requests wait without end
# A model that does not fit is answered as if a hundredth of the memory were left: the caller says
# that it does not fit, the time is what it would take if it did.
LEAST_CACHE_FRAC = 0.01
# Engines that hold prompts back until every data-parallel rank has one (attention_dp_config), as
# all measured runs of them did; elsewhere the ranks wait for the one that reads.
BALANCING = ("trtllm",)


def serving_case(setup: ServingSetup) -> tuple[ServingCase, bool]:
    """One replica's share of the load, and whether it fits."""
    memory = setup_memory(setup, int(setup.load.input_tokens + setup.load.output_tokens))
    return case_in(memory, setup), memory.cache_bytes >= memory.sequence_bytes


def case_in(memory: InferenceMemory, setup: ServingSetup) -> ServingCase:
    """One replica's share of the load, where its memory is known."""
    load, n = setup.load, setup.n_replicas
    n_tokens = max(1, int(load.input_tokens + load.output_tokens))
    least = LEAST_CACHE_FRAC * memory.visible_bytes
    return ServingCase(
        n_sequences=MANY if load.n_sequences is None else max(1.0, load.n_sequences / n),
        requests_per_s=(load.requests_per_s or 0.0) / n,
        input_tokens=float(load.input_tokens),
        output_tokens=float(load.output_tokens),
        # Formulas count layers one by one; what an engine pads and keeps whole leaves less.
        cache_bytes=max(memory.cache_bytes / padded_ratio(setup, n_tokens), least),
        n_stages=float(setup.layout.pp),
        cached_tokens=load.input_tokens * load.cached_input_frac,
        checked_tokens=1.0 if setup.drafts is None else float(setup.drafts.checked_tokens),
        gained_tokens=1.0 if setup.drafts is None else float(setup.drafts.gained_tokens),
        is_balanced=float(setup.engine.name in BALANCING),
    )


def serve(
    regime: Regime,
    work: StepWork,
    k: StepConstants,
    *,
    r: RegimeConstants,
    case: ServingCase,
    batch_tokens: float,
) -> Served:
    """What one replica gives in this regime."""
    if regime == "fixed_concurrency":
        looped: Served = served_loop(work, k, r, case, batch_tokens, users_room(case.n_sequences))
        return looped
    served: Served = REGIMES[regime](work, k, r, case)
    return served


def loop_waits(
    work: StepWork, k: StepConstants, times: LoopTimes, *, case: ServingCase, batch_tokens: float
) -> tuple[float, float]:
    """Mean wait of a closed loop's first wave and of the later ones, simulated."""
    room = users_room(case.n_sequences)
    first_s, later_s = mean_waits(work, k, case, all_floats(times), batch_tokens, room)
    return first_s, later_s
