"""What failures and checkpoints take of a run, and what was assumed of them.

In: what is known of failures, storage and restarts. Out: the useful share of the clock on any
number of accelerators; what is not known is taken from published runs, with its range.
"""

from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.workload import CheckpointPlan
from gpuplan.domain.training.time import CheckpointWrites, FailureRate, Goodput
from gpuplan.performance.training.goodput import (
    USUAL_MTBF_S,
    goodput,
    usual_write_bytes_per_s,
)
from gpuplan.performance.training.run import checkpoint_bytes
from gpuplan.units import GB, HOUR, MINUTE

RESTART_S = 900.0  # Assumption: detect, replace, load, warm up
PUBLISHED = "published runs and clusters [Llama3-2024, Kokolis2025]"


class Interruptions:
    """The useful share of the clock on any number of accelerators."""

    def __init__(
        self,
        checkpoint: CheckpointPlan | None,
        n_trained_params: float,
        accelerator_mtbf_s: float | None = None,
    ) -> None:
        self.known = checkpoint or CheckpointPlan()
        self.state_bytes = self.known.state_bytes or checkpoint_bytes(n_trained_params)
        self.is_mtbf_known = accelerator_mtbf_s is not None
        self.mtbf_s = USUAL_MTBF_S if accelerator_mtbf_s is None else exactly(accelerator_mtbf_s)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What is taken as usual."""
        known, run = self.known, "workloads[].training"
        found = []
        if not self.is_mtbf_known:
            hours = self.mtbf_s.times(1 / HOUR)
            value = f"{hours.mid:,.0f} h per accelerator ({hours.low:,.0f} … {hours.high:,.0f})"
            change = f"{run}.accelerator_mtbf_h"
            found.append(assume("time between failures", value, PUBLISHED, change))
        if known.write_bytes_per_s is None:
            few, many = (usual_write_bytes_per_s(n).mid / GB for n in (8, 1024))
            value = f"checkpoints at {few:.3g} GB/s from a server, {many:.3g} GB/s from 128"
            change = f"{run}.checkpoint.write_gb_per_s"
            found.append(assume("storage", value, f"of {PUBLISHED}", change))
        if known.restart_s is None:
            value, why = f"{RESTART_S / MINUTE:.0f} minutes", "detect, replace, load, warm up"
            change = f"{run}.checkpoint.restart_min"
            found.append(assume("restart after a failure", value, why, change))
        return tuple(found)

    def write_bytes_per_s(self, n: int) -> Range:
        """Checkpoint bandwidth of so many accelerators, as given or as usual."""
        return self.known.write_bytes_per_s or usual_write_bytes_per_s(n)

    def goodput(self, n: int) -> Goodput:
        """On so many, with middle values."""
        return self._goodput(n, self.mtbf_s.mid, self.write_bytes_per_s(n).mid)

    def useful_frac(self, n: int) -> Range:
        """The useful share where failures are frequent and writes slow, usual, or the reverse."""
        rate, mtbf = self.write_bytes_per_s(n), self.mtbf_s
        low, mid, high = (
            self._goodput(n, *each).goodput_frac or 0.0
            for each in ((mtbf.low, rate.low), (mtbf.mid, rate.mid), (mtbf.high, rate.high))
        )
        return Range(low=low, mid=mid, high=high)

    def _goodput(self, n: int, mtbf_s: float, write_bytes_per_s: float) -> Goodput:
        restart_s = self.known.restart_s
        return goodput(
            FailureRate(mtbf_s=mtbf_s / n, restart_s=RESTART_S if restart_s is None else restart_s),
            CheckpointWrites(
                size_bytes=self.state_bytes,
                write_bytes_per_s=write_bytes_per_s,
                interval_s=self.known.interval_s,
            ),
        )
