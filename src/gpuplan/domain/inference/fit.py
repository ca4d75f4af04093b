"""Does a model fit, where, and with what room to spare."""

import math

from gpuplan.domain.hardware.devices import Accelerator
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
