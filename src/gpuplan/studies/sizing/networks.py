"""Fleets for networks that are no language models: batches, their time, and a queue."""

from dataclasses import replace
from math import ceil

from gpuplan.candidates.need import need_in_proportion
from gpuplan.candidates.prune import policy_check, rejection
from gpuplan.candidates.reserve import reserve_for
from gpuplan.candidates.slo import wait_ratio
from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.other import NetworkForecast
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import (
    DemandProfile,
    LimitMargin,
    PoolUtilization,
    Sized,
    Sizing,
    SizingOptions,
)
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Serving, Workload
from gpuplan.errors import CatalogError
from gpuplan.studies.naming import allowed_ids
from gpuplan.studies.networks.predict import predict_network

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
BATCH_FRAC = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    forecast: NetworkForecast
    rate: Estimate  # samples per second, full
    limits: tuple[LimitMargin, ...]


def network_sizes(
    workload: Workload, scenario: Scenario, demand: DemandProfile, *, catalog: Catalog,
    options: SizingOptions,
) -> Sizing:  # fmt: skip
    """The network on every accelerator, processors included."""
    (allowed, forbidden), told = allowed_ids(scenario.policy, catalog)
    check = policy_check(allowed, forbidden)
    sizer = _NetworkSizer(workload, scenario, demand, catalog=catalog, options=options)
    sized, rejected = [], []
    for card in catalog.accelerators.values():
        candidate = Candidate(
            workload=workload.name, accelerator=card.id, layout=ServingLayout(),
            precision=workload.precisions[0] if workload.precisions else "fp16",
        )  # fmt: skip
        found: Sized | Rejection = check(candidate) or sizer.size(candidate, card)
        if isinstance(found, Rejection):
            rejected.append(found)
        else:
            sized.append(found)
    return Sizing(
        workload=workload.name, demand=demand, sized=tuple(sized), jobs=(),
        rejected=tuple(rejected), skipped=(), assumptions=(*told, *sizer.assumptions()),
    )  # fmt: skip


class _NetworkSizer:
    def __init__(
        self, workload: Workload, scenario: Scenario, demand: DemandProfile, *, catalog: Catalog,
        options: SizingOptions,
    ) -> None:  # fmt: skip
        self.workload, self.demand = workload, demand
        self.resilience = scenario.policy.resilience
        self.nodes = node_sizes(catalog)
        work = workload.work
        self.limits: tuple[LatencyLimit, ...] = work.slo.limits if isinstance(work, Serving) else ()
        given = self.resilience.max_utilization_frac
        usual = BATCH_FRAC if isinstance(work, Batch) else options.max_utilization_frac
        self.busy_frac = usual if given is None else given
        self._is_given = given is not None

    def assumptions(self) -> tuple[Assumption, ...]:
        """What the sizes rest on."""
        if self._is_given:
            return self.demand.assumptions
        return (
            *self.demand.assumptions,
            Assumption(
                what="highest utilization", value=f"{self.busy_frac:.0%}",
                why="batches of such networks are sized by formula, with room for chance",
                change="policy.max_utilization_frac",
            ),
        )  # fmt: skip

    def size(self, candidate: Candidate, card: Accelerator) -> Sized | Rejection:
        """The batch that carries most within the promises, and as many accelerators as it takes."""
        try:
            served = [self._served(card, batch) for batch in BATCHES]
        except CatalogError as error:
            # The speed of such networks follows the power limit too; some makers publish none.
            first = error.problems[0]
            return rejection(candidate, "software", f"{first.where}: {first.what}", first.fix)
        kept = [each for each in served if all(limit.is_kept for limit in each.limits)]
        if not kept:
            return self._rejected(candidate, served[0])
        best = max(kept, key=lambda each: each.rate.value)
        rate = best.rate.value * self.busy_frac
        need = need_in_proportion(self.demand, rate)
        n, peak = need.n_peak, self.demand.peak_of(0, 0)
        low = best.rate.low * self.busy_frac
        return Sized(
            candidate=candidate,
            method="analytic",
            need=need,
            reserve=reserve_for(
                candidate, n, self.resilience,
                n_accelerators_per_node=self.nodes.get(candidate.accelerator, 1),
            ),
            capacity_per_s=Estimate(
                value=rate, low=low, high=best.rate.high * self.busy_frac, tier=best.rate.tier
            ),
            n_slow_end=ceil(peak / low - 1e-9),
            limits=best.limits,
            little=None,
            utilization=PoolUtilization(
                peak_frac=peak / (n * best.rate.value) if n else None, safe_frac=self.busy_frac,
                band="by formula, not simulated",
            ),
            power_w=None,
            cold_start_s=None,
            remarks=(
                f"batches of {best.forecast.batch} in {best.forecast.batch_s.value * 1e3:.1f} ms",
            ),
        )  # fmt: skip

    def _served(self, card: Accelerator, batch: int) -> _Served:
        assert self.workload.model is not None
        request = NetworkRequest(batch=batch, n_tokens=max(1, round(self.demand.input_tokens)))
        found = predict_network(self.workload.model.name or "", str(card.id), request)
        time = found.batch_s
        limits = []
        for limit in self.limits:
            ratio = 1.0 + wait_ratio(self.busy_frac, limit.statistic)
            reached = Estimate(
                value=time.value * ratio, low=time.low * ratio, high=time.high * ratio,
                tier=time.tier, sources=time.sources,
            )  # fmt: skip
            limits.append(
                LimitMargin(
                    metric=limit.metric, statistic=limit.statistic, limit_s=limit.limit_s,
                    reached_s=reached, bound_s=reached.value,
                )
            )  # fmt: skip
        return _Served(forecast=found, rate=found.samples_per_s, limits=tuple(limits))

    def _rejected(self, candidate: Candidate, served: _Served) -> Rejection:
        worst = max(served.limits, key=lambda each: each.bound_s / each.limit_s)
        reason = (
            f"one sample alone with its wait takes {worst.bound_s * 1e3:.0f} ms, "
            f"{worst.metric} {worst.statistic} must be within {worst.limit_s * 1e3:.0f} ms"
        )
        fix = f"promise {worst.metric} {worst.statistic} of {worst.bound_s * 1.05e3:.0f} ms"
        metric = worst.metric if worst.metric != "itl" else "tpot"
        found = rejection(candidate, metric, reason, fix)
        return replace(found, gap_ratio=worst.bound_s / worst.limit_s)
