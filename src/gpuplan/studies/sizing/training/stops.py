"""What failures and checkpoints take of a run, and what was assumed of them."""

from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.workload import Training
from gpuplan.domain.training.time import CheckpointWrites, FailureRate, Goodput
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import checkpoint_bytes

RESTART_S = 900.0  # Assumption: detect, replace, load, warm up


class Interruptions:
    """The useful share of the clock on any number of accelerators."""

    def __init__(self, work: Training, n_trained_params: float) -> None:
        self.work = work
        plan = work.checkpoint
        self.write_bytes_per_s = plan.write_bytes_per_s if plan else None
        given = plan.state_bytes if plan else None
        self.state_bytes = given or checkpoint_bytes(n_trained_params)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What is not known, or taken as usual."""
        if self.write_bytes_per_s is None:
            why = "neither failures nor checkpoints are described"
            change = "workloads[].training.accelerator_mtbf_h, .checkpoint.write_gb_per_s"
            return (assume("goodput", "unknown: nothing is taken off", why, change),)
        if self.work.checkpoint is None or self.work.checkpoint.restart_s is None:
            value, why = f"{RESTART_S / 60:.0f} minutes", "detect, replace, load, warm up"
            change = "workloads[].training.checkpoint.restart_min"
            return (assume("restart after a failure", value, why, change),)
        return ()

    def goodput(self, n: int, write_bytes_per_s: float | None = None) -> Goodput | None:
        """On so many, at this or the middle write rate; None where nothing was said of it."""
        if self.write_bytes_per_s is None:
            return None
        plan, mtbf_s = self.work.checkpoint, self.work.accelerator_mtbf_s
        restart = plan.restart_s if plan else None
        return goodput(
            FailureRate(
                mtbf_s=None if mtbf_s is None else mtbf_s / n,
                restart_s=RESTART_S if restart is None else restart,
            ),
            CheckpointWrites(
                size_bytes=self.state_bytes,
                write_bytes_per_s=write_bytes_per_s or self.write_bytes_per_s.mid,
                interval_s=plan.interval_s if plan else None,
            ),
        )

    def useful_frac(self, n: int) -> Range:
        """The useful share at slow, middle and fast writes; 1 where it is not known."""
        rate = self.write_bytes_per_s
        if rate is None:
            return exactly(1.0)
        found = [self.goodput(n, each) for each in (rate.low, rate.mid, rate.high)]
        low, mid, high = (
            1.0 if each is None or each.goodput_frac is None else each.goodput_frac
            for each in found
        )
        return Range(low=low, mid=mid, high=high)
