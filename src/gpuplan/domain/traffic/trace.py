"""A recorded load: what to look for in a file, and what was found.

A load in figures: how much, how bursty, when it peaks.

Many clients, each with its own rate, burstiness and lengths, window by window.
"""

from typing import Literal

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthWindow:
    """Lengths of a client from a time on, with how often each was seen."""

    start_s: float
    input_tokens: Floats
    input_weight: Floats
    output_tokens: Floats
    output_weight: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One customer of a service: windows of equal length, in order of time."""

    name: str
    start_s: Floats  # of each window
    requests_per_s: Floats  # mean of each window
    gap_cv_ratio: Floats  # deviation over mean of the gaps in each window
    is_weibull: Ints  # 1: gaps of the window are Weibull; 0: Gamma
    lengths: tuple[LengthWindow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMix:
    """The clients of one service."""

    window_s: float
    clients: tuple[Client, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSummary:
    """What a stream of requests asks of a fleet."""

    n_requests: int
    span_s: float
    mean_requests_per_s: float
    gap_cv_ratio: float | None  # deviation over mean of gaps; None: fewer than two gaps
    dispersion_ratio: float | None  # variance over mean of counts per minute; None: under 2 minutes
    peak_minute_requests_per_s: float
    p99_minute_requests_per_s: float
    peak_hour_requests_per_s: float
    input_tokens_per_s: float
    output_tokens_per_s: float


TimeUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Which column of a plain file holds what; None is what the file does not have."""

    arrive: str | None
    input_tokens: str | None
    output_tokens: str | None
    session: str | None = None
    priority: str | None = None
    max_tokens: str | None = None  # of the answer, as asked for
    time_unit: TimeUnit | None = None  # None: from the column's name or the size of its numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """How to read a trace where its own format does not say."""

    columns: ColumnMap | None = None
    where: tuple[tuple[str, str], ...] = ()  # column and the value that rows must have
    max_rows: int = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRead:
    """Requests of a file, with all that was odd about it."""

    requests: Requests
    format: str
    remarks: tuple[str, ...]  # quirks of the file, and what was done about each
    n_bad: int  # lines that could not be read, and are not among the requests
    bad: tuple[Problem, ...]  # the first of them
    line: Ints  # of each request in the file; in tables without lines, its row, from 1
    has_arrivals: bool = True  # False: the file has lengths alone, and all requests stand at time 0
    start_at: str = ""  # instant of time 0, ISO 8601 in UTC; empty where the file has no dates
    blocks: PrefixBlocks | None = None  # content of prompts, where the file tells it
