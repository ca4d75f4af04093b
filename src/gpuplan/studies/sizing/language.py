"""Fleets of a served language model: the cheapest candidates first, until none left can win."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpuplan.candidates.need import loads_of
from gpuplan.candidates.prune import count_check
from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import NotSized, PriceOf, Sized, Sizing
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.studies.sizing.analytic import AnalyticSizer
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.simulator import FleetSimulator
from gpuplan.studies.sizing.task import SizingTask

FAR_MORE = 64  # times the least number: beyond, no search for what is still worth its price
NEW_KIND_RATIO = 3.0  # of the cheapest: up to there a kind of accelerator gets its own fleet sized


def language_sizes(task: SizingTask) -> Sizing:
    """Every candidate of a language model behind an engine: sized, rejected or skipped."""
    pruned, assumed = candidates_of(task)
    found = _CheapestFirst(task).sizes(pruned.kept)
    sized = [each for each in found if isinstance(each, Sized)]
    rejected = [each for each in found if isinstance(each, Rejection)]
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        sized=by_price(sized, task.context.price),
        rejected=(*pruned.rejected, *rejected),
        skipped=tuple(each for each in found if isinstance(each, NotSized)),
        assumptions=(*task.demand.assumptions, *assumed, *_assumptions(task)),
    )


def by_price(sized: Sequence[Sized], price: PriceOf) -> tuple[Sized, ...]:
    """The fleets, the cheapest first; those without a price last."""

    def order(each: Sized) -> tuple[bool, float, int, str]:
        cost = price(each.candidate, each.n_replicas)
        return cost is None, cost or 0.0, each.n_accelerators, each.candidate.name

    return tuple(sorted(sized, key=order))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounded:
    """A candidate with the least that it can cost."""

    candidate: Candidate
    simulator: FleetSimulator | None
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
            candidate=self.candidate,
            n_replicas_least=self.n_least,
            cost_least_usd_per_h=self.cost_usd_per_h,
            why=why,
        )


class _CheapestFirst:
    """Candidates in order of the least they can cost; the search ends where none can win."""

    def __init__(self, task: SizingTask) -> None:
        self.task = task
        self.analytic = AnalyticSizer(task)
        self._loads, self._place = np.unique(loads_of(task.demand).ravel(), return_inverse=True)
        self._sized_costs: list[Floats] = []  # of what is sized, by load
        self._slack_ratio = 1.0 + task.context.options.slack_frac
        self._kinds: set[str] = set()  # accelerators of which a fleet is sized

    def sizes(self, candidates: Sequence[Candidate]) -> list[Sized | Rejection | NotSized]:
        """What became of each candidate, the cheapest first."""
        queue = sorted((self._bounded(each) for each in candidates), key=lambda each: each.order)
        return [self._found(each) for each in queue]

    def _found(self, each: _Bounded) -> Sized | Rejection | NotSized:
        why = self._why_skipped(each)
        if why:
            return each.skipped(why)
        found = self._too_many(each.candidate, each.n_least) or self._size(each)
        if isinstance(found, Sized):
            found = self._too_many(each.candidate, found.n_replicas) or found
        if isinstance(found, Sized):
            costs = self._costs(each.candidate, self._n_at_loads(found))
            if costs is not None:
                self._sized_costs.append(costs)
                self._kinds.add(str(each.candidate.accelerator))
        return found

    def _bounded(self, candidate: Candidate) -> _Bounded:
        """The candidate with the least that it can cost at every load of the horizon."""
        simulator = self.task.simulator(candidate)
        if simulator is None:
            n, per_s = self.analytic.least(candidate), self.analytic.least_per_s(candidate)
        else:
            sizer = ServingSizer(self.task, simulator)
            n, per_s = sizer.least(), sizer.least_per_s()
            self.task.context.simulators[candidate.workload, candidate] = simulator
        least = np.maximum(np.ceil(self._loads / per_s - 1e-9), self._loads > 0).astype(np.int64)
        return _Bounded(
            candidate=candidate,
            simulator=simulator,
            n_least=n,
            n_at_loads=least,
            cost_usd_per_h=self._cost(candidate, n),
            costs_usd_per_h=self._costs(candidate, least),
        )

    def _n_at_loads(self, sized: Sized) -> Ints:
        """Replicas at every load of the horizon, in rising order of loads."""
        n = np.zeros(len(self._loads), dtype=np.int64)
        n[self._place] = sized.need.n_replicas.ravel()
        return n

    def _cost(self, candidate: Candidate, n: int) -> float | None:
        """USD per hour of so many replicas and their reserve; None: no price is known."""
        n_spare = self.task.reserve(candidate, n).n_spare
        return self.task.context.price(candidate, n + n_spare)

    def _costs(self, candidate: Candidate, n_replicas: Ints) -> Floats | None:
        """USD per hour with reserve at every load; None: no price is known."""
        known: dict[int, float] = {0: 0.0}
        for n in {int(x) for x in n_replicas} - {0}:
            cost = self._cost(candidate, n)
            if cost is None:
                return None
            known[n] = cost
        return np.array([known[int(n)] for n in n_replicas])

    def _size(self, each: _Bounded) -> Sized | Rejection | NotSized:
        if each.simulator is None:
            return self.analytic.size(each.candidate)
        n_worth = self._n_worth(each)
        sized = ServingSizer(self.task, each.simulator).size(n_most=n_worth)
        if sized is not None:
            return sized
        assert n_worth is not None
        return self._too_expensive(each, n_worth)

    def _n_worth(self, each: _Bounded) -> int | None:
        """The most replicas at the peak whose cost leaves the choice open; None: no such end."""
        is_all = self.task.context.options.is_exhaustive
        if is_all or not self._sized_costs or each.costs_usd_per_h is None:
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

    def _beaten_with(self, each: _Bounded, n_peak: int) -> bool:
        """With so many at the peak and above, and the least below, another is always cheaper."""
        is_high = self._loads >= self.task.peak_per_s
        n = np.where(is_high, np.maximum(each.n_at_loads, n_peak), each.n_at_loads)
        costs = self._costs(each.candidate, n)
        is_known = str(each.candidate.accelerator) in self._kinds
        ratio = self._slack_ratio if is_known else max(NEW_KIND_RATIO, self._slack_ratio)
        return costs is not None and self._enough(costs, ratio) is not None

    def _too_expensive(self, each: _Bounded, n_worth: int) -> NotSized:
        """Simulated only up to the number beyond which it cannot win."""
        n = n_worth + 1
        cost = self._cost(each.candidate, n)
        enough = min(float(costs[-1]) for costs in self._sized_costs)
        least = f"{n} replicas or more are needed" + (f", {cost:.2f} USD/h" if cost else "")
        why = f"{least}: {n_worth} violate an SLO; {enough:.2f} USD/h is enough"
        return replace(each, n_least=n, cost_usd_per_h=cost).skipped(why)

    def _too_many(self, candidate: Candidate, n_replicas: int) -> Rejection | None:
        """More accelerators than the user allows."""
        n_most = self.task.scenario.policy.n_accelerators_max
        return count_check(lambda _: n_replicas, n_most)(candidate)

    def _why_skipped(self, each: _Bounded) -> str:
        """Why it need not be simulated: one that is sized costs less at every load there is."""
        least = each.costs_usd_per_h
        if self.task.context.options.is_exhaustive:
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
        for costs in self._sized_costs:
            if bool(np.all(least >= costs)) and bool(least[-1] > costs[-1] * ratio):
                return float(costs[-1])
        return None


def _assumptions(task: SizingTask) -> list[Assumption]:
    options, hit = task.context.options, task.serving_load.cached_input_frac
    runs = assume(
        "sizing runs",
        f"{options.n_requests} requests or more each, seed {options.seed}",
        "the upper 90 % confidence bound of each latency must be within its SLO",
        "--seed",
    )
    if not hit:
        return [runs]
    prefix = assume(
        "prefix cache",
        f"{hit:.0%} of each prompt, private to its conversation",
        "hits save prefill, not memory; shared prefixes would need less memory",
        "workloads[].request.prefix_hit_frac",
    )
    return [runs, prefix]
