"""What a stream of passed requests says, without keeping them: the measures of `statistics`.

Requests are put into batches of equal number, in order of arrival; when all batches are full, two
become one. The warm-up is looked for in the first requests, which are held back for it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import Floats, Ints, ints
from gpuplan.domain.simulation.outcome import (
    Delivery,
    EngineTotals,
    FlowOverTime,
    RequestTimes,
    ServingStatistics,
    SloTargets,
    Summary,
    Warmup,
)
from gpuplan.domain.traffic.stream import Requests
from gpuplan.simulation.serving.sketch import Sketch
from gpuplan.simulation.serving.statistics import growth_of, within
from gpuplan.simulation.serving.warmup import steady_from

N_BATCHES = 40  # at least half of them are in use once the first have been joined
N_FIRST = 512  # requests of a batch at the beginning
N_BINS = 2048
N_SEARCHED = 100_000  # first requests, in which the warm-up is looked for
NO_WARMUP = Warmup(cut_s=0.0, n_requests=0, is_automatic=False, is_settled=True, note="as asked")
MEASURES = ("ttft", "tpot", "e2e", "wait")
# Sums of a batch.
REQUESTS, KEPT, INPUT, OUTPUT, GOOD, GAPS, DEMANDED = range(7)
# Counts of a bin.
ARRIVED, ENDED, WRITTEN, TAKEN = range(4)
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the engines did over the whole run."""

    totals: EngineTotals
    paid_s: float
    last_s: float  # last arrival after the first


