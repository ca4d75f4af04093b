"""Measures of a run: percentiles after the warm-up, confidence, useful time and SLO attainment.

Percentiles are of requests, never of averages. TPOT is (last token - first token) / (tokens - 1),
over requests with more than one token; the mean of ITL is over all single gaps of all responses.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import Floats, Ints, ints
from gpuplan.domain.simulation.outcome import (
    Delivery,
    FlowOverTime,
    Outcome,
    RequestTimes,
    ServingStatistics,
    SloTargets,
    Warmup,
)
from gpuplan.simulation.serving.intervals import summary
from gpuplan.simulation.serving.warmup import steady_from

LEAST_BACKLOG = 32
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Ratios of a whole run."""

    busy_frac: float
    useful_frac: float


def statistics_of(
    outcome: Outcome, *, warmup_s: float | None = 0.0, slo: SloTargets | None = None
) -> ServingStatistics:
    """Measures over requests that arrive after the warm-up; None finds its length by itself."""
    since_s = _since_s(outcome)
    warmup = _warmup(outcome, since_s, warmup_s)
    is_measured = since_s >= warmup.cut_s
    is_kept = within_slo(outcome, slo or SloTargets())
    rows = np.flatnonzero(is_measured & (outcome.times.is_finished == 1))
    many = rows[outcome.requests.output_tokens[rows] > 1]
    times = outcome.times
    growth, is_overloaded = _backlog(outcome, since_s)
    shares = _shares(outcome, is_kept)
    return ServingStatistics(
        n_measured=len(rows),
        ttft=summary(times.ttft_s[rows]),
        tpot=summary(times.tpot_s[many]),
        e2e=summary(times.e2e_s[rows]),
        wait=summary(times.wait_s[rows]),
        output_tokens_per_s=_rate(outcome, since_s, outcome.requests.output_tokens, warmup.cut_s),
        busy_frac=shares.busy_frac,
        precision_frac=shares.busy_frac * shares.useful_frac,
        recall_frac=_mean(is_kept[is_measured]),
        backlog_requests_per_s=growth,
        is_overloaded=is_overloaded,
        delivery=_delivery(outcome, is_kept, warmup, useful_frac=shares.useful_frac),
    )


def within_slo(outcome: Outcome, slo: SloTargets) -> Mask:
    """Requests that were served to their end, each within every limit."""
    is_done: Mask = outcome.times.is_finished == 1
    return is_done & within(outcome.times, slo)


def within(times: RequestTimes, slo: SloTargets) -> Mask:
    """True for each request that meets every limit of the SLO."""
    is_kept: Mask = np.ones(len(times.e2e_s), dtype=np.bool_)
    for limit_s, values in (
        (slo.ttft_s, times.ttft_s),
        (slo.tpot_s, times.tpot_s),
        (slo.e2e_s, times.e2e_s),
    ):
        if limit_s is not None:
            is_kept &= values <= limit_s
    return is_kept


