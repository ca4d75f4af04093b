"""One configuration predicted: memory, throughput, latency and power, each with its range."""

from collections.abc import Mapping

from gpuplan.domain.inference.performance import InferencePrediction, ServingSetup
from gpuplan.domain.inference.serving import InferenceMemory
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate, Override
from gpuplan.domain.result import Result

OVERLOAD_FRAC = 0.98  # of the rate: what is answered less is not for want of requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(Result):
    """What a deployment would do under its load."""

    setup: ServingSetup
    served: InferencePrediction
    memory: InferenceMemory
    power: Mapping[str, Estimate]  # power_w, energy_j_per_output_token; empty where unknown
    startup: Mapping[str, Estimate]  # by phase, and their total
    assumptions: tuple[Assumption, ...] = ()
    overrides: tuple[Override, ...] = ()

    @property
    def served_per_s(self) -> float:
        """Requests per second that are answered, all replicas."""
        return self.served.output_tokens_per_s.value / self.setup.load.output_tokens

    @property
    def is_overloaded(self) -> bool:
        """More requests come than are answered: waits grow for as long as the rate lasts."""
        requested = self.setup.load.requests_per_s
        return requested is not None and self.served_per_s < OVERLOAD_FRAC * requested


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePoint:
    """Where one phase of inference sits under the roofline of its accelerator."""

    phase: str  # prefill, decode
    n_tokens: int  # of the iteration
    flop: float
    traffic_bytes: float
    compute_s: float  # at the dense peak
    memory_s: float  # at the full bandwidth
    link_s: float  # predicted time in collectives
    host_s: float  # predicted time of the engine between iterations
    step_s: float  # predicted

    @property
    def intensity_flop_per_byte(self) -> float:
        """Arithmetic per byte moved."""
        return self.flop / self.traffic_bytes

    @property
    def limit(self) -> str:
        """What takes longest: compute, bandwidth, link or host."""
        parts = {
            "compute": self.compute_s,
            "bandwidth": self.memory_s,
            "link": self.link_s,
            "host": self.host_s,
        }
        return max(parts, key=lambda name: parts[name])

    @property
    def mfu_frac(self) -> float:
        """Share of the dense peak that the whole step reaches."""
        return self.compute_s / self.step_s

    @property
    def mbu_frac(self) -> float:
        """Share of the bandwidth that the whole step reaches."""
        return self.memory_s / self.step_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline(Result):
    """The phases of one deployment."""

    setup: ServingSetup
    points: tuple[PhasePoint, ...]
    assumptions: tuple[Assumption, ...] = ()
    overrides: tuple[Override, ...] = ()

    @property
    def ridge_flop_per_byte(self) -> float:
        """Intensity above which the 16-bit peak, not the memory, is the limit."""
        peaks = self.setup.accelerator.peak_flop_per_s
        peak = peaks.get("bf16") or peaks.get("fp16") or max(peaks.values())
        return peak / self.setup.accelerator.memory.bytes_per_s
