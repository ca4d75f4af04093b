"""What became of a stream of requests, request by request and over time."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.traffic.stream import Requests

WEIGHTED = "weighted"  # a router of unequal pools: each is sent its share of the load


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """One row per request; rows that were refused hold zeros and are not finished."""

    wait_s: Floats  # from arrival to the first iteration that reads the prompt
    ttft_s: Floats  # from arrival to the first token
    tpot_s: Floats  # (last token - first token) / (tokens - 1); 0 where there is one token
    e2e_s: Floats  # from arrival to the last token
    n_preemptions: Ints
    is_finished: Ints  # 1 or 0
    n_cached_tokens: Ints | None = None  # of the prompt, found in the cache; None: not kept

    def take(self, rows: Ints) -> "RequestTimes":
        """The named rows, in the order given."""
        cached = self.n_cached_tokens
        return RequestTimes(
            wait_s=self.wait_s[rows],
            ttft_s=self.ttft_s[rows],
            tpot_s=self.tpot_s[rows],
            e2e_s=self.e2e_s[rows],
            n_preemptions=self.n_preemptions[rows],
            is_finished=self.is_finished[rows],
            n_cached_tokens=None if cached is None else cached[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOverTime:
    """Shares of all engines' time or memory, one row per bin; the last bin is whole."""

    bin_s: float
    busy_frac: Floats  # an iteration runs
    cache_frac: Floats  # blocks that are held
    compute_frac: Floats  # arithmetic at its peak would take this share
    bandwidth_frac: Floats  # memory traffic at its peak would take this share
    allocated_frac: Floats | None = None  # replicas that are paid for; None: all, all the time

    def last_s(self, span_s: float) -> float:
        """How much of the last bin a run of this length covers."""
        return min(self.bin_s, span_s - self.bin_s * (len(self.busy_frac) - 1))

    def covered(self, values: Floats | Ints, span_s: float) -> Floats:
        """Shares or rates of bins, the last over the part of it that the run covers."""
        last_s, found = self.last_s(span_s), np.array(values, dtype=np.float64)
        found[-1:] *= self.bin_s / last_s if last_s > 0 else 1.0
        return floats(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTotals:
    """Sums over all engines."""

    n_steps: int
    n_computed_tokens: int
    n_preemptions: int
    n_free_blocks: int  # after the last request has left
    busy_s: float
    span_s: float  # from the first arrival to the last token
    n_asked_tokens: int = 0  # of prompts that were looked up in the cache of prefixes
    n_hit_tokens: int = 0  # of those, found


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOverTime:
    """Requests and tokens by bins of equal width, from the first arrival."""

    bin_s: float
    n_arrived: Ints
    n_ended: Ints
    output_tokens: Ints  # of the requests that ended in the bin
    n_outstanding: Ints  # at the end of the bin: arrived, accepted, not ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run: nothing that was asked is missing."""

    requests: Requests
    times: RequestTimes
    use: UseOverTime
    totals: EngineTotals
    n_engines: int
    refused: tuple[tuple[str, int], ...] = ()  # why, how many
    assumptions: tuple[Assumption, ...] = ()
    paid_engine_s: float | None = None  # None: every engine from first arrival to last token

    @property
    def paid_s(self) -> float:
        """Time of engines that is paid for, busy or not."""
        whole = self.totals.span_s * self.n_engines
        return whole if self.paid_engine_s is None else self.paid_engine_s

    @property
    def finished(self) -> Ints:
        """Rows of the requests that were served to their end."""
        return np.flatnonzero(self.times.is_finished)

    @property
    def n_requests(self) -> int:
        """Requests that came."""
        return len(self.requests)

    @property
    def n_completed(self) -> int:
        """Requests that were served to their end."""
        return int(self.times.is_finished.sum())

    @property
    def n_refused(self) -> int:
        """Requests that the engine cannot serve at all."""
        return sum(count for _, count in self.refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedOutcome:
    """A run that kept no request: its sums, and what they say."""

    n_requests: int
    n_completed: int
    n_left: int  # still in the fleet when the run was given up
    use: UseOverTime
    flow: FlowOverTime
    totals: EngineTotals
    statistics: "ServingStatistics"
    n_engines: int
    refused: tuple[tuple[str, int], ...] = ()
    assumptions: tuple[Assumption, ...] = ()

    @property
    def n_refused(self) -> int:
        """Requests that the engine cannot serve at all."""
        return sum(count for _, count in self.refused)

    @property
    def paid_s(self) -> float:
        """Time of engines that is paid for, busy or not."""
        return self.totals.span_s * self.n_engines


@dataclass(frozen=True, slots=True, kw_only=True)
class SloTargets:
    """What a request must keep to; None is no limit."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None
    kept_frac: float = 0.99  # share of the requests that must keep to all of it

    @property
    def is_given(self) -> bool:
        """There is a limit at all."""
        return any(limit is not None for limit in (self.ttft_s, self.tpot_s, self.e2e_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """95 % confidence interval of one percentile; None: the run is too short to bound it."""

    percentile: str  # "p99"
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One measure over the requests, with 95 % confidence intervals.

    Of single gaps between the tokens of answers, each counted once: within 0.05 %, no intervals.
    """

    n: int
    mean_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    p999_s: float
    max_s: float
    mean_low_s: float | None = None  # None: a single value says nothing about its error
    mean_high_s: float | None = None
    bounds: tuple[Bounds, ...] = ()  # p50 … p999


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """Arrivals at the beginning that are not measured."""

    cut_s: float  # after the first arrival
    n_requests: int
    is_automatic: bool
    is_settled: bool  # False: no steady state was found, and nothing was cut
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What the fleet delivered after the warm-up; good is what kept every limit."""

    requests_per_s: float
    input_tokens_per_s: float
    good_requests_per_s: float
    good_output_tokens_per_s: float
    token_recall_frac: float  # share of the demanded output tokens that came within the objective
    useful_frac: float  # share of the computed tokens that served a kept promise
    itl_mean_s: float | None  # over all single gaps between tokens; None: no answer has two
    warmup: Warmup


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingStatistics:
    """What a run says, after its warm-up."""

    n_measured: int
    ttft: Summary | None  # None: no request to measure
    tpot: Summary | None
    e2e: Summary | None
    wait: Summary | None
    output_tokens_per_s: float
    busy_frac: float
    precision_frac: float  # share of the paid time that worked for requests within the objective
    recall_frac: float  # share of the requests served within the objective
    backlog_requests_per_s: float  # growth of what is outstanding while requests arrive
    is_overloaded: bool
    delivery: Delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassStatistics:
    """What one class of the requests felt: those of a service, a priority, or a pool."""

    name: str
    n_requests: int  # after the warm-up
    n_completed: int
    recall_frac: float  # share served within the objective
    ttft: Summary | None  # None: none was served
    tpot: Summary | None
    e2e: Summary | None
