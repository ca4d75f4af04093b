"""Sizing of one workload: demand, candidates, then fleets, the cheapest first and no more."""

from collections.abc import Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path

import numpy as np

from gpuplan.candidates.need import loads_of
from gpuplan.candidates.prune import count_check
from gpuplan.candidates.reserve import reserve_notes
from gpuplan.catalog.nodes import node_sizes
from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.inference.performance import ServingLoad
from gpuplan.domain.model.network import Model
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Pruned, Rejection
from gpuplan.domain.plan.sizing import (
    DemandProfile,
    NotSized,
    PriceOf,
    Sized,
    Sizing,
    SizingOptions,
)
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Generic, Serving, Training, Workload
from gpuplan.errors import InputError, one
from gpuplan.studies.naming import model_named
from gpuplan.studies.sizing.analytic import AnalyticSizer
from gpuplan.studies.sizing.candidates import Bench, candidates_of, limits_of
from gpuplan.studies.sizing.demand import ReadTrace, demand_of
from gpuplan.studies.sizing.given_capacity import given_sizes
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.trials import Runs, Streams

DEFAULTS = SizingOptions()
FAR_MORE = 64  # times the least number: beyond, no search for what is still worth its price
NEW_KIND_RATIO = 3.0  # of the cheapest: up to there a kind of accelerator gets its own fleet sized


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What sizing needs beside the scenario."""

    catalog: Catalog
    price: PriceOf
    options: SizingOptions = DEFAULTS
    store: Path | None = None
    read_trace: ReadTrace | None = None
    known: dict[tuple[str, Candidate], Runs] = field(default_factory=dict)  # trials made so far


def by_count(candidate: Candidate, n_replicas: int) -> float:
    """Accelerators, as if each cost one: for callers without prices."""
    return float(candidate.n_accelerators_for(n_replicas))


def size_workload(workload: Workload, scenario: Scenario, around: Surroundings) -> Sizing:
    """Every candidate of the workload: sized, rejected with a reason, or skipped with a bound."""
    found = _sizes(workload, scenario, around)
    if isinstance(workload.work, Training):
        return found  # a run that fails starts again: nothing stands by
    notes = reserve_notes(scenario.policy.resilience)
    return replace(found, assumptions=(*found.assumptions, *notes))


def _sizes(workload: Workload, scenario: Scenario, around: Surroundings) -> Sizing:
    if around.read_trace is not None:
        around = replace(around, read_trace=cache(around.read_trace))  # read once, used twice
    demand = demand_of(workload, scenario, read_trace=around.read_trace)
    given = given_sizes(workload, scenario, demand, catalog=around.catalog, options=around.options)
    work = workload.work
    if isinstance(work, Training):
        from gpuplan.studies.sizing.training import training_sizes

        return training_sizes(workload, scenario, demand, catalog=around.catalog)
    if given.is_complete or isinstance(work, Generic):
        return given.sizing
    model = _model(workload, around.store)
    if model.kind in ("encoder", "vision", "diffusion"):
        from gpuplan.studies.sizing.networks import network_sizes

        estimated = network_sizes(
            workload, scenario, demand, catalog=around.catalog, options=around.options
        )
    else:
        estimated = _language(workload, scenario, demand, model=model, around=around)
    return _merged(given.sizing, estimated, around.price)


def _model(workload: Workload, store: Path | None) -> Model:
    if workload.model is None or workload.model.name is None:
        fix = "name the model, or give the capacity of each accelerator"
        raise one(InputError, "plan", f"{workload.name}.model", "has no name", fix)
    return model_named(workload.model.name, store)


def _merged(given: Sizing, estimated: Sizing, price: PriceOf) -> Sizing:
    """The user's own figures take the place of ours, accelerator by accelerator."""
    known = {sized.candidate.accelerator for sized in given.sized}
    return replace(
        estimated,
        sized=_by_price([*given.sized, *(s for s in estimated.sized
                                         if s.candidate.accelerator not in known)], price),
        rejected=tuple(r for r in estimated.rejected if r.candidate.accelerator not in known),
        skipped=tuple(s for s in estimated.skipped if s.candidate.accelerator not in known),
        assumptions=(*given.assumptions, *estimated.assumptions),
    )  # fmt: skip


