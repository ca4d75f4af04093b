"""Fleets of candidates that are not simulated: deferrable work, layouts no simulator covers.

The regime formulas give means; measured ratios of tails to means give percentiles.
"""

from dataclasses import replace
from math import ceil

from gpuplan.candidates.search import largest_load
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import LimitMargin, LoadPower, Sized
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.performance.kernels.regimes import Served
from gpuplan.performance.serving.regimes import serve
from gpuplan.studies.power.serving import power_at_rate
from gpuplan.studies.sizing.task import BATCH_FRAC, SizingTask, margin_of

SAFE_FRAC = 0.85  # of the fullest rate, where nothing is simulated and SLOs would allow more
LEAST_FRAC = 0.02  # of the fullest rate: a replica that is nearly idle
TAILS = {"ttft": "ttft_p99_ms", "tpot": "tpot_p99_ms", "itl": "tpot_p99_ms", "e2e": "tpot_p99_ms"}
BY_FORMULA = "sized by formula: this layout is not simulated"
BY_THROUGHPUT = "sized by its throughput at full load: nobody waits for a single response"
# Where between the mean (0) and the 99th percentile (1) a statistic lies, on a log scale:
# deviations of a lognormal law, 1.645 of 2.326.
PLACES = {"mean": 0.0, "p50": 0.0, "p95": 0.707, "p99": 1.0}


class AnalyticSizer:
    """Sizes candidates by formula where nothing is simulated."""

    def __init__(self, task: SizingTask) -> None:
        self.task, self.evaluator, self.limits = task, task.evaluator, task.limits
        self.load = task.serving_load

    def capacity_per_s(self, candidate: Candidate) -> float:
        """Requests per second of one replica at its fullest."""
        served = self._served(candidate, None)
        return float(served.output_tokens_per_s) / self.load.output_tokens

    def least(self, candidate: Candidate) -> int:
        """Replicas below which the load cannot be carried at all."""
        return max(1, ceil(self.task.peak_per_s / self.capacity_per_s(candidate) - 1e-9))

    def least_per_s(self, candidate: Candidate) -> float:
        """More than one replica can carry: what bounds costs from below."""
        return self.capacity_per_s(candidate)

    def size(self, candidate: Candidate) -> Sized | Rejection:
        """The candidate with its fleet, or why no fleet meets the SLOs."""
        full = self.capacity_per_s(candidate)
        usual = BATCH_FRAC if self.load.regime == "max_load" else SAFE_FRAC
        given = self.task.resilience.max_utilization_frac
        rate = (usual if given is None else given) * full
        least = LEAST_FRAC * full
        if self.limits and not self._meets(candidate, least):
            return self._rejected(candidate, least)
        if self.limits:
            rate = largest_load(lambda x: self._meets(candidate, x), known=least, limit=rate)
        return self._sized(self.task, candidate, rate=rate, full=full)

    def _served(self, candidate: Candidate, share: float | None) -> Served:
        """One replica: full, or at a rate."""
        p = self.evaluator.prepared(candidate)
        regime, case = "max_load", p.case
        if share is not None:
            regime, case = "poisson", case._replace(requests_per_s=share)
        budget = float(p.setup.settings.max_batch_tokens)
        return serve(regime, p.work, p.step, r=p.regime, case=case, batch_tokens=budget)  # type: ignore[arg-type]

    def _meets(self, candidate: Candidate, share: float) -> bool:
        """Every SLO is met by one replica at this rate."""
        served = self._served(candidate, share)
        return all(self._reached(candidate, x, served).value <= x.limit_s for x in self.limits)

    def _reached(self, candidate: Candidate, limit: LatencyLimit, served: Served) -> Estimate:
        tpot_s = served.tpot_s
        means = {"ttft": served.ttft_s, "tpot": tpot_s, "itl": tpot_s, "e2e": served.e2e_s}
        mean = float(means[limit.metric])
        ranged = self.evaluator.ranged(candidate)
        tail = ranged.tail(TAILS[limit.metric], 1.0)
        ratio = max(1.0, tail.value) ** PLACES[limit.statistic]
        name = {"ttft": "ttft_mean_ms", "e2e": "e2e_s"}.get(limit.metric, "tpot_mean_ms")
        return ranged.estimate(name, mean * ratio)

    def _sized(self, task: SizingTask, candidate: Candidate, *, rate: float, full: float) -> Sized:
        fleet = task.fleet_in_proportion(
            candidate,
            self.evaluator.ranged(candidate).estimate("output_tokens_per_s", rate),
            full_per_s=full,
            safe_frac=rate / full,
            method="analytic",
            band="by formula, not simulated",
        )
        n = fleet.n_serving
        served = self._served(candidate, task.peak_per_s / n)
        return replace(
            fleet,
            limits=self._margins(candidate, served),
            power=self._power(candidate, task.peak_per_s / n, served),
            remarks=(BY_FORMULA if self.limits else BY_THROUGHPUT,),
        )

    def _margins(self, candidate: Candidate, served: Served) -> tuple[LimitMargin, ...]:
        reached = [(limit, self._reached(candidate, limit, served)) for limit in self.limits]
        return tuple(margin_of(limit, each, each.value) for limit, each in reached)

    def _power(self, candidate: Candidate, rate: float, served: Served) -> LoadPower | None:
        tokens = rate * self.load.output_tokens
        each = self.evaluator.ranged(candidate).estimate("output_tokens_per_s", tokens)
        setup = self.evaluator.prepared(candidate).setup
        found = power_at_rate(setup, each, max(1.0, float(served.n_running))).get("power_w")
        return LoadPower(found) if found else None

    def _rejected(self, candidate: Candidate, rate: float) -> Rejection:
        served = self._served(candidate, rate)
        reached = {x: self._reached(candidate, x, served).value for x in self.limits}
        worst = max(self.limits, key=lambda x: reached[x] / x.limit_s)
        name, worst_s = f"{worst.metric} {worst.statistic}", reached[worst]
        return Rejection(
            candidate=candidate,
            constraint="slo",
            reason=f"{name} is {worst_s * 1e3:.0f} ms even nearly idle, "
            f"the SLO is {worst.limit_s * 1e3:.0f} ms",
            relaxation=f"set {name} to {worst_s * 1.05e3:.0f} ms",
        )
