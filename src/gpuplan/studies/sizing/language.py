"""Fleets of a served language model: the best layout of every accelerator and precision."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from gpuplan.candidates.need import loads_of
from gpuplan.candidates.prune import count_check
from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import NotSized, PriceOf, Sized, Sizing
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.studies.sizing.analytic import AnalyticSizer
from gpuplan.studies.sizing.bounded import BoundedCandidate
from gpuplan.studies.sizing.candidates import candidates_of
from gpuplan.studies.sizing.disaggregated import (
    may_be_split,
    split_assumptions,
    split_candidates,
    too_wide,
)
from gpuplan.studies.sizing.likely import (
    hourly_usd,
    is_likely,
    likely,
    preferred,
    probability_of,
    surest,
    too_unsure,
)
from gpuplan.studies.sizing.serving import ServingSizer
from gpuplan.studies.sizing.simulator import FleetSimulator
from gpuplan.studies.sizing.task import SizingTask

FAR_MORE = 64  # times the least number: beyond, no search for what is still worth its price
SURE_FRAC = 0.95  # of meeting all SLOs: at the same price no surer fleet is looked for
NO_PRICE = "no price is known, so it cannot be compared"


def language_sizes(task: SizingTask) -> Sizing:
    """Every candidate of a language model behind an engine: sized, rejected or skipped."""
    pruned, assumed = candidates_of(task)
    found = list(_sizes(task, pruned.accepted))
    found += _split_sizes(task, pruned.accepted, found)
    chosen, others = may_be_split(
        task, [each for each in found if isinstance(each, Sized)], partial(_eligible, task)
    )
    rejected = [each for each in found if isinstance(each, Rejection)]
    if not chosen:
        is_only = task.scenario.policy.layouts.disaggregation == "always"
        rejected += [
            too_unsure(task, each)
            for each in others
            if task.is_requested(each.candidate)
            and each.candidate.layout.is_disaggregated >= is_only
        ]
    return Sizing(
        workload=task.workload.name,
        demand=task.demand,
        sized=by_price(chosen, task.context.price),
        compared=by_price(others, task.context.price),
        rejected=(*pruned.rejected, *rejected),
        skipped=tuple(each for each in found if isinstance(each, NotSized)),
        assumptions=(
            *task.demand.assumptions,
            *assumed,
            *_assumptions(task),
            *split_assumptions(found),
        ),
    )


def _split_sizes(
    task: SizingTask, accepted: Sequence[Candidate], found: Sequence[Sized | Rejection | NotSized]
) -> Iterator[Sized | Rejection | NotSized]:
    """Disaggregated fleets, where one may be cheaper than the row of its own accelerator.

    Where they may be chosen, on every row that is asked for; else beside the cheapest alone.
    """
    policy = task.scenario.policy.layouts.disaggregation
    likely_enough, _ = _eligible(task, [each for each in found if isinstance(each, Sized)])
    best = by_price(likely_enough, task.context.price)
    rows: dict[tuple[str, str], list[Sized]] = {}
    for each in best[:1] if policy == "auto" else best:
        kind = (str(each.candidate.accelerator), each.candidate.precision)
        rows.setdefault(kind, []).append(each)
    for kind, sized in rows.items():
        tried = list(split_candidates(task, kind, accepted))
        beaten = [] if policy == "always" else [hourly_usd(task, each) for each in sized]
        groups = _Row(task, rivals=beaten).sizes(
            [each for each in tried if isinstance(each, Candidate)]
        )
        fleets = [too_wide(each) if isinstance(each, Sized) else each for each in groups]
        yield from (each for each in tried if isinstance(each, Rejection))
        yield from surest(task, fleets)


def _without_price(each: Candidate) -> NotSized:
    return NotSized(candidate=each, n_replicas_least=1, cost_least_usd_per_h=None, why=NO_PRICE)


def _sizes(
    task: SizingTask, candidates: Sequence[Candidate]
) -> Iterator[Sized | Rejection | NotSized]:
    """The best layout of every accelerator and precision; of unmeasured ones if it is cheaper.

    An accelerator that the user names has its row whatever measurements cover.

    Fractions of an accelerator stand beside the whole, each size for itself: who shares it, and
    how it is cut for them, is not known yet.
    """
    rows: dict[tuple[str, str, str], list[Candidate]] = {}
    for each in candidates:
        if task.context.price(each, 1) is None and not task.context.options.is_exhaustive:
            yield _without_price(each)
        else:
            share = each.share.name if each.share else ""
            key = (str(each.accelerator), each.precision, share)
            rows.setdefault(key, []).append(each)
    shown = {key for key, group in rows.items() if task.is_mainstream(group[0])}
    rivals: list[Floats] = []
    whole: dict[tuple[str, str], list[Floats]] = {}
    is_alone = len(task.scenario.workloads) == 1
    for key in sorted(rows, key=lambda key: (key not in shown, bool(key[2]))):
        first = rows[key][0]
        is_requested = task.is_requested(first)
        group = rows[key] if is_requested else _simplest(rows[key])
        beaten = [] if key in shown else rivals
        # Alone on its card, a fraction has to be cheaper than the whole.
        is_lone = bool(key[2]) and is_alone
        beaten = beaten + (whole.get(key[:2], []) if is_lone else [])
        row = _Row(task, rivals=beaten, is_open_at_par=is_requested and not is_lone)
        yield from surest(task, row.sizes(group))
        whole.setdefault(key[:2], row.costs)
        # A slice costs its part only where others take the rest: no whole one is held against it.
        if key in shown and is_requested and not key[2]:
            rivals += row.costs


def _simplest(row: Sequence[Candidate]) -> list[Candidate]:
    """Layouts of one engine a replica, where there are any: of what is only shown, enough."""
    return [each for each in row if each.layout.n_engines == 1] or list(row)


def row_sizes(task: SizingTask, candidate: Candidate) -> list[Sized]:
    """Fleets of every layout that was looked at on the candidate's accelerator and precision."""
    kind = (candidate.accelerator, candidate.precision)
    known = {
        each: simulator
        for (name, each), simulator in task.context.simulators.items()
        if name == task.workload.name and (each.accelerator, each.precision) == kind
        # Engines in lockstep take long to simulate: others of them are not looked for.
        if each.layout.engine.n_engines == 1 or each == candidate
        if each.layout.is_disaggregated == candidate.layout.is_disaggregated
    }
    found = surest(task, _Row(task, known=known).sizes(list(known)))
    return [each for each in found if isinstance(each, Sized) and is_likely(task, each)]