def _language(
    workload: Workload, scenario: Scenario, demand: DemandProfile, *, model: Model,
    around: Surroundings,
) -> Sizing:  # fmt: skip
    """A language model behind an engine."""
    bench = Bench(
        model, serving_load(workload, demand), around.catalog,
        context_tokens=_context(demand), longest_tokens=_longest(workload, demand),
    )  # fmt: skip
    pruned, told = candidates_of(workload, bench, scenario.policy)
    sizer = Sizer(workload, scenario, demand, bench=bench, around=around)
    found = sizer.run(pruned)
    return Sizing(
        workload=workload.name,
        demand=demand,
        sized=_by_price(found.sized, around.price),
        jobs=(),
        rejected=(*pruned.rejected, *found.rejected),
        skipped=tuple(found.skipped),
        assumptions=(*demand.assumptions, *told, *_assumed(sizer)),
    )


def serving_load(workload: Workload, demand: DemandProfile) -> ServingLoad:
    """What predictions need to know of the load."""
    work = workload.work
    hit = 0.0 if isinstance(work, Training | Generic) else work.request.prefix_hit_frac.mid
    arrivals = work.arrivals if isinstance(work, Serving) else None
    n_concurrent = arrivals.n_concurrent if arrivals else None
    is_open = demand.peak_requests_per_s is not None and isinstance(work, Serving)
    closed = "fixed_concurrency" if n_concurrent is not None else "max_load"
    return ServingLoad(
        regime="poisson" if is_open else closed,  # type: ignore[arg-type]
        input_tokens=max(1.0, demand.input_tokens),
        output_tokens=max(1.0, demand.output_tokens),
        n_sequences=n_concurrent,
        requests_per_s=demand.peak_requests_per_s,
        cached_input_frac=hit,
    )


def streams_of(workload: Workload, around: Surroundings) -> Streams | None:
    """Draws of the described arrivals, or the busiest hour of a trace; None: nobody waits."""
    work = workload.work
    if not isinstance(work, Serving):
        return None
    recorded = None
    if work.arrivals.trace is not None and around.read_trace is not None:
        recorded = around.read_trace(Path(work.arrivals.trace))
    return Streams(work.arrivals, work.request, around.options.seed, recorded=recorded)


def _context(demand: DemandProfile) -> int:
    """Tokens of a mean request."""
    return max(1, round(demand.input_tokens + demand.output_tokens))


def _longest(workload: Workload, demand: DemandProfile) -> int:
    """Tokens of the longest request that must have room: as the user says, or as far as known."""
    work = workload.work
    if isinstance(work, Training | Generic):
        return _context(demand)
    ends = [
        lengths.max_tokens or lengths.p99_tokens or lengths.mean_tokens
        for lengths in (work.request.input, work.request.output)
    ]
    return max(_context(demand), round(sum(ends)), work.max_context_tokens or 0)


@dataclass(slots=True)
class _Found:
    sized: list[Sized]
    rejected: list[Rejection]
    skipped: list[NotSized]


