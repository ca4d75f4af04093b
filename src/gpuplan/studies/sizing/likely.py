"""Fleets that meet their SLOs with the probability asked for, in: a sized fleet; out: a larger one.

A fleet sized for the predicted speed sits on its SLOs: a little more demand, or a model a little
slower than predicted, and it is too small.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from gpuplan.candidates.need import loads_of
from gpuplan.candidates.risk import FleetRisk, rate_within, risk_samples
from gpuplan.domain.columns import Floats, ints
from gpuplan.domain.plan.candidate import Candidate, Rejection
from gpuplan.domain.plan.sizing import CarriedLoad, NotSized, ReplicaNeed, Sized
from gpuplan.studies.sizing.task import SizingTask

# Of the replicas that the predicted speed needs. Beyond it odds rise only by emptying the fleet:
# the SLO lies near the latency of a lone request, and other hardware is the answer.
MOST_RATIO = 4

# Twice the fleet has to halve what is left of the risk; where risk falls more slowly than with this
# power of its size, it is larger than its odds are worth, and not bought. What is within so much of
# the best size is not quarrelled with.
WORTH_POWER, LAST_FRAC = 1.0, 0.9

CarriedBy = Callable[[int], CarriedLoad]  # what each of so many replicas carries
Wanted = Callable[[int], ReplicaNeed | None]  # what is asked for by the figures of so many


def risk_of(task: SizingTask, carried: CarriedLoad) -> FleetRisk:
    """The odds of fleets that carry so much, on the samples of this plan."""
    return FleetRisk(carried, risk_samples(task.context.options.seed))


def likely(task: SizingTask, sized: Sized, *, n_most: int | None = None) -> Sized | None:
    """A fleet that is not simulated, as large as the probability asked for takes; None: above."""
    if sized.carried is None:
        return sized
    known = sized.carried
    need = likely_need(task, sized.candidate, sized.need, lambda _: known, n_most=n_most)
    if need is None:
        return None
    busy, n_before = sized.utilization.peak_frac, sized.need.n_peak
    if busy is not None and need.n_peak > n_before > 0:
        busy *= n_before / need.n_peak
    utilization = replace(sized.utilization, peak_frac=busy)
    return with_odds(task, replace(sized, need=need, utilization=utilization), sized.n_serving)


def likely_need(
    task: SizingTask,
    candidate: Candidate,
    need: ReplicaNeed,
    carried_by: CarriedBy,
    *,
    n_most: int | None = None,
) -> ReplicaNeed | None:
    """As many replicas as the probability asked for takes; None: above the most that is asked for.

    As it is where none is asked for, and where no number of replicas reaches it.
    """
    level = task.context.options.min_probability_frac
    if level is None or need.n_peak == 0 or task.peak_per_s <= 0:
        return need
    n_spare = task.reserve(candidate, need.n_peak).n_spare
    most = MOST_RATIO * (int(need.n_replicas.max()) + 1)

    def wanted(n: int) -> ReplicaNeed | None:
        """By what each of so many carries: fewer share their load less well."""
        risk = risk_of(task, carried_by(n + n_spare))
        found = _need(task, risk, level, n_spare=n_spare, most=most)
        return found and found.at_least(need)

    found = fewest(need.n_peak, wanted, n_most)
    if found is None:
        return need
    if n_most is not None and found.n_peak > n_most:
        return None
    n_worth = _n_bought(task, found, carried_by, n_spare, n_predicted=need.n_peak + n_spare)
    return found if n_worth == found.n_peak else found.scaled(n_worth / found.n_peak).at_least(need)


def _n_bought(
    task: SizingTask,
    found: ReplicaNeed,
    carried_by: CarriedBy,
    n_spare: int,
    *,
    n_predicted: int | None = None,
) -> int:
    """Of so many replicas beside their spares, those that are worth buying."""
    n, load = found.n_peak + n_spare, task.peak_per_s
    carried = carried_by(n)
    if n_predicted is None:
        n_predicted = ceil(load / max(middle_load(carried), 1e-12)) + n_spare
    risk = risk_of(task, carried)
    return most_worth(risk, load, n, n_predicted=n_predicted) - n_spare


def most_worth(risk: FleetRisk, load: float, n: int, *, n_predicted: int) -> int:
    """So many replicas, or as many of them as lower the risk by a fair share of their cost.

    Where throughput binds, a tenth more of a fleet halves what is left of the risk. Where the time
    of a token binds, risk stays however empty the fleet is: another layout or accelerator, or a
    measurement, is the answer.
    """
    counts = np.arange(min(n, n_predicted), n + 1)
    weighed = [(1.0 - risk.probability(int(k), load)) * k**WORTH_POWER for k in counts]
    best = int(counts[int(np.argmin(weighed))])
    return n if best >= LAST_FRAC * n or n <= n_predicted + 1 else best


def saturation_text(task: SizingTask, sized: Sized) -> str:
    """What a fleet that is not as likely as is asked for reaches, and twice as many would."""
    if sized.carried is None or sized.n_serving == 0 or task.peak_per_s <= 0:
        return ""
    risk, n, load = risk_of(task, sized.carried), sized.n_replicas, task.peak_per_s
    odds, more = (risk.probability(k, load) for k in (n, 2 * n))
    return (
        f"{odds:.0%}, and {more:.0%} with {sized.candidate.n_accelerators_for(2 * n)}: latency "
        "binds, not their number; a wider layout, faster accelerators or one measurement help"
    )


def sure_need(
    task: SizingTask,
    candidate: Candidate,
    guess: CarriedLoad,
    carried_by: CarriedBy,
    *,
    n_most: int | None = None,
) -> ReplicaNeed | None:
    """The same from the odds alone, sought from a guess of what one carries.

    More than the most that is asked for where these are not enough. None: none is asked for, or no
    number is known to reach it. Whether so many hold at the predicted speed is not looked at.
    """
    level = task.context.options.min_probability_frac
    if level is None or task.peak_per_s <= 0:
        return None

    def need(carried: CarriedLoad, n_spare: int) -> ReplicaNeed | None:
        top = float(loads_of(task.demand).max()) / max(middle_load(carried), 1e-12)
        most = MOST_RATIO * (ceil(top) + 1)
        return _need(task, risk_of(task, carried), level, n_spare=n_spare, most=most)

    start = need(guess, 0)
    if start is None:
        return None
    n_spare = task.reserve(candidate, start.n_peak).n_spare
    n_first = max(1, start.n_peak - n_spare)
    found = fewest(n_first, lambda n: need(carried_by(n + n_spare), n_spare), n_most)
    if found is None or (n_most is not None and found.n_peak > n_most):
        return found
    is_bought = _n_bought(task, found, carried_by, n_spare) == found.n_peak
    return found if is_bought else None


def middle_load(carried: CarriedLoad) -> float:
    """Of one replica at the predicted speed."""
    return float(np.interp(0.0, carried.n_deviations, carried.load_per_s))


def fewest(start: int, wanted: Wanted, n_most: int | None) -> ReplicaNeed | None:
    """The fewest that are enough by their own figures; None: none are.

    More share their load no worse, so what is asked for falls with their number and there is one
    such number, wherever the search begins. Above the most it is what these ask for.
    """
    n, too_few = start if n_most is None else min(start, n_most), 0
    requested = wanted(n)
    while requested is not None and requested.n_peak > n != n_most:
        too_few, n = n, requested.n_peak if n_most is None else min(requested.n_peak, n_most)
        requested = wanted(n)
    if requested is None or requested.n_peak > n:
        return requested
    fewer = max(requested.n_peak, too_few + 1)
    while fewer < n:
        again = wanted(fewer)
        if again is not None and again.n_peak <= fewer:
            n, requested, fewer = fewer, again, max(again.n_peak, too_few + 1)
        else:
            too_few, fewer = fewer, max(fewer + 1, (fewer + n) // 2)
    return requested if requested.n_peak >= n else requested.scaled(n / requested.n_peak)


def probability_of(task: SizingTask, sized: Sized) -> float | None:
    """How likely the fleet meets all SLOs at the first period's peak; None: nobody waits."""
    if sized.carried is None:
        return None
    return risk_of(task, sized.carried).probability(sized.n_replicas, task.peak_per_s)


