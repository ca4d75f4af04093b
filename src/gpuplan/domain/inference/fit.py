"""Does a model fit, where, and with what room to spare.

One model and load on several accelerators, or in several precisions, side by side.
"""

import math

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.prediction import Prediction
from gpuplan.domain.inference.serving import (
    EngineSettings,
    InferenceMemory,
    SequenceLoad,
    ServingLayout,
    StorageFormats,
    Suggestion,
)
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Override
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A model on accelerators, as it would be started."""

    model: Model
    accelerator: Accelerator
    storage: StorageFormats
    layout: ServingLayout
    engine: EngineSettings
    load: SequenceLoad


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit(Result):
    """The answer for one deployment; figures are of the fullest accelerator."""

    deployment: Deployment
    memory: InferenceMemory
    max_context_tokens: int  # longest that the asked number of sequences could each have
    suggestions: tuple[Suggestion, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    cautions: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()

    @property
    def fits(self) -> bool:
        """The asked load has its cache, and the model takes contexts that long."""
        limit = self.deployment.model.max_context_tokens
        is_readable = limit is None or self.deployment.load.context_tokens <= limit
        return self.headroom_bytes >= 0 and self.memory.cache_bytes >= 0 and is_readable

    @property
    def headroom_bytes(self) -> float:
        """What is left after the asked load; negative is what is missing."""
        return self.memory.cache_bytes - self.memory.needed_bytes

    @property
    def max_concurrency(self) -> int:
        """Sequences of the asked length that the whole replica holds at once."""
        if self.memory.cache_bytes < 0:
            return 0
        if self.memory.sequence_bytes == 0:
            return self.deployment.engine.max_sequences  # nothing is kept between steps
        n_here = math.floor(self.memory.cache_bytes / self.memory.sequence_bytes)
        return n_here * self.deployment.layout.dp

    @property
    def cache_tokens(self) -> int:
        """Tokens of growing cache that the replica holds, in whole blocks."""
        if self.memory.block_bytes == 0 or self.memory.cache_bytes < 0:
            return 0
        n_blocks = math.floor(self.memory.cache_bytes / self.memory.block_bytes)
        return n_blocks * self.deployment.engine.block_tokens * self.deployment.layout.dp


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Result):
    """One model over the whole catalog: the fewest of each accelerator that hold it."""

    model: Model
    fits: tuple[Fit, ...]
    refused: tuple[tuple[Accelerator, str], ...]
    assumptions: tuple[Assumption, ...] = ()
    overrides: tuple[Override, ...] = ()
