"""How much is asked, hour by hour and year by year, and how many replicas answer it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, Ints, ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Rejection, RunNeeds
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.scenario.demand import LatencyMetric, Statistic
from gpuplan.domain.scenario.terms import FailureDomain
from gpuplan.domain.training.time import Goodput

# simulated: replayed; analytic: a formula; given: the user's own capacity or count.
SizingMethod = Literal["simulated", "analytic", "given"]
# What the peak of a demand counts: requests (documents too), samples, or busy accelerators.
LoadUnit = Literal["requests", "samples", "accelerators"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HourLoads:
    """A week as a few kinds of hours: load over the peak, and hours of the week at that load."""

    load_frac: Floats  # 1 is the peak
    hours_per_week: Floats  # sum to 168

    @property
    def mean_frac(self) -> float:
        """Load averaged over the week, over the peak."""
        return float((self.load_frac * self.hours_per_week).sum() / self.hours_per_week.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """How the peak moves over the horizon, over the peak of today; one row per named scenario."""

    scenarios: tuple[str, ...]  # mid first
    start_s: Floats  # of each period from today
    length_s: Floats
    load_ratio: Floats  # [scenario, period]: the highest within the period


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandProfile:
    """What one workload asks for."""

    workload: str
    unit: LoadUnit
    peak_requests_per_s: float | None = None  # or documents, or samples; None: counted otherwise
    n_accelerators: float | None = None  # busy at the peak, where the user counts so
    mean_requests_per_s: float | None = None
    n_users: float | None = None  # of a closed loop at the peak; its rate is that at the SLOs' pace
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    hours: HourLoads
    periods: Periods
    lines: tuple[str, ...]  # how the peak was found, in words
    assumptions: tuple[Assumption, ...] = ()

    def peak_of(self, scenario: int, period: int) -> float:
        """The peak, per second or in accelerators, in one period of one scenario."""
        peak = self.n_accelerators if self.peak_requests_per_s is None else self.peak_requests_per_s
        return float((peak or 0.0) * self.periods.load_ratio[scenario, period])


@dataclass(frozen=True, slots=True, kw_only=True)
class LittleClosure:
    """Rate times residence is what is in flight; the last is counted apart, as a check."""

    requests_per_s: float
    residence_s: float  # mean
    n_in_flight: float  # rate x residence
    n_counted: float  # time average, counted in the run
    cache_tokens: float  # held by what is in flight, on average


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitMargin:
    """One promise at the chosen size; low and high are the model's 80 % range."""

    metric: LatencyMetric
    statistic: Statistic
    limit_s: float
    reached_s: Estimate
    bound_s: float  # upper confidence bound of the run, which is what must keep the limit

    @property
    def is_kept(self) -> bool:
        """Even at the upper bound of the run."""
        return self.bound_s <= self.limit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Replicas beyond those that carry the load."""

    n_spare: int  # so that the promise holds after the failures to survive
    domain: FailureDomain
    n_failures: int
    why: str
    upgrade: str  # how a rolling upgrade goes
    n_headroom: int = 0  # of the spares, at least so many: for inputs that are not as assumed

    def with_headroom(self, n: int, why: str) -> "Reserve":
        """At least so many spares; failures and surprises may use the same ones."""
        if n <= self.n_spare:
            return replace(self, n_headroom=n)
        remarks = f"{self.why}; {why}" if self.n_spare else why
        return replace(self, n_spare=n, n_headroom=n, why=remarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaNeed:
    """Whole replicas that carry the load (without reserve), by scenario, period and hour."""

    n_replicas: Ints  # [scenario, period, hour], in the order of the demand's periods and hours

    @property
    def n_peak(self) -> int:
        """The most in any hour of the first period of the first scenario."""
        return int(self.n_replicas[0, 0].max())

    def n_most(self, scenario: int) -> int:
        """The most in any hour of any period."""
        return int(np.max(self.n_replicas[scenario]))

    def at_least(self, other: "ReplicaNeed") -> "ReplicaNeed":
        """The larger of both in every hour."""
        return ReplicaNeed(n_replicas=ints(np.maximum(self.n_replicas, other.n_replicas)))

    def scaled(self, share: float) -> "ReplicaNeed":
        """This share of them in every hour, in whole replicas."""
        return ReplicaNeed(n_replicas=ints(np.ceil(self.n_replicas * share - 1e-9)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUtilization:
    """Load over the capacity of the pool, where 1 is all that it could ever do."""

    peak_frac: float | None  # at the peak, with the replicas that carry the load
    safe_frac: float | None  # up to which this very pool keeps its promises
    band: str  # what that says of the usual 70 to 90 %


class LoadPower(NamedTuple):
    """Watts of one replica's accelerators over its load, as a share of its load at the peak."""

    peak_w: Estimate
    load_frac: tuple[float, ...] = ()  # rising from 0, idle with the model in memory
    watts: tuple[float, ...] = ()

    def at(self, load_frac: Floats) -> Floats:
        """Watts at these loads, between the points in proportion; without points, the peak's."""
        if not self.load_frac:
            return np.full(np.shape(load_frac), self.peak_w.value)
        return np.interp(load_frac, self.load_frac, self.watts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedLoad:
    """The most load that one replica carries within every SLO, by how far the model errs."""

    n_deviations: tuple[float, ...]  # of the model's error, rising: above 0 it is too slow
    load_per_s: tuple[float, ...]  # falls as the error rises; 0: no load is within the SLOs
    down_frac: float  # of the time that a replica is in repair


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """A candidate with the number of replicas that keeps its promises."""

    candidate: Candidate
    method: SizingMethod
    need: ReplicaNeed
    reserve: Reserve
    capacity_per_s: Estimate | None  # that one replica carries within the promises
    carried: CarriedLoad | None = None  # None: nobody waits for an answer
    limits: tuple[LimitMargin, ...] = ()
    little: LittleClosure | None = None
    utilization: PoolUtilization
    power: LoadPower | None = None  # None: only the limit of the board is known
    cold_start_s: Estimate | None = None
    remarks: tuple[str, ...] = ()  # why so many, and not one fewer

    @property
    def power_w(self) -> Estimate | None:
        """Of one replica at the peak, accelerators alone."""
        return self.power.peak_w if self.power else None

    @property
    def n_serving(self) -> int:
        """Replicas that carry the peak of the first period."""
        return self.need.n_peak

    @property
    def n_replicas(self) -> int:
        """With reserve."""
        return self.n_serving + self.reserve.n_spare

    @property
    def n_accelerators(self) -> int:
        """Whole accelerators at the peak of the first period, reserve included."""
        return self.candidate.n_accelerators_for(self.n_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSized:
    """A candidate that was not simulated because it cannot be the cheapest, or has no price."""

    candidate: Candidate
    n_replicas_least: int  # no fewer can carry the load at all
    cost_least_usd_per_h: float | None  # None: no price is known
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFigures:
    """How well a training run uses its accelerators, and how likely it fits them."""

    mfu_frac: float  # with attention
    fit_probability_frac: float
    is_past_knee: bool = False  # more accelerators than bring half of what they could
    needs: RunNeeds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedJob:
    """A training run or a heap of work on so many accelerators."""

    candidate: Candidate
    method: SizingMethod
    n_accelerators: int  # whole nodes
    n_accelerators_per_node: int
    n_slow_end: int | None  # at the slow end of utilization and goodput; None: no deadline
    flop: float
    accelerator_s: Estimate  # of useful work, all accelerators together
    wall_s: Estimate
    goodput: Goodput | None  # None: nothing was said of failures or checkpoints
    power_w: Estimate | None  # of all accelerators
    training: TrainingFigures | None = None  # None: no training run
    remarks: tuple[str, ...] = ()

    @property
    def ideal_s(self) -> float:
        """The run without stops."""
        return self.accelerator_s.value / self.n_accelerators

    @property
    def n_replicas(self) -> int:
        """Replicas of the candidate that fill the accelerators of the run."""
        share = self.candidate.share
        each = share.n_per_accelerator if share else 1
        return max(1, self.n_accelerators * each // self.candidate.n_accelerators)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """Everything that was proposed for one workload, and what became of it."""

    workload: str
    demand: DemandProfile
    sized: tuple[Sized, ...] = ()  # that may be chosen; cheapest first where prices are known
    compared: tuple[Sized, ...] = ()  # shown beside them: narrower, unmeasured or too uncertain
    jobs: tuple[SizedJob, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    skipped: tuple[NotSized, ...] = ()
    assumptions: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixPoint:
    """What one share of prompts found in the prefix cache means."""

    hit_frac: float
    prefill_tokens_per_s: float  # that must still be computed
    cache_tokens: float  # that lie in memory all the same
    n_replicas: int | None  # None: not sized


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingOptions:
    """How to search."""

    seed: int = 0
    n_requests: int = 6_000  # of one run, at least
    is_choice_alone: bool = False  # nothing is sized that is only shown beside it
    is_exhaustive: bool = False  # simulate every candidate, also those that cannot win
    slack_frac: float = 0.0  # simulate also those whose least cost is within this of another's
    max_utilization_frac: float = 0.7  # where only a capacity is known
    min_probability_frac: float | None = None  # of one service; None: at the predicted speed
    all_probability_frac: float | None = None  # that all services together are asked for
    is_probability_requested: bool = False  # by the user: what does not reach it is no plan
    n_replayed_whole: int = 200_000  # requests of a day or week that is replayed as it is


# USD per hour of so many replicas in whole nodes; None: no price is known.
PriceOf = Callable[[Candidate, int], float | None]