class Tally:
    """Running sums; `add` takes requests in order of arrival."""

    def __init__(
        self, *, slo: SloTargets | None = None, warmup_s: float | None = None, bin_s: float = 60.0
    ) -> None:
        self._slo = slo or SloTargets()
        self._warmup = None if warmup_s is None else replace(NO_WARMUP, cut_s=warmup_s)
        self._waiting: list[tuple[Requests, RequestTimes]] = []
        self._sketch = {name: Sketch(N_BATCHES) for name in MEASURES}
        self._sums = np.zeros((N_BATCHES, 7), dtype=np.int64)
        self._gap_s = np.zeros(N_BATCHES)
        self._n_each, self._n_added, self._n_cut = N_FIRST, 0, 0
        self._bins = np.zeros((N_BINS, 4), dtype=np.int64)
        self._bin_s = bin_s
        self._origin_s: float | None = None
        self._needed = 0
        self.n_finished = 0

    def add(self, requests: Requests, times: RequestTimes) -> None:
        """More requests that have passed."""
        if not len(requests):
            return
        self._origin_s = float(requests.arrive_s[0]) if self._origin_s is None else self._origin_s
        if self._warmup is not None:
            self._add(requests, times, self._warmup)
            return
        self._waiting.append((requests, times))
        if sum(len(resident) for resident, _ in self._waiting) >= N_SEARCHED:
            self._settle()

    def close(self) -> None:
        """No more will come: what was held back counts too."""
        if self._waiting:
            self._settle()

    def _settle(self) -> None:
        """Find the warm-up from the first requests, which have been held back, and go on."""
        ttft_s, tpot_s, since_s = (
            np.concatenate(columns)
            for columns in zip(
                *(self._measured(*resident) for resident in self._waiting), strict=True
            )
        )
        found = steady_from(ttft_s, tpot_s)
        self._warmup = Warmup(
            cut_s=float(since_s[found.n_cut]) if found.n_cut else 0.0,
            n_requests=0,
            is_automatic=True,
            is_settled=found.is_settled,
            note=f"{found.note}, in the first {len(ttft_s):,} requests",
        )
        for requests, times in self._waiting:
            self._add(requests, times, self._warmup)
        self._waiting = []

    def _measured(self, requests: Requests, times: RequestTimes) -> tuple[Floats, Floats, Floats]:
        done = times.is_finished == 1
        since_s = requests.arrive_s - (self._origin_s or 0.0)
        return times.ttft_s[done], times.tpot_s[done], since_s[done]

    def _add(self, requests: Requests, times: RequestTimes, warmup: Warmup) -> None:
        since_s = requests.arrive_s - (self._origin_s or 0.0)
        finished: Mask = times.is_finished == 1
        is_kept = finished & within(times, self._slo)
        self._needed += int((requests.input_tokens + requests.output_tokens - 1)[is_kept].sum())
        self.n_finished += int(finished.sum())
        self._count(requests, since_s, since_s + times.e2e_s, finished)
        at = int(np.searchsorted(since_s, warmup.cut_s, side="left"))
        self._n_cut += at
        while at < len(requests):
            at = self._batch(requests, times, is_kept, at)

    def _batch(self, requests: Requests, times: RequestTimes, is_kept: Mask, at: int) -> int:
        """Put what fits into the batch that is being filled; where to go on."""
        if self._n_added == self._n_each * N_BATCHES:
            self._halve()
        batch, filled = divmod(self._n_added, self._n_each)
        rows = slice(at, min(len(requests), at + self._n_each - filled))
        done = times.is_finished[rows] == 1
        outputs = requests.output_tokens[rows]
        many = done & (outputs > 1)
        for name in MEASURES:
            values = getattr(times, f"{name}_s")[rows]
            self._sketch[name].add(batch, values[many if name == "tpot" else done])
        gaps = np.maximum(outputs - 1, 0) * done
        self._gap_s[batch] += float((times.tpot_s[rows] * gaps).sum())
        self._sums[batch] += (
            len(outputs),
            is_kept[rows].sum(),
            (requests.input_tokens[rows] * done).sum(),
            (outputs * done).sum(),
            (outputs * is_kept[rows]).sum(),
            gaps.sum(),
            outputs.sum(),
        )
        self._n_added += rows.stop - rows.start
        return int(rows.stop)

    def _halve(self) -> None:
        half = N_BATCHES // 2
        for sketch in self._sketch.values():
            sketch.halve()
        self._sums[:half] = self._sums[0::2] + self._sums[1::2]
        self._sums[half:] = 0
        self._gap_s[:half], self._gap_s[half:] = self._gap_s[0::2] + self._gap_s[1::2], 0.0
        self._n_each *= 2

    def _count(self, requests: Requests, since_s: Floats, end_s: Floats, finished: Mask) -> None:
        last_s = float(max(since_s[-1], end_s[finished].max(initial=0.0)))
        while last_s >= self._bin_s * N_BINS:
            self._bins[: N_BINS // 2] = self._bins[0::2] + self._bins[1::2]
            self._bins[N_BINS // 2 :] = 0
            self._bin_s *= 2.0

        def binned(at_s: Floats, weights: Ints | None = None) -> Ints:
            place = (at_s / self._bin_s).astype(np.int64)
            counts = np.bincount(place, weights=weights, minlength=N_BINS)
            return counts.astype(np.int64)

        self._bins[:, ARRIVED] += binned(since_s)
        self._bins[:, TAKEN] += binned(since_s[finished])
        self._bins[:, ENDED] += binned(end_s[finished])
        self._bins[:, WRITTEN] += binned(end_s[finished], requests.output_tokens[finished])

    def flow(self, n_bins: int, bin_s: float) -> FlowOverTime:
        """By bins of this width, which the engines' utilization has; both fold by halves."""
        ratio = round(bin_s / self._bin_s) if bin_s >= self._bin_s else 1
        folded = self._bins.reshape(N_BINS // ratio, ratio, 4).sum(axis=1)[:n_bins]
        return FlowOverTime(
            bin_s=self._bin_s * ratio,
            n_arrived=ints(folded[:, ARRIVED]),
            n_ended=ints(folded[:, ENDED]),
            output_tokens=ints(folded[:, WRITTEN]),
            n_outstanding=ints(np.cumsum(folded[:, TAKEN] - folded[:, ENDED])),
        )

    def statistics(self, spent: Spent, *, n_left: int = 0) -> ServingStatistics:
        """The measures of all that was added; a run that was given up is overloaded."""
        warmup = replace(self._warmup or NO_WARMUP, n_requests=self._n_cut)
        batches = slice(0, -(-self._n_added // self._n_each))
        sums = self._sums[batches].sum(axis=0)
        busy = spent.totals.busy_s / spent.paid_s if spent.paid_s > 0 else 0.0
        computed = spent.totals.n_computed_tokens
        useful = self._needed / computed if computed else 0.0
        growth, is_overloaded = self._backlog()
        if n_left:
            growth, is_overloaded = _per(n_left, spent.last_s), True
        span_s = spent.totals.span_s - warmup.cut_s
        summaries = self._summaries(batches)
        return ServingStatistics(
            n_measured=summaries["e2e"].n if summaries["e2e"] else 0,
            **summaries,
            output_tokens_per_s=_per(sums[OUTPUT], span_s),
            busy_frac=busy,
            precision_frac=busy * useful,
            recall_frac=_per(sums[KEPT], sums[REQUESTS]),
            backlog_requests_per_s=growth,
            is_overloaded=is_overloaded,
            delivery=self._delivery(sums, batches, warmup, span_s=span_s, useful_frac=useful),
        )

    def _summaries(self, batches: slice) -> dict[str, Summary | None]:
        return {name: self._sketch[name].summary(batches) for name in MEASURES}

    def _delivery(
        self, sums: Ints, batches: slice, warmup: Warmup, *, span_s: float, useful_frac: float
    ) -> Delivery:
        n_done = int(self._sketch["e2e"].counts[batches].sum())
        gap_s = float(self._gap_s[batches].sum())
        return Delivery(
            requests_per_s=_per(n_done, span_s),
            input_tokens_per_s=_per(sums[INPUT], span_s),
            good_requests_per_s=_per(sums[KEPT], span_s),
            good_output_tokens_per_s=_per(sums[GOOD], span_s),
            token_recall_frac=_per(sums[GOOD], sums[DEMANDED]),
            useful_frac=useful_frac,
            itl_mean_s=gap_s / int(sums[GAPS]) if sums[GAPS] else None,
            warmup=warmup,
        )

    def _backlog(self) -> tuple[float, bool]:
        """Growth of what is outstanding over the second half of the arrivals, by bins."""
        arrived = np.flatnonzero(self._bins[:, ARRIVED])
        if len(arrived) == 0 or arrived[-1] < 8:
            return 0.0, False
        second = np.arange((arrived[-1] + 1) // 2, arrived[-1])
        outstanding = np.cumsum(self._bins[:, TAKEN] - self._bins[:, ENDED])[second]
        n_arrived = int(self._bins[second, ARRIVED].sum())
        return growth_of((second + 1.0) * self._bin_s, outstanding, n_arrived)


def _per(amount: float, span: float) -> float:
    return float(amount / span) if span > 0 else 0.0
