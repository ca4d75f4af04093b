"""Does a training job fit, and with what room to spare."""

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import Suggestion
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate, Override
from gpuplan.domain.result import Result
from gpuplan.domain.training.setup import ParallelLayout, TrainingMemory, TrainingSetup

# Assumption: of the memory, kept free for peaks that no model foresees and for what the allocator
# hoards beyond its usual share; layouts with less left are tried first, not planned.
RESERVE_FRAC = 0.08


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A model, how it is trained, and on what."""

    model: Model
    accelerator: Accelerator
    setup: TrainingSetup
    layout: ParallelLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFit(Result):
    """The answer for one job; figures are of the fullest accelerator."""

    job: TrainingJob
    memory: TrainingMemory
    peak: Estimate  # bytes
    max_micro_batch: int  # largest that fits with everything else as it is; 0: none
    suggestions: tuple[Suggestion, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    overrides: tuple[Override, ...] = ()

    @property
    def headroom_bytes(self) -> float:
        """What is left when the allocator gives back what it hoards; negative is missing."""
        return self.job.accelerator.memory.visible_bytes - self.memory.least_bytes

    @property
    def fits(self) -> bool:
        """It can run: what it cannot do without is within what a program can address."""
        return self.headroom_bytes >= 0

    @property
    def is_tight(self) -> bool:
        """It can run, but less is left than peaks and fragmentation are seen to take beyond it."""
        has = self.job.accelerator.memory.visible_bytes
        return self.fits and self.memory.total_bytes > (1.0 - RESERVE_FRAC) * has