def preferred(sized: Sequence[Sized], *rules: Callable[[Sized], bool]) -> list[Sized]:
    """Fleets that keep the rules, one after the other; what none keeps is not insisted on."""
    found = list(sized)
    for is_right in rules:
        found = [each for each in found if is_right(each)] or found
    return found


def too_unsure(task: SizingTask, sized: Sized) -> Rejection:
    """A fleet that does not reach the probability asked for, however large it is."""
    odds, level = probability_of(task, sized) or 0.0, task.context.options.min_probability_frac
    return Rejection(
        candidate=sized.candidate,
        constraint="slo",
        reason=f"{sized.n_replicas} replicas meet all SLOs with {odds:.0%} probability, "
        f"{level or 0.0:.0%} is asked for, and more replicas do not reach it, or hardly lower the "
        "risk for their price",
        relaxation=f"set policy.min_probability_frac to {int(100 * odds) / 100:g} or less, loosen "
        "the SLO that binds, or measure one replica",
        gap_ratio=(level or 0.0) / max(odds, 1e-3),
    )


def is_likely(task: SizingTask, sized: Sized) -> bool:
    """Whether the fleet reaches the probability asked for; where none is, every one does."""
    level = task.context.options.min_probability_frac
    found = probability_of(task, sized)
    return level is None or found is None or found >= level


