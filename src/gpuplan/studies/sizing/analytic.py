"""Fleets of candidates that are not simulated: pipeline stages, shared experts, closed loops.

The regime formulas give means; measured ratios of tails to means give percentiles.
"""

from dataclasses import replace
from math import ceil, inf

from gpuplan.candidates.need import need_in_proportion
from gpuplan.candidates.reserve import reserve_for
from gpuplan.candidates.search import largest_load
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import DemandProfile, LimitMargin, PoolUtilization, Sized
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.scenario.terms import Resilience
from gpuplan.performance.kernels.regimes import Served
from gpuplan.performance.serving.regimes import serve
from gpuplan.studies.power.serving import power_at_rate
from gpuplan.studies.sizing.candidates import Bench

SAFE_FRAC = 0.85  # of the fullest rate, where nothing is simulated and promises would allow more
BATCH_FRAC = 0.95  # work that may wait needs no room for chance
TAILS = {"ttft": "ttft_p99_ms", "tpot": "tpot_p99_ms", "itl": "tpot_p99_ms", "e2e": "tpot_p99_ms"}
# Where between the mean (0) and the 99th percentile (1) a statistic lies, on a log scale:
# deviations of a lognormal law, 1.645 of 2.326.
PLACES = {"mean": 0.0, "p50": 0.0, "p95": 0.707, "p99": 1.0}