class Sizer:
    """Candidates in order of the least they can cost; the search ends where none can win."""

    def __init__(
        self, workload: Workload, scenario: Scenario, demand: DemandProfile, *, bench: Bench,
        around: Surroundings,
    ) -> None:  # fmt: skip
        self.limits = limits_of(workload)
        self.bench, self.around, self.demand = bench, around, demand
        self._n_most = scenario.policy.n_accelerators_max
        resilience = scenario.policy.resilience
        sizes = node_sizes(around.catalog)
        self.serving = ServingSizer(bench, demand, resilience, node_size=sizes)
        self.analytic = AnalyticSizer(bench, demand, resilience, node_size=sizes)
        self._streams = streams_of(workload, around)
        self.n_trials = 0
        self._loads, self._place = np.unique(loads_of(demand).ravel(), return_inverse=True)
        self._held: list[Floats] = []  # costs of what is sized, by load
        self._slack_ratio = 1.0 + around.options.slack_frac
        self._kinds: set[str] = set()  # accelerators of which a fleet is sized

    def run(self, pruned: Pruned) -> _Found:
        """Sized, rejected by simulation, and skipped: together all that was kept."""
        found = _Found(sized=[], rejected=[], skipped=[])
        queue = sorted(
            (self._bounded(candidate) for candidate in pruned.kept), key=lambda each: each.order
        )
        for each in queue:
            why = self._why_skipped(each)
            if why:
                found.skipped.append(each.skipped(why))
                continue
            sized = self._too_many(each.candidate, each.n_least) or self._size(each)
            if isinstance(sized, Sized):
                sized = self._too_many(each.candidate, sized.n_replicas) or sized
            if isinstance(sized, NotSized):
                found.skipped.append(sized)
                continue
            if isinstance(sized, Rejection):
                found.rejected.append(sized)
                continue
            found.sized.append(sized)
            costs = self._costs(each.candidate, self._n_at_loads(sized))
            if costs is not None:
                self._held.append(costs)
                self._kinds.add(str(each.candidate.accelerator))
        return found

    def _bounded(self, candidate: Candidate) -> "_Bounded":
        """The candidate with the least that it can cost at every load of the horizon."""
        runs = self._runs(candidate)
        if runs is None:
            n, per_s = self.analytic.least(candidate), self.analytic.least_per_s(candidate)
        else:
            n, per_s = self.serving.least(runs), self.serving.least_per_s(runs)
        least = np.maximum(np.ceil(self._loads / per_s - 1e-9), self._loads > 0).astype(np.int64)
        costs = self._costs(candidate, least)
        cost = self.around.price(candidate, n + self.serving.n_spare(candidate, n))
        return _Bounded(
            candidate=candidate, runs=runs, n_least=n, n_at_loads=least, cost_usd_per_h=cost,
            costs_usd_per_h=costs,
        )  # fmt: skip

    def _n_at_loads(self, sized: Sized) -> Ints:
        """Replicas at every load of the horizon, in rising order of loads."""
        n = np.zeros(len(self._loads), dtype=np.int64)
        n[self._place] = sized.need.n_replicas.ravel()
        return n

    def _costs(self, candidate: Candidate, n_replicas: Ints) -> Floats | None:
        """USD per hour with reserve at every load; None: no price is known."""
        known: dict[int, float] = {0: 0.0}
        for n in {int(x) for x in n_replicas} - {0}:
            spare = self.serving.n_spare(candidate, n)
            cost = self.around.price(candidate, n + spare)
            if cost is None:
                return None
            known[n] = cost
        return np.array([known[int(n)] for n in n_replicas])

    def _runs(self, candidate: Candidate) -> Runs | None:
        """Trials of a candidate that can be simulated; None where a formula has to do."""
        layout = candidate.layout
        is_open = self.bench.load.regime == "poisson" and self._streams is not None
        if not is_open or layout.pp > 1 or layout.dp > 1 or self._streams is None:
            return None
        runs = Runs(
            self.bench.prospect(candidate), self.bench, self._streams, limits=self.limits,
            options=self.around.options,
        )  # fmt: skip
        self.around.known[candidate.workload, candidate] = runs
        return runs

    def _size(self, each: "_Bounded") -> Sized | Rejection | NotSized:
        if each.runs is None:
            return self.analytic.size(each.candidate, self.limits)
        n_worth = self._n_worth(each)
        sized = self.serving.size(each.runs, n_most=n_worth)
        self.n_trials += each.runs.n_trials
        if sized is not None:
            return sized
        assert n_worth is not None
        return self._too_dear(each, n_worth)

    def _n_worth(self, each: "_Bounded") -> int | None:
        """The most replicas at the peak whose cost leaves the choice open; None: no such end."""
        if self.around.options.is_exhaustive or not self._held or each.costs_usd_per_h is None:
            return None
        low = each.n_least
        high = 2 * low
        while not self._beaten_with(each, high):
            low, high = high, 2 * high
            if high > FAR_MORE * each.n_least:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._beaten_with(each, middle) else (middle, high)
        return low

    def _beaten_with(self, each: "_Bounded", n_peak: int) -> bool:
        """With so many at the peak and above, and the least below, another is always cheaper."""
        is_high = self._loads >= self.serving.peak_per_s
        n = np.where(is_high, np.maximum(each.n_at_loads, n_peak), each.n_at_loads)
        costs = self._costs(each.candidate, n)
        is_known = str(each.candidate.accelerator) in self._kinds
        ratio = self._slack_ratio if is_known else max(NEW_KIND_RATIO, self._slack_ratio)
        return costs is not None and self._enough(costs, ratio) is not None

    def _too_dear(self, each: "_Bounded", n_worth: int) -> NotSized:
        """Simulated only up to the number beyond which it cannot win."""
        n = n_worth + 1
        cost = self.around.price(each.candidate, n + self.serving.n_spare(each.candidate, n))
        enough = min(float(costs[-1]) for costs in self._held)
        least = f"{n} replicas or more are needed" + (f", {cost:.2f} USD/h" if cost else "")
        why = f"{least}: with {n_worth} a promise breaks; {enough:.2f} USD/h is enough"
        return replace(each, n_least=n, cost_usd_per_h=cost).skipped(why)

    def _too_many(self, candidate: Candidate, n_replicas: int) -> Rejection | None:
        """More accelerators than the user allows."""
        return count_check(lambda _: n_replicas, self._n_most)(candidate)

    def _why_skipped(self, each: "_Bounded") -> str:
        """Why it need not be simulated: one that is sized costs less at every load there is."""
        options = self.around.options
        least = each.costs_usd_per_h
        if options.is_exhaustive:
            return ""
        if least is None:
            return "no price is known, so it cannot be compared"
        enough = self._enough(least, self._slack_ratio)
        if enough is None:
            return ""
        return (
            f"not simulated: at the highest load it costs at least {least[-1]:.2f} USD/h, "
            f"{enough:.2f} USD/h is enough"
        )

    def _enough(self, least: Floats, ratio: float) -> float | None:
        """What another costs at the highest load that is cheaper at every load; None: none is."""
        for costs in self._held:
            if bool(np.all(least >= costs)) and bool(least[-1] > costs[-1] * ratio):
                return float(costs[-1])
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounded:
    candidate: Candidate
    runs: Runs | None
    n_least: int
    n_at_loads: Ints  # at least, at every load
    cost_usd_per_h: float | None  # at the peak of the first period
    costs_usd_per_h: Floats | None  # at every load

    @property
    def order(self) -> tuple[bool, float, int, int, str]:
        """Priced first, then cheap, few, in the engine's usual steps: the same every time."""
        cost, candidate = self.cost_usd_per_h, self.candidate
        n_tokens = candidate.settings.max_batch_tokens if candidate.settings else 0
        return cost is None, cost or 0.0, candidate.n_accelerators, -n_tokens, candidate.name

    def skipped(self, why: str) -> NotSized:
        return NotSized(
            candidate=self.candidate, n_replicas_least=self.n_least,
            cost_least_usd_per_h=self.cost_usd_per_h, why=why,
        )  # fmt: skip


def _by_price(sized: Sequence[Sized], price: PriceOf) -> tuple[Sized, ...]:
    def order(each: Sized) -> tuple[bool, float, int, str]:
        cost = price(each.candidate, each.n_replicas)
        return cost is None, cost or 0.0, each.n_accelerators, each.candidate.name

    return tuple(sorted(sized, key=order))


def _assumed(sizer: Sizer) -> list[Assumption]:
    options = sizer.around.options
    told = [
        Assumption(
            what="sizing runs", change="--seed",
            value=f"{options.n_requests} requests or more each, seed {options.seed}",
            why="the upper 90 % confidence bound of each promised statistic must keep its limit",
        )
    ]  # fmt: skip
    if sizer.bench.load.cached_input_frac:
        hit = sizer.bench.load.cached_input_frac
        told.append(
            Assumption(
                what="prefix cache", value=f"{hit:.0%} of each prompt, private to its conversation",
                why="hits save prefill, not memory; shared prefixes would need less memory",
                change="workloads[].request.prefix_hit_frac",
            )
        )  # fmt: skip
    return told
