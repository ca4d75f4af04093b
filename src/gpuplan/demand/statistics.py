"""Figures of a stream of requests, counted over whole windows of time."""

import numpy as np

from gpuplan.domain.columns import Floats, Ints, ints
from gpuplan.domain.traffic.load import LoadSummary
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import InputError, one
from gpuplan.units import HOUR, MINUTE

MAX_WINDOWS = 100_000_000
LONG_S = 6 * HOUR  # from here on hours tell more than minutes


def counts(arrive_s: Floats, window_s: float, *, duration_s: float | None = None) -> Ints:
    """Arrivals in each whole window from the first arrival on, or from 0 where a duration is given.

    The last, partial window is left out: it would count as a quiet one. A span shorter than one
    window is one window.
    """
    if not window_s > 0:
        raise one(InputError, "load", "window", f"got {window_s:g}", "must be above 0 seconds")
    if not len(arrive_s):
        return ints([])
    start = float(arrive_s[0]) if duration_s is None else 0.0
    span = float(arrive_s[-1]) - start if duration_s is None else duration_s
    n = max(1, int(span / window_s * (1 + 1e-12)))
    if n > MAX_WINDOWS:
        what = f"{n:,} windows of {window_s:g} s"
        raise one(InputError, "load", "window", what, f"at most {MAX_WINDOWS:,}")
    place = ((arrive_s - start) / window_s).astype(np.int64)
    return ints(np.bincount(place[place < n], minlength=n))


def telling_window_s(span_s: float) -> float:
    """The window in which a load of that span is best looked at."""
    return HOUR if span_s >= LONG_S else MINUTE


def gap_cv(arrive_s: Floats) -> float | None:
    """Burstiness: CV of inter-arrival times; None below two of them or without time."""
    gaps = np.diff(arrive_s)
    if len(gaps) < 2 or gaps.mean() == 0:
        return None
    return float(gaps.std(ddof=1) / gaps.mean())


def dispersion(
    arrive_s: Floats, window_s: float, *, duration_s: float | None = None
) -> float | None:
    """Index of dispersion: variance over mean of counts; 1 is Poisson, None below two windows."""
    n = counts(arrive_s, window_s, duration_s=duration_s)
    if len(n) < 2 or n.mean() == 0:
        return None
    return float(n.var(ddof=1) / n.mean())


def peak_hour(arrive_s: Floats) -> tuple[float, float]:
    """Start and mean rate of the busiest hour, wherever it begins; all of a span below an hour."""
    if not len(arrive_s):
        return 0.0, 0.0
    span = float(arrive_s[-1] - arrive_s[0])
    if span <= HOUR:
        return float(arrive_s[0]), len(arrive_s) / _span_s(arrive_s)
    # The busiest hour can be moved until it begins at an arrival.
    n_within = np.searchsorted(arrive_s, arrive_s + HOUR, side="left") - np.arange(len(arrive_s))
    best = int(np.argmax(n_within))
    return float(arrive_s[best]), float(n_within[best]) / HOUR


def summary(requests: Requests) -> LoadSummary:
    """The figures of a stream of at least one request: rates, burstiness, peaks."""
    if not len(requests):
        raise one(InputError, "load", "requests", "there are none", "give at least one")
    arrive = requests.arrive_s
    span = _span_s(arrive)
    minute_s = min(MINUTE, span)
    minutes = counts(arrive, minute_s)
    start, rate = peak_hour(arrive)
    return LoadSummary(
        n_requests=len(requests),
        span_s=float(arrive[-1] - arrive[0]),
        mean_requests_per_s=len(requests) / span,
        gap_cv_ratio=gap_cv(arrive),
        dispersion_ratio=dispersion(arrive, MINUTE) if span >= 2 * MINUTE else None,
        peak_minute_requests_per_s=float(minutes.max() / minute_s),
        p99_minute_requests_per_s=float(np.quantile(minutes, 0.99) / minute_s),
        peak_hour_start_s=start,
        peak_hour_requests_per_s=rate,
        input_tokens_per_s=float(requests.input_tokens.sum() / span),
        output_tokens_per_s=float(requests.output_tokens.sum() / span),
    )


def _span_s(arrive_s: Floats) -> float:
    """From the first arrival to one mean gap after the last: n gaps for n requests."""
    n_gaps = max(1, len(arrive_s) - 1)
    return float(arrive_s[-1] - arrive_s[0]) * (1.0 + 1.0 / n_gaps) or 1.0
