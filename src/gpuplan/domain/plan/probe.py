"""The next best measurement of a plan: short benchmark runs, what they cost and are worth."""

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """How many runs may be proposed, for how long the decision stands, what runs may cost."""

    n_most: int = 3
    n_months: float = 12.0  # for which the plan is paid before it is made again
    budget_usd: float | None = None  # None: whatever pays
    seed: int | None = None  # None: that of the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCommand:
    """A command line, and what it does."""

    what: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherChoice:
    """A fleet that the plan would change to, and how likely a run shows that."""

    fleet: str
    probability_frac: float
    extra_usd_per_month: float  # over the plan; below 0 it is saved


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCost:
    """What a run takes and what it is worth over the time that the decision stands."""

    duration_s: float
    usd: float
    value_usd: float  # expected, before the cost of the run

    @property
    def net_usd(self) -> float:
        """What is expected to be left."""
        return self.value_usd - self.usd


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One short benchmark of one replica, or of a few training steps."""

    workload: str
    subject: str  # 2 x H100 SXM TP2 FP8, vllm 0.15
    concurrency: tuple[int, ...]  # points of load, each a row for `calibrate`; empty: training
    cost: ProbeCost
    range_before: tuple[float, float]  # of the step time over the predicted one, 80 %
    range_after: tuple[float, float]  # expected
    changes: tuple[OtherChoice, ...]  # decisions that the run could change, likeliest first
    commands: tuple[ProbeCommand, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAdvice(Result):
    """Runs worth their cost, best first; without any, why the plan can be bought as it is."""

    name: str
    fleet: str  # of the plan
    usd_per_month: float
    n_months: float  # that the decision stands
    probes: tuple[Probe, ...]
    considered: tuple[tuple[str, ProbeCost], ...]  # every run that was weighed, best first
    lines: tuple[str, ...]
    after: tuple[ProbeCommand, ...]  # how results come back
    assumptions: tuple[Assumption, ...]
