"""A simulation as asked, and as answered."""

from dataclasses import dataclass

from gpuplan.domain.engine import Fleet
from gpuplan.domain.outcome import Outcome, ServingStatistics, Slo
from gpuplan.domain.performance import ServingSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """Settings of the engine's scheduler as typed; None is what was left out."""

    max_sequences: int | None = None
    max_batch_tokens: int | None = None
    n_blocks: int | None = None  # of the cache; None: what the memory leaves
    long_prefill_tokens: int | None = None
    memory_use_frac: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """A fleet and how to judge it, as typed; None is what was left out."""

    tp: int | None = None
    n_replicas: int = 1
    precision: str | None = None
    cache_precision: str | None = None
    engine: str = "vllm"
    engine_version: str | None = None
    scheduler: EngineRequest | None = None
    router: str = "least_outstanding"
    seed: int = 0
    warmup_s: float = 0.0
    slo: Slo | None = None
    bin_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A run with what it rests on and what it says."""

    setup: ServingSetup
    fleet: Fleet
    outcome: Outcome
    statistics: ServingStatistics
    slo: Slo
    wall_s: float  # that the run took, without the set-up
