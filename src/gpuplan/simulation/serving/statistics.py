"""What a run says: percentiles after the warm-up, confidence, useful time and kept promises.

Percentiles are of requests, never of averages. TPOT is (last token - first token) / (tokens - 1),
over requests with more than one token.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.outcome import Outcome, ServingStatistics, Slo, Summary

N_BATCHES = 20  # of consecutive requests: their means are nearly independent
LEAST_BACKLOG = 32
Mask = NDArray[np.bool_]


def statistics_of(
    outcome: Outcome, *, warmup_s: float = 0.0, slo: Slo | None = None
) -> ServingStatistics:
    """Measures over requests that arrive after the warm-up; sums over the same time."""
    since_s = outcome.requests.arrive_s - (
        outcome.requests.arrive_s[0] if len(outcome.requests) else 0.0
    )
    is_measured = since_s >= warmup_s
    rows = np.flatnonzero(is_measured & (outcome.times.is_finished == 1))
    many = rows[outcome.requests.output_tokens[rows] > 1]
    times = outcome.times
    growth, is_overloaded = _backlog(outcome, since_s)
    return ServingStatistics(
        n_measured=len(rows),
        ttft=summary(times.ttft_s[rows]),
        tpot=summary(times.tpot_s[many]),
        e2e=summary(times.e2e_s[rows]),
        wait=summary(times.wait_s[rows]),
        output_tokens_per_s=_output_rate(outcome, since_s, warmup_s),
        busy_frac=_busy_frac(outcome),
        precision_frac=_busy_frac(outcome) * _useful_frac(outcome),
        recall_frac=_recall_frac(outcome, is_measured, slo or Slo()),
        backlog_requests_per_s=growth,
        is_overloaded=is_overloaded,
    )


def summary(values: Floats) -> Summary | None:
    """Mean and percentiles; None where there is nothing to measure."""
    if len(values) == 0:
        return None
    p50, p90, p95, p99 = (float(p) for p in np.percentile(values, (50, 90, 95, 99)))
    mean = float(values.mean())
    half = _half_width(values)
    return Summary(
        mean_s=mean, p50_s=p50, p90_s=p90, p95_s=p95, p99_s=p99,
        mean_low_s=mean - half, mean_high_s=mean + half,
    )  # fmt: skip


def _half_width(values: Floats) -> float:
    """95 % interval of the mean by batch means [Law2015]; requests are not independent."""
    n_batches = min(N_BATCHES, len(values))
    if n_batches < 2:
        return float(values.max() - values.min())
    n_each = len(values) // n_batches
    means = values[: n_each * n_batches].reshape(n_batches, n_each).mean(axis=1)
    return float(stdtrit(n_batches - 1, 0.975) * means.std(ddof=1) / np.sqrt(n_batches))


def _output_rate(outcome: Outcome, since_s: Floats, warmup_s: float) -> float:
    """Tokens of requests that end after the warm-up, per second from then to the last token."""
    end_s = since_s + outcome.times.e2e_s
    counts = (outcome.times.is_finished == 1) & (end_s >= warmup_s)
    span_s = outcome.totals.span_s - warmup_s
    return float(outcome.requests.output_tokens[counts].sum() / span_s) if span_s > 0 else 0.0


def _busy_frac(outcome: Outcome) -> float:
    paid_s = outcome.totals.span_s * outcome.n_engines
    return outcome.totals.busy_s / paid_s if paid_s > 0 else 0.0


def _useful_frac(outcome: Outcome) -> float:
    """Share of the computed tokens that were not computed before and lost."""
    rows = outcome.finished
    # The last token of an answer is sampled, never read.
    needed = outcome.requests.input_tokens[rows] + outcome.requests.output_tokens[rows] - 1
    computed = outcome.totals.n_computed_tokens
    return float(needed.sum() / computed) if computed else 0.0


def _recall_frac(outcome: Outcome, is_measured: Mask, slo: Slo) -> float:
    times = outcome.times
    is_kept = times.is_finished == 1
    for limit_s, values in (
        (slo.ttft_s, times.ttft_s),
        (slo.tpot_s, times.tpot_s),
        (slo.e2e_s, times.e2e_s),
    ):
        if limit_s is not None:
            is_kept = is_kept & (values <= limit_s)
    return float(is_kept[is_measured].mean()) if is_measured.any() else 0.0


def _backlog(outcome: Outcome, since_s: Floats) -> tuple[float, bool]:
    """Growth of the outstanding requests over the second half of the arrivals.

    Overloaded: what is outstanding still grows at the end, by more than chance would add, and
    the engines have no time to spare.
    """
    rows: Ints = outcome.finished
    if len(rows) < 2 * LEAST_BACKLOG or since_s[-1] <= 0:
        return 0.0, False
    arrive_s, end_s = since_s[rows], np.sort(since_s[rows] + outcome.times.e2e_s[rows])
    instants = np.linspace(0.5, 1.0, 9) * since_s[-1]
    outstanding = np.searchsorted(arrive_s, instants, side="right") - np.searchsorted(
        end_s, instants, side="right"
    )
    slope = float(np.polyfit(instants, outstanding, 1)[0])
    growth = slope * 0.5 * since_s[-1]
    n_second = int((arrive_s > instants[0]).sum())
    # A random walk of as many arrivals moves by their root; three of those are no chance.
    is_growing = growth > max(LEAST_BACKLOG, 3.0 * np.sqrt(n_second))
    is_queueing = outstanding[-1] > 2 * outstanding[0] or outstanding[0] > n_second / 4
    return max(0.0, slope), bool(is_growing and is_queueing)
