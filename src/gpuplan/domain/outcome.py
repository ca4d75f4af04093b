"""What became of a stream of requests, request by request and over time."""

from dataclasses import dataclass

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.stream import Requests


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """One row per request; rows that were refused hold zeros and are not finished."""

    wait_s: Floats  # from arrival to the first iteration that reads the prompt
    ttft_s: Floats  # from arrival to the first token
    tpot_s: Floats  # (last token - first token) / (tokens - 1); 0 where there is one token
    e2e_s: Floats  # from arrival to the last token
    n_preemptions: Ints
    is_finished: Ints  # 1 or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOverTime:
    """Shares of all engines' time or memory, one row per bin; the last bin is whole."""

    bin_s: float
    busy_frac: Floats  # an iteration runs
    cache_frac: Floats  # blocks that are held
    compute_frac: Floats  # arithmetic at its peak would take this share
    bandwidth_frac: Floats  # memory traffic at its peak would take this share


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTotals:
    """Sums over all engines."""

    n_steps: int
    n_computed_tokens: int
    n_preemptions: int
    n_free_blocks: int  # after the last request has left
    busy_s: float
    span_s: float  # from the first arrival to the last token


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

    @property
    def finished(self) -> Ints:
        """Rows of the requests that were served to their end."""
        return np.flatnonzero(self.times.is_finished)

    @property
    def n_completed(self) -> int:
        """Requests that were served to their end."""
        return int(self.times.is_finished.sum())

    @property
    def n_refused(self) -> int:
        """Requests that the engine cannot serve at all."""
        return sum(count for _, count in self.refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """What a request must keep to; None is no limit."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One measure over the requests; the mean with its 95 % confidence interval."""

    mean_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    mean_low_s: float
    mean_high_s: float


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
    precision_frac: float  # useful share of the engines' time
    recall_frac: float  # share of the requests served within the objective
    backlog_requests_per_s: float  # growth of what is outstanding while requests arrive
    is_overloaded: bool
