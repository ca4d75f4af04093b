"""A whole training run: its step, the useful share of the clock, and how long it takes.

Does a training job fit, and with what room to spare.
"""

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import Suggestion
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption, Estimate, Override
from gpuplan.domain.ranges import Range
from gpuplan.domain.result import Result
from gpuplan.domain.training.setup import ParallelLayout, TrainingMemory, TrainingSetup
from gpuplan.domain.training.time import Goodput, TrainingForecast

LIKELY_FRAC = 0.9  # probability of fitting below which a layout is tight: the end of the range


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
    fit_probability_frac: float  # that what it cannot do without is within the memory
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
        """It can run, but measured peaks are beyond the memory in more than one of ten jobs."""
        return self.fits and self.fit_probability_frac < LIKELY_FRAC


@dataclass(frozen=True, slots=True, kw_only=True)
class RunForecast(Result):
    """What was asked, column by column, and what is predicted for it."""

    model: Model
    columns: tuple[tuple[str, str], ...]
    forecast: TrainingForecast
    fit: TrainingFit  # memory of the same layout
    goodput: Goodput
    useful_frac: Range  # of the clock, with frequent to rare failures
    n_tokens: float | None  # of the whole run; None: not said

    @property
    def run_s(self) -> Estimate | None:
        """The whole run without stops."""
        if self.n_tokens is None:
            return None
        rate = self.forecast.tokens_per_s_per_accelerator
        n = self.forecast.step.n_accelerators
        return Estimate(
            value=self.n_tokens / rate.value / n,
            low=self.n_tokens / rate.high / n,
            high=self.n_tokens / rate.low / n,
            tier=rate.tier,
        )

    @property
    def wall_s(self) -> Estimate | None:
        """The whole run with failures, restarts and checkpoints; None: endless, or not asked."""
        run, useful = self.run_s, self.useful_frac
        if run is None or useful.low <= 0:
            return None
        return Estimate(
            value=run.value / useful.mid,
            low=run.low / useful.high,
            high=run.high / useful.low,
            tier=run.tier,
        )