def _need(
    task: SizingTask, risk: FleetRisk, level: float, *, n_spare: int, most: int
) -> ReplicaNeed | None:
    """Replicas by the hour that carry its load so surely, spares being of use too."""
    loads, place = np.unique(loads_of(task.demand), return_inverse=True)
    fewest = [risk.fewest(float(load), level, most=most) for load in loads]
    if any(n is None for n in fewest):
        return None
    is_busy = loads > 0
    wanted = np.array([max(0, (n or 0) - n_spare) for n in fewest], dtype=np.int64)
    by_hour = np.maximum(wanted, is_busy)[place]
    return ReplicaNeed(n_replicas=ints(by_hour.reshape(loads_of(task.demand).shape)))


def with_odds(task: SizingTask, found: Sized, n_predicted: int) -> Sized:
    """The fleet with what it carries that surely, the spares it counts on, and why it grew."""
    level = task.context.options.min_probability_frac
    if level is None or found.carried is None or found.n_serving == 0 or task.peak_per_s <= 0:
        return found
    carried = found.carried
    risk, peak, n = risk_of(task, carried), task.peak_per_s, found.n_serving
    fewest = risk.fewest(peak, level, most=MOST_RATIO * (n + 1)) or n
    reserve = replace(found.reserve, n_headroom=max(0, min(found.reserve.n_spare, fewest - n)))
    load = risk.most_load(n + reserve.n_headroom, level)
    if found.method != "simulated" and found.capacity_per_s is not None:
        # A highest utilization that was given or assumed holds however likely more would be.
        load = min(load, n * found.capacity_per_s.value)
    rate = rate_within(carried, load, n=n, peak=peak)
    found = replace(found, reserve=reserve, capacity_per_s=rate)
    if n == n_predicted:
        return found
    odds = risk.probability(n + found.reserve.n_spare, peak)
    # What fewer replicas reach is told where such a fleet is run, not in proportion to this one.
    remark = (
        f"{n - n_predicted} more than the predicted speed needs: all SLOs are met with "
        f"{odds:.0%} probability"
    )
    return replace(found, remarks=(*found.remarks, remark))


def surest(
    task: SizingTask, found: Sequence[Sized | Rejection | NotSized]
) -> Iterator[Sized | Rejection | NotSized]:
    """What was found, less fleets that another of the row equals in price and beats in odds."""
    sized = [each for each in found if isinstance(each, Sized)]
    odds = {each.candidate: probability_of(task, each) or 0.0 for each in sized}
    costs = {each.candidate: hourly_usd(task, each) for each in sized}
    for each in found:
        better = [
            other.candidate
            for other in sized
            if isinstance(each, Sized)
            and np.all(costs[other.candidate] <= costs[each.candidate])
            and odds[other.candidate] > odds[each.candidate]
        ]
        if not better or not isinstance(each, Sized):
            yield each
            continue
        why = f"costs no less than {better[0].name}, which meets the SLOs more surely"
        usd = float(costs[each.candidate][-1])
        yield NotSized(
            candidate=each.candidate,
            n_replicas_least=each.n_replicas,
            cost_least_usd_per_h=usd,
            why=why,
        )


def hourly_usd(task: SizingTask, sized: Sized) -> Floats:
    """USD per hour at every number of replicas that some hour asks for, the lowest load first."""
    loads, place = np.unique(loads_of(task.demand).ravel(), return_index=True)
    replicas = sized.need.n_replicas.ravel()[place] + sized.reserve.n_spare * (loads > 0)
    usd = [task.context.price(sized.candidate, int(n)) if n else 0.0 for n in replicas]
    return np.array([np.inf if each is None else each for each in usd])
