"""One model and load on several accelerators, or in several precisions, side by side."""

from gpuplan.domain.inference.prediction import Prediction
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAccelerator:
    """One accelerator under the load, and the specification that decides its speed."""

    accelerator: str
    found: Prediction | None  # None: it does not run there
    decides: str  # memory bandwidth, tensor FLOP/s, interconnect, host, memory capacity
    reason: str = ""  # why it does not run; empty where it does

    @property
    def tokens_per_s(self) -> float:
        """Output tokens a second; 0 where it does not run."""
        return self.found.served.output_tokens_per_s.value if self.found else 0.0

    @property
    def tokens_per_j(self) -> float | None:
        """Output tokens for each joule of the accelerators; None: power is not known."""
        used = self.found.power.get("energy_j_per_output_token") if self.found else None
        return 1.0 / used.value if used and used.value else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorRanking(Result):
    """Accelerators for one model and load, the fastest first."""

    model: str
    rows: tuple[RankedAccelerator, ...]
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRow:
    """One precision: what it gains in speed and memory, and what it risks."""

    precision: str
    found: Prediction | None  # None: the accelerator or the engine does not run it
    speed_ratio: float | None  # output throughput over that of the widest precision
    risk: str  # to the quality of outputs; empty: as published
    reason: str = ""  # why it does not run; empty where it does


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionComparison(Result):
    """A model on one accelerator in several precisions, the widest first."""

    model: str
    accelerator: str
    rows: tuple[PrecisionRow, ...]
    assumptions: tuple[Assumption, ...] = ()
