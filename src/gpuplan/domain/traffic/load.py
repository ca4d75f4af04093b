"""A load in figures: how much, how bursty, when it peaks."""

from gpuplan.domain.noun import dataclass


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
    peak_hour_start_s: float
    peak_hour_requests_per_s: float
    input_tokens_per_s: float
    output_tokens_per_s: float