def _eligible(task: SizingTask, sized: Sequence[Sized]) -> tuple[list[Sized], list[Sized]]:
    """Fleets that may be chosen, and those that are shown beside them.

    Chosen are precisions as published or as asked for, on stacks that measurements cover or that
    are named, with the probability asked for; what no fleet offers is not insisted on.
    """
    found = preferred(
        sized,
        lambda each: task.is_requested(each.candidate),
        lambda each: task.is_named(each.candidate) or task.is_measured(each.candidate),
        lambda each: is_likely(task, each),
    )
    is_hard = task.context.options.is_probability_requested
    if not any(task.is_requested(each.candidate) for each in found) or (
        is_hard and not all(is_likely(task, each) for each in found)
    ):
        return [], list(sized)
    return found, [each for each in sized if each not in found]


def by_price(sized: Sequence[Sized], price: PriceOf) -> tuple[Sized, ...]:
    """The fleets, the cheapest first; those without a price last."""

    def order(each: Sized) -> tuple[bool, float, int, str]:
        cost = price(each.candidate, each.n_replicas)
        return cost is None, cost or 0.0, each.n_accelerators, each.candidate.name

    return tuple(sorted(sized, key=order))


class _Row:
    """The cheapest layout of one accelerator at one precision, those that could be it tried."""

    def __init__(
        self,
        task: SizingTask,
        *,
        rivals: Sequence[Floats] = (),
        is_open_at_par: bool = True,
        known: Mapping[Candidate, FleetSimulator] = MappingProxyType({}),
    ) -> None:
        self.task, self._known = task, known  # what was simulated need not be again
        self._is_open_at_par = is_open_at_par  # the surer one is looked for at the same price
        self._best_odds = 0.0  # of what is sized
        self._tried: dict[Candidate, list[BoundedCandidate]] = {}  # apart from their networks
        self.analytic = AnalyticSizer(task)
        self._loads, self._place = np.unique(loads_of(task.demand).ravel(), return_inverse=True)
        self._sized_costs = list(rivals)  # by load, of what a fleet must be cheaper than
        is_alone = len(task.scenario.workloads) == 1
        self._slack_ratio = 1.0 + (0.0 if is_alone else task.context.options.slack_frac)

    @property
    def costs(self) -> list[Floats]:
        """USD per hour by load of every fleet that is likely enough, and of the rivals."""
        return self._sized_costs

    def sizes(self, candidates: Sequence[Candidate]) -> list[Sized | Rejection | NotSized]:
        """What became of each candidate, the cheapest first."""
        queue = sorted((self._bounded(each) for each in candidates), key=lambda each: each.order)
        return [self._found(each) for each in queue]

    def _found(self, each: BoundedCandidate) -> Sized | Rejection | NotSized:
        why = self._why_skipped(each)
        if why:
            return each.skipped(why)
        self._tried.setdefault(each.apart_from_network, []).append(each)
        found = self._too_many(each.candidate, each.n_least) or self._size(each)
        if isinstance(found, Sized):
            found = self._too_many(each.candidate, found.n_replicas) or found
        if isinstance(found, Sized) and is_likely(self.task, found):
            self._best_odds = max(self._best_odds, probability_of(self.task, found) or 0.0)
            costs = self._costs(each.candidate, self._n_at_loads(found))
            self._sized_costs += [] if costs is None else [costs]
        return found

    def _bounded(self, candidate: Candidate) -> BoundedCandidate:
        """The candidate with the least that it can cost at every load of the horizon."""
        simulator, may_be_likely = self._known.get(candidate), True
        simulator = simulator or self.task.simulator(candidate)
        if simulator is None:
            n, per_s = self.analytic.least(candidate), self.analytic.least_per_s(candidate)
        else:
            sizer = ServingSizer(self.task, simulator)
            n, per_s, may_be_likely = sizer.least(), sizer.least_per_s(), sizer.may_be_likely
            self.task.context.simulators[candidate.workload, candidate] = simulator
        least = np.maximum(np.ceil(self._loads / per_s - 1e-9), self._loads > 0).astype(np.int64)
        return BoundedCandidate(
            candidate=candidate,
            simulator=simulator,
            n_least=n,
            n_at_loads=least,
            may_be_likely=may_be_likely,
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

    def _size(self, each: BoundedCandidate) -> Sized | Rejection | NotSized:
        if each.simulator is None:
            found = self.analytic.size(each.candidate)
            return likely(self.task, found) or found if isinstance(found, Sized) else found
        n_worth = self._n_worth(each)
        sized = ServingSizer(self.task, each.simulator).size(n_most=n_worth)
        if sized is not None:
            return sized
        assert n_worth is not None
        return self._too_expensive(each, n_worth)

    def _n_worth(self, each: BoundedCandidate) -> int | None:
        """The most replicas at the peak whose cost leaves the choice open; None: no such end."""
        is_all = self._is_sized_anyway(each.candidate)
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

    def _beaten_with(self, each: BoundedCandidate, n_peak: int) -> bool:
        """With so many at the peak and above, and the least below, another is always cheaper."""
        is_high = self._loads >= self.task.peak_per_s
        n = np.where(is_high, np.maximum(each.n_at_loads, n_peak), each.n_at_loads)
        costs = self._costs(each.candidate, n)
        return costs is not None and self._enough(costs) is not None

    def _too_expensive(self, each: BoundedCandidate, n_worth: int) -> NotSized:
        """Simulated only up to the number beyond which it cannot win."""
        n = n_worth + 1
        cost = self._cost(each.candidate, n)
        enough = min(float(costs[-1]) for costs in self._sized_costs)
        least = f"{n} replicas or more are needed" + (f", {cost:.2f} USD/h" if cost else "")
        why = f"{least}: {n_worth} are not enough; {enough:.2f} USD/h is"
        return replace(each, n_least=n, cost_usd_per_h=cost).skipped(why)

    def _too_many(self, candidate: Candidate, n_replicas: int) -> Rejection | None:
        """More accelerators than the user allows."""
        n_most = self.task.scenario.policy.n_accelerators_max
        return count_check(lambda _: n_replicas, n_most)(candidate)

    def _why_skipped(self, each: BoundedCandidate) -> str:
        """Why it need not be simulated: one that is sized costs less at every load there is."""
        least = each.costs_usd_per_h
        if self._is_sized_anyway(each.candidate):
            return ""
        if least is None:
            return NO_PRICE
        if self._is_slower(each):
            return "not simulated: the same over a faster network between servers costs no more"
        enough = self._enough(least)
        if enough is None:
            return ""
        return (
            f"not simulated: at the highest load it costs at least {least[-1]:.2f} USD/h, "
            f"{enough:.2f} USD/h is enough"
        )

    def _is_slower(self, each: BoundedCandidate) -> bool:
        """Whether the same layout was tried over a faster network that costs no more."""
        numbers = np.unique(np.append(each.n_at_loads, each.n_least))
        mine = self._costs(each.candidate, numbers)
        return mine is not None and any(
            other.network_bytes_per_s >= each.network_bytes_per_s
            and (theirs := self._costs(other.candidate, numbers)) is not None
            and bool(np.all(theirs <= mine))
            for other in self._tried.get(each.apart_from_network, ())
        )

    def _is_sized_anyway(self, candidate: Candidate) -> bool:
        """Whether no price of others rules it out: nodes that are there already cost little."""
        options = self.task.context.options
        return options.is_exhaustive or str(candidate.accelerator) in self.task.owned

    def _enough(self, least: Floats) -> float | None:
        """What another costs at the highest load that is cheaper at every load; None: none is."""
        # At the same price a fleet may still be the surer one.
        room = 1e-9 if self._is_open_at_par and self._best_odds < SURE_FRAC else -1e-9
        for costs in self._sized_costs:
            most = costs[-1] * self._slack_ratio
            if bool(np.all(least >= costs)) and bool(least[-1] > most * (1 + room)):
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
