"""What sizing one workload starts from, and the fleets that need no simulation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from gpuplan.candidates.need import need_in_proportion
from gpuplan.candidates.prune import policy_check
from gpuplan.candidates.reserve import reserve_for
from gpuplan.candidates.risk import carried_by_range
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.nodes import node_sizes
from gpuplan.design.spares import ACCELERATOR_MTBF_S
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import (
    USUAL_ENGINE,
    USUAL_VERSIONS,
    EngineChoice,
    Regime,
    ServingLoad,
)
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import format_named, sixteen_on
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import (
    CarriedLoad,
    DemandProfile,
    LimitMargin,
    PoolUtilization,
    PriceOf,
    Reserve,
    Sized,
    SizingMethod,
    SizingOptions,
)
from gpuplan.domain.provenance import Assumption, Estimate
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.terms import Resilience
from gpuplan.domain.scenario.workload import Batch, Generic, Serving, Training, Workload
from gpuplan.errors import InputError, one
from gpuplan.studies.market.ranks import RentedServer
from gpuplan.studies.naming import allowed_ids, model_named, one_format
from gpuplan.studies.networks.predict import is_covered
from gpuplan.studies.replay.closed_loop import users_of
from gpuplan.studies.sizing.demand import ReadTrace, demand_of
from gpuplan.studies.sizing.evaluator import CandidateEvaluator
from gpuplan.studies.sizing.simulator import FleetSimulator
from gpuplan.studies.sizing.streams import RequestStreams, UserStreams

DEFAULTS = SizingOptions()
BATCH_FRAC = 0.95  # utilization of deferrable work, which needs no room for chance
Found = TypeVar("Found")
PLANNED_ENGINES = ("vllm", "sglang")  # whose schedulers plans are simulated with


def by_count(candidate: Candidate, n_replicas: int) -> float:
    """Accelerators, as if each cost one: for callers without prices."""
    return float(candidate.n_accelerators_for(n_replicas))


def estimate_of(ends: Range, tier: str) -> Estimate:
    """A range as an estimate of this tier."""
    return Estimate(value=ends.mid, low=ends.low, high=ends.high, tier=tier)  # type: ignore[arg-type]


def margin_of(limit: LatencyLimit, reached: Estimate, bound_s: float) -> LimitMargin:
    """A latency SLO beside what is reached, and the bound that must stay within it."""
    return LimitMargin(
        metric=limit.metric,
        statistic=limit.statistic,
        limit_s=limit.limit_s,
        reached_s=reached,
        bound_s=bound_s,
    )


@dataclass(frozen=True, kw_only=True)
class SizingContext:
    """What sizing needs beside the scenario; simulators are kept for the replay of a plan."""

    catalog: Catalog
    price: PriceOf = by_count
    # Stated rates between servers, by accelerator: what replicas of several servers may count on.
    networks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    options: SizingOptions = DEFAULTS
    store: Path | None = None
    calibration: InferenceCalibration | None = None  # of a site; None: that of the package
    read_trace: ReadTrace | None = None
    servers: tuple[RentedServer, ...] = ()  # that training may stand on; empty: the usual ones
    simulators: dict[tuple[str, Candidate], FleetSimulator] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class SizingTask:
    """One workload of a scenario with its demand: what every sizer is asked."""

    workload: Workload
    scenario: Scenario
    demand: DemandProfile
    context: SizingContext

    def at_probability(self, level_frac: float) -> "SizingTask":
        """The same, sized to meet all SLOs with this probability."""
        options = replace(self.context.options, min_probability_frac=level_frac)
        return replace(self, context=replace(self.context, options=options))

    @property
    def catalog(self) -> Catalog:
        """Accelerators and servers, with the user's overlays."""
        return self.context.catalog

    @property
    def resilience(self) -> Resilience:
        """Failures that the fleet must survive, and the highest utilization."""
        return self.scenario.policy.resilience

    @property
    def peak_per_s(self) -> float:
        """The peak of the first period."""
        return self.demand.peak_of(0, 0)

    @property
    def limits(self) -> tuple[LatencyLimit, ...]:
        """Latency SLOs; deferrable work has none."""
        work = self.workload.work
        return work.slo.limits if isinstance(work, Serving) else ()

    @cached_property
    def node_sizes(self) -> dict[str, int]:
        """Accelerators of a usual node, by accelerator."""
        return node_sizes(self.catalog)

    @cached_property
    def owned(self) -> frozenset[str]:
        """Accelerators that the user has already: they are weighed whatever others cost."""
        names = [nodes.accelerator for nodes in self.scenario.owned]
        return frozenset(str(find_accelerator(x, self.catalog).accelerator.id) for x in names)

    @cached_property
    def allowed(self) -> tuple[frozenset[str], frozenset[str]]:
        """Accelerators that the policy allows, none for all of them, and those it forbids."""
        return self._policy_names[0]

    @property
    def policy_assumptions(self) -> tuple[Assumption, ...]:
        """What was assumed about the accelerators that the policy names."""
        return self._policy_names[1]

    @cached_property
    def _policy_names(
        self,
    ) -> tuple[tuple[frozenset[str], frozenset[str]], tuple[Assumption, ...]]:
        return allowed_ids(self.scenario.policy, self.catalog)

    @cached_property
    def model(self) -> Model:
        """The model that is served; InputError where the workload names none."""
        if self.workload.model is None or self.workload.model.name is None:
            fix = "name the model, or give the capacity of each accelerator"
            raise one(InputError, "plan", f"{self.workload.name}.model", "has no name", fix)
        return model_named(self.workload.model.name, self.context.store)

    @cached_property
    def serving_load(self) -> ServingLoad:
        """What predictions need to know of the load."""
        work, demand = self.workload.work, self.demand
        hit = 0.0 if isinstance(work, Training | Generic) else work.request.prefix_hit_frac.mid
        is_closed = demand.n_users is not None
        served: Regime = "fixed_concurrency" if is_closed else "poisson"
        return ServingLoad(
            regime=served if isinstance(work, Serving) else "max_load",
            input_tokens=max(1.0, demand.input_tokens),
            output_tokens=max(1.0, demand.output_tokens),
            n_sequences=demand.n_users,
            requests_per_s=None if is_closed else demand.peak_requests_per_s,
            cached_input_frac=hit,
            adapters=None if isinstance(work, Training | Generic) else work.request.adapters,
        )

    @property
    def context_tokens(self) -> int:
        """Tokens of a mean request."""
        return max(1, round(self.demand.input_tokens + self.demand.output_tokens))

    @property
    def longest_tokens(self) -> int:
        """Tokens of the longest request that must have room: as given, or as far as known."""
        work = self.workload.work
        if isinstance(work, Training | Generic):
            return self.context_tokens
        ends = [
            lengths.max_tokens or lengths.p99_tokens or lengths.mean_tokens
            for lengths in (work.request.input, work.request.output)
        ]
        return max(self.context_tokens, round(sum(ends)), work.max_context_tokens or 0)

    @cached_property
    def evaluator(self) -> CandidateEvaluator:
        """Memory, times and ranges of the candidates."""
        return CandidateEvaluator(
            self.model,
            self.serving_load,
            self.catalog,
            context_tokens=(self.context_tokens, self.longest_tokens),
            max_tokens=self._requested_tokens,
            calibration=self.context.calibration,
        )

    @property
    def _requested_tokens(self) -> int | None:
        """The max_tokens of every request; None: what it gets."""
        work = self.workload.work
        return None if isinstance(work, Training | Generic) else work.request.max_tokens

    @property
    def engine(self) -> EngineChoice:
        """The engine that plans are made for: as the site runs it, else the usual one."""
        site = self.scenario.site
        software = None if site is None else site.software
        name = None if software is None else software.framework
        if software is None or name not in PLANNED_ENGINES:
            return USUAL_ENGINE
        return EngineChoice(name=name, version=software.framework_version or USUAL_VERSIONS[name])

    @cached_property
    def streams(self) -> RequestStreams | UserStreams | None:
        """Draws of the described load, or the peak hour of a trace; None: nobody waits."""
        work, demand = self.workload.work, self.demand
        if not isinstance(work, Serving):
            return None
        seed, max_tokens = self.context.options.seed, self.model.max_context_tokens
        if demand.n_users is not None:
            return UserStreams(
                users_of(work, max_tokens),
                demand.n_users,
                seed,
                waits=any(limit.metric in ("ttft", "e2e") for limit in self.limits),
            )
        recorded = None
        if work.arrivals.trace is not None and self.context.read_trace is not None:
            recorded = self.context.read_trace(Path(work.arrivals.trace))
        return RequestStreams(
            work.arrivals, work.request, seed, recorded=recorded, max_tokens=max_tokens
        )

    def simulator(self, candidate: Candidate) -> FleetSimulator | None:
        """Fleets of the candidate, simulated; None where a formula has to do."""
        streams = self.streams
        if streams is None:
            return None
        if isinstance(streams, UserStreams) and candidate.layout.is_disaggregated:
            streams = streams.of_groups()
        return FleetSimulator(
            candidate,
            self.evaluator,
            streams,
            limits=self.limits,
            options=self.context.options,
        )

    def reserve(self, candidate: Candidate, n_serving: int) -> Reserve:
        """Spare replicas beside so many."""
        n_node = self.node_sizes.get(candidate.accelerator, 1)
        return reserve_for(candidate, n_serving, self.resilience, n_accelerators_per_node=n_node)

    def ceiling_frac(self, usual: float) -> float:
        """The highest utilization that the user allows, else a usual one."""
        given = self.resilience.max_utilization_frac
        if given is not None:
            return given
        return BATCH_FRAC if self.is_deferrable else usual

    @property
    def is_deferrable(self) -> bool:
        """Whether nobody waits for a single answer: documents, or a one-off job."""
        return isinstance(self.workload.work, Batch) or self.workload.amount is not None

    def candidate(self, accelerator: Accelerator, precision: str) -> Candidate:
        """The workload on this accelerator, in the layout and precision that the user names."""
        requested = self.workload.layout
        named = self.workload.precisions
        return Candidate(
            workload=self.workload.name,
            accelerator=accelerator.id,
            layout=ServingLayout(
                tp=(requested.n_tensor if requested else None) or 1,
                pp=(requested.n_pipeline if requested else None) or 1,
            ),
            precision=named[0] if named else precision,
        )

    def on_each_accelerator(
        self, precision: str, size: Callable[[Candidate, Accelerator], Found | Rejection]
    ) -> tuple[list[Found], tuple[Rejection, ...]]:
        """The workload on every accelerator of the catalog that the policy allows, or why not."""
        check = policy_check(*self.allowed)
        sized: list[Found] = []
        rejected: list[Rejection] = []
        for accelerator in self.catalog.accelerators.values():
            candidate = self.candidate(accelerator, precision)
            found = check(candidate) or size(candidate, accelerator)
            if isinstance(found, Rejection):
                rejected.append(found)
            else:
                sized.append(found)
        return sized, tuple(rejected)

    def fleet_in_proportion(
        self,
        candidate: Candidate,
        safe_per_s: Estimate,
        *,
        full_per_s: float,
        safe_frac: float,
        method: SizingMethod,
        band: str,
    ) -> Sized:
        """As many replicas as the load takes, where one carries so much within its SLOs."""
        need = need_in_proportion(self.demand, safe_per_s.value)
        n, peak = need.n_peak, self.peak_per_s
        return Sized(
            candidate=candidate,
            method=method,
            need=need,
            reserve=self.reserve(candidate, n),
            capacity_per_s=safe_per_s,
            carried=self._carried(candidate, safe_per_s, full_per_s, method),
            utilization=PoolUtilization(
                peak_frac=peak / (n * full_per_s) if n else None,
                safe_frac=safe_frac,
                band=band,
            ),
        )

    @cached_property
    def requested_precisions(self) -> tuple[str, ...]:
        """Formats that workload and policy both allow; the published one where neither names any.

        InputError where a name is unknown, or both name some and have none in common.
        """
        where = f"{self.workload.name}.precision"
        names = self.workload.precisions or self.scenario.policy.precisions
        found = [one_format("plan", where, name).name for name in names]
        if self.workload.precisions and self.scenario.policy.precisions:
            allowed = [format_named(name) for name in self.scenario.policy.precisions]
            both = {form.name for form in allowed if form is not None}
            found = [name for name in found if name in both]
        if names and not found:
            what = f"{', '.join(names)} against {', '.join(self.scenario.policy.precisions)}"
            raise one(InputError, "plan", where, what, "allow one format in both")
        published = self.model.checkpoint.quantized or self.model.checkpoint.base
        return tuple(found) or (published.name,)

    def is_requested(self, candidate: Candidate) -> bool:
        """Whether its precision is the published one, or one that the user names."""
        return candidate.precision in self._requested_on(candidate)

    def _requested_on(self, candidate: Candidate) -> tuple[str, ...]:
        """The formats asked for, as its accelerator runs them."""
        peaks = self.catalog.accelerators[candidate.accelerator].peak_flop_per_s
        return tuple(sixteen_on(name, peaks) for name in self.requested_precisions)

    @cached_property
    def named_accelerators(self) -> frozenset[str]:
        """Accelerators that the user names: allowed, offered at a price, owned or to be bought."""
        prices = self.scenario.prices
        given = [each.accelerator for each in prices.offers]
        given += [each.accelerator for each in prices.hardware]
        given += [each.accelerator for each in self.scenario.owned]
        ids = (find_accelerator(name, self.catalog).accelerator.id for name in given)
        return self.allowed[0] | frozenset(str(name) for name in ids)

    def is_named(self, candidate: Candidate) -> bool:
        """Whether the user names its accelerator."""
        return str(candidate.accelerator) in self.named_accelerators

    def is_measured(self, candidate: Candidate) -> bool:
        """Whether measurements cover its stack: model class, engine, accelerator and precision."""
        if candidate.engine is None:
            ref = self.workload.model
            is_known = ref is not None and ref.name is not None and not candidate.offer
            return not is_known or is_covered(self.model.name, str(candidate.accelerator))
        return self.evaluator.ranged(candidate).estimate("tpot_mean_ms", 1.0).tier != "estimated"

    def is_mainstream(self, candidate: Candidate) -> bool:
        """Whether its accelerator is named, or measured at a precision that is asked for."""
        if self.is_named(candidate):
            return True
        precisions = (candidate.precision, *self._requested_on(candidate))
        return any(self.is_measured(replace(candidate, precision=name)) for name in precisions)

    def down_frac(self, candidate: Candidate) -> float:
        """Share of the time that a replica is in repair: one accelerator fails, all stop."""
        repair_s = self.scenario.policy.build.spares.repair_s
        up = ACCELERATOR_MTBF_S / (ACCELERATOR_MTBF_S + repair_s)
        # Of a disaggregated replica the other engines go on.
        return float(1.0 - up**candidate.layout.engine.n_accelerators)

    def _carried(
        self, candidate: Candidate, safe_per_s: Estimate, full_per_s: float, method: SizingMethod
    ) -> CarriedLoad | None:
        """What a replica carries within its SLOs; a capacity that was given is within them.

        Documents are in time up to the fullest rate; of a one-off job the odds are those of a run.
        """
        is_recurring = isinstance(self.workload.work, Batch) and self.workload.amount is None
        is_waited_for = isinstance(self.workload.work, Serving) or is_recurring
        if not is_waited_for or safe_per_s.value <= 0:
            return None
        is_full = method == "given" or is_recurring
        ratio = full_per_s / safe_per_s.value if is_full else 1.0
        return carried_by_range(safe_per_s.scaled(ratio), down_frac=self.down_frac(candidate))


def task_of(workload: Workload, scenario: Scenario, context: SizingContext) -> SizingTask:
    """The workload with its demand."""
    demand = demand_of(workload, scenario, read_trace=context.read_trace)
    return SizingTask(workload=workload, scenario=scenario, demand=demand, context=context)
