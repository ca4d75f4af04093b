"""A whole training run: its step, the useful share of the clock, and how long it takes."""

from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.ranges import Range
from gpuplan.domain.result import Result
from gpuplan.domain.training.fit import TrainingFit
from gpuplan.domain.training.time import Goodput, TrainingForecast


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