def flow_of(outcome: Outcome) -> FlowOverTime:
    """What came, ended and stood in the fleet, in the bins of its use over time."""
    since_s, rows = _since_s(outcome), outcome.finished
    bin_s, n_bins = outcome.use.bin_s, len(outcome.use.busy_frac)

    def binned(at_s: Floats, weights: Ints | None = None) -> Ints:
        place = np.minimum((at_s // bin_s).astype(np.int64), n_bins - 1)
        return ints(np.bincount(place, weights=weights, minlength=n_bins).astype(np.int64))

    end_s = since_s[rows] + outcome.times.e2e_s[rows]
    ended, taken = binned(end_s), binned(since_s[rows])
    return FlowOverTime(
        bin_s=bin_s,
        n_arrived=binned(since_s),
        n_ended=ended,
        output_tokens=binned(end_s, outcome.requests.output_tokens[rows]),
        n_outstanding=ints(np.cumsum(taken - ended)),
    )


def growth_of(instants_s: Floats, outstanding: Ints | Floats, n_arrived: int) -> tuple[float, bool]:
    """Growth of what is outstanding in requests a second, and whether no chance explains it.

    Overloaded: it grows over these instants by more than three times the root of the arrivals
    between them, and by half of what stood there at first: a queue that grows evenly from the start
    of a run doubles over its second half.
    """
    slope = float(np.polyfit(instants_s, outstanding, 1)[0])
    growth = slope * float(instants_s[-1] - instants_s[0])
    # A random walk of as many arrivals moves by their root; three of those are no chance.
    is_growing = growth > max(LEAST_BACKLOG, 3.0 * np.sqrt(n_arrived))
    is_queueing = growth > 0.5 * outstanding[0] or outstanding[0] > n_arrived / 4
    return max(0.0, slope), bool(is_growing and is_queueing)


def _since_s(outcome: Outcome) -> Floats:
    arrive_s = outcome.requests.arrive_s
    return arrive_s - (arrive_s[0] if len(arrive_s) else 0.0)


def _warmup(outcome: Outcome, since_s: Floats, requested_s: float | None) -> Warmup:
    if requested_s is not None:
        n_before = int((since_s < requested_s).sum())
        return Warmup(
            cut_s=requested_s,
            n_requests=n_before,
            is_automatic=False,
            is_settled=True,
            note="as asked",
        )
    rows = outcome.finished
    found = steady_from(outcome.times.ttft_s[rows], outcome.times.tpot_s[rows])
    cut_s = float(since_s[rows[found.n_cut]]) if found.n_cut else 0.0
    return Warmup(
        cut_s=cut_s,
        n_requests=int((since_s < cut_s).sum()),
        is_automatic=True,
        is_settled=found.is_settled,
        note=found.note,
    )


def _delivery(outcome: Outcome, is_kept: Mask, warmup: Warmup, *, useful_frac: float) -> Delivery:
    since_s, requested = _since_s(outcome), outcome.requests
    is_measured = since_s >= warmup.cut_s
    demanded = int(requested.output_tokens[is_measured].sum())
    good = int(requested.output_tokens[is_measured & is_kept].sum())
    one_each = np.ones(len(requested), dtype=np.int64)
    return Delivery(
        requests_per_s=_rate(outcome, since_s, one_each, warmup.cut_s),
        input_tokens_per_s=_rate(outcome, since_s, requested.input_tokens, warmup.cut_s),
        good_requests_per_s=_rate(outcome, since_s, one_each * is_kept, warmup.cut_s),
        good_output_tokens_per_s=_rate(
            outcome, since_s, requested.output_tokens * is_kept, warmup.cut_s
        ),
        token_recall_frac=good / demanded if demanded else 0.0,
        useful_frac=useful_frac,
        itl_mean_s=_gap_s(outcome, is_measured),
        warmup=warmup,
    )


def _gap_s(outcome: Outcome, is_measured: Mask) -> float | None:
    """Mean of all single gaps: responses count by their gaps, not once each."""
    rows = np.flatnonzero(is_measured & (outcome.times.is_finished == 1))
    n_gaps = np.maximum(outcome.requests.output_tokens[rows] - 1, 0)
    total = int(n_gaps.sum())
    return float((outcome.times.tpot_s[rows] * n_gaps).sum() / total) if total else None


def _rate(outcome: Outcome, since_s: Floats, amounts: Ints, warmup_s: float) -> float:
    """Amounts of requests that end after the warm-up, per second from then to the last token."""
    end_s = since_s + outcome.times.e2e_s
    counts = (outcome.times.is_finished == 1) & (end_s >= warmup_s)
    span_s = outcome.totals.span_s - warmup_s
    return float(amounts[counts].sum() / span_s) if span_s > 0 else 0.0


def _shares(outcome: Outcome, is_kept: Mask) -> Shares:
    """Busy share of the paid time, and the share of computed tokens of requests within their SLO.

    Tokens of a late response, and those computed again after a preemption, are lost.
    """
    requested = outcome.requests
    # The last token of a response is sampled, never read.
    needed = requested.input_tokens[is_kept] + requested.output_tokens[is_kept] - 1
    if outcome.times.n_cached_tokens is not None:
        needed = needed - outcome.times.n_cached_tokens[is_kept]  # found, not computed
    computed, paid_s = outcome.totals.n_computed_tokens, outcome.paid_s
    return Shares(
        busy_frac=outcome.totals.busy_s / paid_s if paid_s > 0 else 0.0,
        useful_frac=float(needed.sum() / computed) if computed else 0.0,
    )


def _mean(mask: Mask) -> float:
    return float(mask.mean()) if len(mask) else 0.0


def _backlog(outcome: Outcome, since_s: Floats) -> tuple[float, bool]:
    """Growth of the outstanding requests over the second half of the arrivals."""
    rows: Ints = outcome.finished
    if len(rows) < 2 * LEAST_BACKLOG or since_s[-1] <= 0:
        return 0.0, False
    arrive_s, end_s = since_s[rows], np.sort(since_s[rows] + outcome.times.e2e_s[rows])
    instants = np.linspace(0.5, 1.0, 9) * since_s[-1]
    outstanding = np.searchsorted(arrive_s, instants, side="right") - np.searchsorted(
        end_s, instants, side="right"
    )
    return growth_of(instants, outstanding, int((arrive_s > instants[0]).sum()))