class AnalyticSizer:
    """Sizes candidates by formula."""

    def __init__(
        self,
        bench: Bench,
        demand: DemandProfile,
        resilience: Resilience,
        *,
        node_size: dict[str, int],
    ) -> None:
        self.bench, self.demand, self.resilience = bench, demand, resilience
        self.node_size = node_size

    def capacity_per_s(self, candidate: Candidate) -> float:
        """Requests per second of one replica at its fullest."""
        served = self._served(candidate, None)
        return float(served.output_tokens_per_s) / self.bench.load.output_tokens

    def least(self, candidate: Candidate) -> int:
        """Replicas below which the load cannot be carried at all."""
        if self.bench.load.regime == "fixed_concurrency":
            return 1
        return max(1, ceil(self.demand.peak_of(0, 0) / self.capacity_per_s(candidate) - 1e-9))

    def least_per_s(self, candidate: Candidate) -> float:
        """More than one replica can carry: what bounds costs from below."""
        if self.bench.load.regime == "fixed_concurrency":
            return inf
        return self.capacity_per_s(candidate)

    def size(self, candidate: Candidate, limits: tuple[LatencyLimit, ...]) -> Sized | Rejection:
        """The candidate with its fleet, or why no fleet keeps the promises."""
        if self.bench.load.regime == "fixed_concurrency":
            return self._closed(candidate, limits)
        full = self.capacity_per_s(candidate)
        ceiling = self._ceiling()
        rate = ceiling * full
        if limits:
            least = 0.02 * full
            if not self._holds(candidate, limits, least):
                return self._rejected(candidate, limits, least)
            rate = largest_load(
                lambda x: self._holds(candidate, limits, x), known=least, limit=rate
            )
        need = need_in_proportion(self.demand, rate)
        return self._sized(candidate, limits, rate=rate, full=full, need_peak=need.n_peak)

    def _ceiling(self) -> float:
        given = self.resilience.max_utilization_frac
        if given is not None:
            return given
        return BATCH_FRAC if self.bench.load.regime == "max_load" else SAFE_FRAC

    def _closed(self, candidate: Candidate, limits: tuple[LatencyLimit, ...]) -> Sized | Rejection:
        """Users who ask again when answered: as many replicas as keep each one's share short."""
        users = self.bench.load.n_sequences or 1.0
        n = 1
        while n < 4 * users and not self._keeps(candidate, limits, self._served(candidate, n)):
            n = max(n + 1, int(1.25 * n))
        while n > 1 and self._keeps(candidate, limits, self._served(candidate, n - 1)):
            n -= 1
        if not self._keeps(candidate, limits, self._served(candidate, n)):
            return self._rejected(candidate, limits, None)
        served = self._served(candidate, n)
        rate = float(served.output_tokens_per_s) / self.bench.load.output_tokens
        demand = replace(self.demand, peak_requests_per_s=rate * n)
        sizer = AnalyticSizer(self.bench, demand, self.resilience, node_size=self.node_size)
        full = max(rate, self.capacity_per_s(candidate))
        return sizer._sized(candidate, limits, rate=rate, full=full, need_peak=n)

    def _served(self, candidate: Candidate, share: float | None) -> Served:
        """One replica: full, at a rate, or as one of so many in a closed loop."""
        p = self.bench.prospect(candidate)
        load = self.bench.load
        case = p.case
        regime = "max_load"
        if load.regime == "fixed_concurrency" and share is not None:
            regime = "fixed_concurrency"
            case = case._replace(n_sequences=max(1.0, (load.n_sequences or 1.0) / share))
        elif share is not None:
            regime = "poisson"
            case = case._replace(requests_per_s=share)
        budget = float(p.setup.settings.max_batch_tokens)
        return serve(regime, p.work, p.step, r=p.regime, case=case, batch_tokens=budget)  # type: ignore[arg-type]

    def _holds(self, candidate: Candidate, limits: tuple[LatencyLimit, ...], rate: float) -> bool:
        return self._keeps(candidate, limits, self._served(candidate, rate))

    def _keeps(
        self, candidate: Candidate, limits: tuple[LatencyLimit, ...], served: Served
    ) -> bool:
        return all(
            self._reached(candidate, limit, served).value <= limit.limit_s for limit in limits
        )

    def _reached(self, candidate: Candidate, limit: LatencyLimit, served: Served) -> Estimate:
        means = {"ttft": served.ttft_s, "tpot": served.tpot_s, "itl": served.tpot_s,
                 "e2e": served.e2e_s}  # fmt: skip
        mean = float(means[limit.metric])
        ranged = self.bench.ranged(candidate)
        tail = ranged.tail(TAILS[limit.metric], 1.0)
        ratio = max(1.0, tail.value) ** PLACES[limit.statistic]
        name = {"ttft": "ttft_mean_ms", "e2e": "e2e_s"}.get(limit.metric, "tpot_mean_ms")
        return ranged.estimate(name, mean * ratio)

    def _sized(
        self, candidate: Candidate, limits: tuple[LatencyLimit, ...], *, rate: float, full: float,
        need_peak: int,
    ) -> Sized:  # fmt: skip
        need = need_in_proportion(self.demand, rate)
        n_node = self.node_size.get(candidate.accelerator, 1)
        peak = self.demand.peak_of(0, 0)
        share = need_peak if self.bench.load.regime == "fixed_concurrency" else peak / need_peak
        served = self._served(candidate, share)
        ranged = self.bench.ranged(candidate).estimate("output_tokens_per_s", rate)
        return Sized(
            candidate=candidate,
            method="analytic",
            need=need,
            reserve=reserve_for(
                candidate, need_peak, self.resilience, n_accelerators_per_node=n_node
            ),
            capacity_per_s=ranged,
            n_slow_end=ceil(peak / (rate * ranged.low / ranged.value) - 1e-9),
            limits=self._kept(candidate, limits, served),
            little=None,
            utilization=PoolUtilization(
                peak_frac=peak / (need_peak * full), safe_frac=rate / full,
                band="by formula, not simulated",
            ),
            power_w=self._power(candidate, peak / need_peak, served),
            cold_start_s=None,
            remarks=("sized by formula: this layout or loop is not simulated",),
        )  # fmt: skip

    def _kept(
        self, candidate: Candidate, limits: tuple[LatencyLimit, ...], served: Served
    ) -> tuple[LimitMargin, ...]:
        reached = [(limit, self._reached(candidate, limit, served)) for limit in limits]
        return tuple(
            LimitMargin(
                metric=limit.metric, statistic=limit.statistic, limit_s=limit.limit_s,
                reached_s=each, bound_s=each.value,
            )
            for limit, each in reached
        )  # fmt: skip

    def _power(self, candidate: Candidate, rate: float, served: Served) -> Estimate | None:
        tokens = rate * self.bench.load.output_tokens
        each = self.bench.ranged(candidate).estimate("output_tokens_per_s", tokens)
        setup = self.bench.prospect(candidate).setup
        running = max(1.0, min(float(served.n_running), inf))
        return power_at_rate(setup, each, running).get("power_w")

    def _rejected(
        self, candidate: Candidate, limits: tuple[LatencyLimit, ...], rate: float | None
    ) -> Rejection:
        served = self._served(candidate, rate or 4 * (self.bench.load.n_sequences or 1.0))
        worst = max(limits, key=lambda x: self._reached(candidate, x, served).value / x.limit_s)
        reached = self._reached(candidate, worst, served).value
        return Rejection(
            candidate=candidate,
            constraint="slo",
            reason=f"{worst.metric} {worst.statistic} is {reached * 1e3:.0f} ms even nearly idle, "
            f"{worst.limit_s * 1e3:.0f} ms are promised",
            relaxation=f"promise {worst.metric} {worst.statistic} of {reached * 1.05e3:.0f} ms",
        )
