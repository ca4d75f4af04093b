"""A fleet through its day, in: hours with loads and replicas; out: SLO attainment.

Every hour is run for as long as the number of requests allows. Hours with the same number of
replicas are one run; where the number changes, replicas have come or gone before the hour begins
and a stretch of that hour, which is not counted, fills them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.candidates.slo import QUANTILES, STUDENT, LatencyStatistic
from gpuplan.demand.statistics import peak_hour
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.plan.answer import Replay
from gpuplan.domain.plan.sizing import DemandProfile
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Requests, alike
from gpuplan.studies.sizing.simulator import FleetSimulator
from gpuplan.studies.sizing.streams import Load, RequestStreams
from gpuplan.units import HOUR

WHOLE_REQUESTS = 200_000  # up to so many a day or week is run as it is
MOST_REQUESTS = 100_000  # of a longer one, about
N_DAY = 24
N_WEEK = 168
POOL = 32  # replicas; larger fleets are pools of so many, each behind its own router
N_TURNOVERS = 10  # times that all in flight are replaced in an hour, if the day is not cut further
WARM_TURNOVERS = 4
BEYOND_CHANCE = 3.0  # half-widths of the 90 % interval, which leave about one in a thousand
LEAST_JUDGED = 100  # requests of an hour, for a percentile to be told


class Day(NamedTuple):
    """Hours in order: what comes, and how many replicas there are."""

    load_per_s: Floats
    n_replicas: Ints
    run_s: float  # of each hour
    is_part: bool = False  # one pool of a larger fleet, or the busiest day of a longer week
    first: int = 0  # hour of the week that it begins with

    @property
    def n_requests(self) -> float:
        """Requests that come while it is run."""
        return float(self.load_per_s.sum() * self.run_s)

    def day_from(self, first: int) -> "Day":
        """The 24 hours from this one on."""
        hours = slice(first, first + N_DAY)
        return Day(
            self.load_per_s[hours], self.n_replicas[hours], self.run_s, is_part=True, first=first
        )


class HourResult(NamedTuple):
    """What the requests of one hour got."""

    place: int
    n_requests: int
    n_met: Ints  # by SLO: requests within it
    is_violated: bool  # beyond chance
    served_per_s: float = 0.0  # of a closed loop; else the load itself


def day_of(
    demand: DemandProfile, n_replicas: Ints, *, residence_s: float, n_whole: int = WHOLE_REQUESTS
) -> Day:
    """The hours of the first period, as long each as the number of requests allows."""
    frac, n = _hours(demand, n_replicas)
    load, n = _one_pool(floats(demand.peak_of(0, 0) * frac), n)
    day = Day(load, n, HOUR, is_part=bool(n.max() < n_replicas.max()))
    return _bounded(day, residence_s, n_whole)


def _hours(demand: DemandProfile, n_replicas: Ints) -> tuple[Floats, Ints]:
    """A day or a week of equal hours: blocks of a load-duration curve are cut into them."""
    hours = demand.hours
    if len(hours.load_frac) in (N_DAY, N_WEEK):
        return hours.load_frac, n_replicas
    if len(hours.load_frac) == 1:
        return floats(np.repeat(hours.load_frac, N_DAY)), ints(np.repeat(n_replicas, N_DAY))
    ends = np.cumsum(hours.hours_per_week)
    place = np.searchsorted(ends, (np.arange(N_WEEK) + 0.5) * ends[-1] / N_WEEK)
    return floats(hours.load_frac[place]), ints(n_replicas[place])


def violated_hours(demand: DemandProfile, found: Replay) -> NDArray[np.bool_]:
    """Hours of the demand that ask for as much as one out of SLO, or for more."""
    frac = demand.hours.load_frac
    if len(frac) == 1 or not found.broken_hours:
        return np.full(len(frac), bool(found.broken_hours))
    each, _ = _hours(demand, ints(np.zeros(len(frac))))
    return np.asarray(frac >= min(float(each[place]) for place in found.broken_hours))


def _one_pool(load_per_s: Floats, n_replicas: Ints) -> tuple[Floats, Ints]:
    """One of the pools that a large fleet consists of: the same load on every replica."""
    most = int(n_replicas.max(initial=0))
    if most <= POOL:
        return load_per_s, n_replicas
    n = np.where(n_replicas > 0, np.maximum(1, np.rint(n_replicas * POOL / most)), 0)
    share = n / np.maximum(1, n_replicas)
    return floats(load_per_s * share), ints(n.astype(np.int64))


def _bounded(day: Day, residence_s: float, n_whole: int) -> Day:
    """A week that would have to be cut too short gives way to its busiest day."""
    least_s = min(HOUR, N_TURNOVERS * residence_s)
    if len(day.load_per_s) == N_WEEK and _run_s(day, n_whole) < least_s:
        first = int(np.argmax(day.load_per_s)) // N_DAY * N_DAY
        day = day.day_from(first)
    return day._replace(run_s=_run_s(day, n_whole))


def _run_s(day: Day, n_whole: int) -> float:
    n = float(day.load_per_s.sum() * HOUR)
    return HOUR if n <= n_whole else HOUR * min(1.0, MOST_REQUESTS / n)


def day_stream(runs: FleetSimulator, day: Day, *, draw: int) -> Requests:
    """Fresh draws on a clock that runs by the load of each hour; bursts stay as they are."""
    edges_s = np.arange(len(day.load_per_s) + 1) * day.run_s
    counted = np.concatenate([[0.0], np.cumsum(day.load_per_s)]) * day.run_s
    assert isinstance(runs.streams, RequestStreams)
    base = runs.streams.at(1.0, max(1, int(np.ceil(counted[-1]))), draw=draw)
    inside = base.take(np.flatnonzero(base.arrive_s < counted[-1]))
    # Hours without load have no slope: an arrival never falls inside them.
    used = np.concatenate([[True], np.diff(counted) > 0])
    used[:-1] |= used[1:]
    at = np.interp(inside.arrive_s, counted[used], edges_s[used])
    return alike(inside, at)


def trace_day(
    recorded: Requests, n_replicas: int, *, peak_per_s: float, n_whole: int = WHOLE_REQUESTS
) -> Day:
    """The hours of a trace around its busiest one, a week at most, at the planned peak."""
    at, first, n_hours = _trace_clock(recorded, peak_per_s)
    counts = np.bincount(((at - first) // HOUR).astype(np.int64), minlength=n_hours)[:n_hours]
    load, n = _one_pool(floats(counts / HOUR), ints(np.full(n_hours, n_replicas)))
    return _bounded(Day(load, n, HOUR, is_part=n_replicas > POOL), 0.0, n_whole)


def _trace_clock(recorded: Requests, peak_per_s: float) -> tuple[Floats, float, int]:
    """Arrivals on a clock that brings the busiest hour to the peak; the first of the hours."""
    start, rate = peak_hour(recorded.arrive_s)
    at = recorded.arrive_s * rate / peak_per_s
    n_all = int(at[-1] // HOUR) + 1
    first = max(0, min(int(start * rate / peak_per_s // HOUR) - N_WEEK // 2, n_all - N_WEEK))
    return floats(at), first * HOUR, min(N_WEEK, n_all)


def trace_stream(recorded: Requests, day: Day, *, peak_per_s: float, seed: int) -> Requests:
    """The trace itself, of each hour as much as is run; of a larger fleet the share of a pool."""
    at, first, n_hours = _trace_clock(recorded, peak_per_s)
    since = at - first
    hour = (since // HOUR).astype(np.int64)
    rest = since - hour * HOUR
    inside = (since >= 0) & (hour < n_hours) & (rest < day.run_s)
    whole = np.bincount(hour[inside], minlength=n_hours).sum() / max(1.0, day.n_requests)
    if whole > 1.01:
        rng = np.random.default_rng(seed)
        inside &= rng.uniform(size=len(inside)) < 1.0 / whole
    rows = np.flatnonzero(inside)
    taken = recorded.take(rows)
    return alike(taken, hour[rows] * day.run_s + rest[rows])


def replay_of(
    runs: FleetSimulator, day: Day, requests: Requests, *, workload: str
) -> Replay | None:
    """SLO attainment over the day, hour by hour; None where no request came."""
    hours = [hour for run in _stretches(day) for hour in _played(runs, day, requests, run)]
    return replay_from(hours, runs, day, workload=workload) if hours else None


def loop_replay(
    runs: FleetSimulator, demand: DemandProfile, n_replicas: Ints, *, draw: int
) -> Replay | None:
    """The same of a closed loop: the users of each hour on its replicas, on fresh draws."""
    frac, n = _hours(demand, n_replicas)
    day = Day(floats(demand.peak_of(0, 0) * frac), n, HOUR)
    loads = list(zip(day.load_per_s.tolist(), n.tolist(), strict=True))
    known = {pair: _loop_hour(runs, *pair, draw=draw) for pair in set(loads) if min(pair) > 0}
    hours = [known[pair]._replace(place=hour) for hour, pair in enumerate(loads) if pair in known]
    if not hours:
        return None
    found = replay_from(hours, runs, day, workload=demand.workload)
    return replace(found, remark="each load of the day run once, as a closed loop in equilibrium")


def _loop_hour(runs: FleetSimulator, load_per_s: float, n: int, *, draw: int) -> HourResult:
    """One run of these users: in a steady loop any stretch is as good as the hour."""
    least = runs.options.n_requests
    played = runs.streams.played(runs.prepared, Load(load_per_s, draw=draw), n, n=least)
    n_met = _within(runs.limits, played.outcome)[:, played.rows].sum(axis=1)
    is_violated = _is_violated(runs, played.outcome, played.rows)
    rate = n / played.n_replicas * _rate_per_s(played.outcome.requests.arrive_s[played.rows])
    return HourResult(0, len(played.rows), ints(n_met), is_violated, rate)


def _rate_per_s(arrive_s: Floats) -> float:
    return (len(arrive_s) - 1) / max(float(arrive_s[-1] - arrive_s[0]), 1e-12)


def replay_from(
    hours: Sequence[HourResult], runs: FleetSimulator, day: Day, *, workload: str
) -> Replay:
    """The hours together; an SLO of which the day falls short is out in every hour that does."""
    n = sum(hour.n_requests for hour in hours)
    needed = np.array([QUANTILES.get(limit.statistic, 0.0) for limit in runs.limits] or [0.0])
    met = np.array([hour.n_met for hour in hours]) / np.array([[h.n_requests] for h in hours])
    whole = np.sum([hour.n_met for hour in hours], axis=0) / n
    binding = int(np.argmin(whole - needed))
    worst = int(np.argmin(met[:, binding]))
    is_short = ((met < needed) & (whole < needed)).any(axis=1)
    could = float((day.n_replicas * runs.full_per_s).sum())
    working = day.n_replicas[day.n_replicas > 0]
    return Replay(
        workload=workload,
        n_requests=n,
        n_hours=len(day.load_per_s),
        run_s=day.run_s,
        n_replicas_least=int(working.min()),
        n_replicas_most=int(working.max()),
        kept_frac=float(whole[binding]),
        worst_hour=hours[worst].place,
        worst_kept_frac=float(met[worst, binding]),
        broken_hours=tuple(
            hour.place
            for hour, short in zip(hours, is_short, strict=True)
            if hour.is_violated or short
        ),
        mean_use_frac=(sum(h.served_per_s for h in hours) or float(day.load_per_s.sum())) / could,
        remark=_remark(day),
    )


def _remark(day: Day) -> str:
    """What the replay does not cover."""
    found = ["one pool of a larger fleet, or the busiest day of its week"] if day.is_part else []
    if day.run_s < HOUR:
        found.append(
            f"{day.run_s / 60:.3g} minutes of each hour, at its own load and bursts; "
            "--replay full runs all of it"
        )
    return "; ".join(found)


def _stretches(day: Day) -> list[range]:
    """Consecutive hours with the same number of replicas, those without any left out."""
    cuts = np.flatnonzero(np.diff(day.n_replicas)) + 1
    edges = [0, *cuts.tolist(), len(day.n_replicas)]
    runs = [range(a, b) for a, b in pairwise(edges)]
    return [run for run in runs if day.n_replicas[run.start] > 0]


def _played(
    runs: FleetSimulator, day: Day, requests: Requests, stretch: range
) -> Iterator[HourResult]:
    """These hours on their replicas, after a part of the first one has filled them."""
    low, high = np.searchsorted(
        requests.arrive_s, [stretch.start * day.run_s, stretch.stop * day.run_s]
    )
    if high == low:
        return
    warm_s = min(day.run_s, WARM_TURNOVERS * runs.residence_s)
    ahead = np.searchsorted(requests.arrive_s, stretch.start * day.run_s + warm_s)
    rows = np.concatenate([np.arange(low, min(ahead, high)), np.arange(low, high)])
    at = requests.arrive_s[rows].copy()
    n_warm = int(min(ahead, high) - low)
    at[:n_warm] -= warm_s
    mine = alike(requests.take(rows), at)
    outcome = runs.outcome(mine, int(day.n_replicas[stretch.start]))
    met = _within(runs.limits, outcome)
    edges = n_warm + np.searchsorted(
        at[n_warm:], [hour * day.run_s for hour in (*stretch, stretch.stop)]
    )
    for hour, first, last in zip(stretch, edges[:-1], edges[1:], strict=True):
        if last > first:
            inside = np.arange(first, last, dtype=np.int64)
            is_violated = _is_violated(runs, outcome, inside)
            n_met = ints(met[:, inside].sum(axis=1))
            yield HourResult(day.first + hour, int(last - first), n_met, is_violated)


def _within(limits: tuple[LatencyLimit, ...], outcome: Outcome) -> NDArray[np.bool_]:
    """[SLO, request] finished within it; of inter-token gaps a request's mean one counts.

    A limit of a mean, or no limit at all, asks of a request only that it is served.
    """
    times = outcome.times
    columns = {"ttft": times.ttft_s, "tpot": times.tpot_s, "itl": times.tpot_s, "e2e": times.e2e_s}
    is_served = np.asarray(times.is_finished) > 0
    rows = [
        is_served & (columns[limit.metric] <= limit.limit_s)
        if limit.statistic in QUANTILES
        else is_served
        for limit in limits
    ]
    return np.array(rows or [is_served])


def _is_violated(runs: FleetSimulator, outcome: Outcome, rows: Ints) -> bool:
    """Whether a statistic of these requests violates its SLO beyond chance."""
    if len(rows) < LEAST_JUDGED:
        return False
    latencies = runs.latencies(outcome, rows, n_deviations=BEYOND_CHANCE * STUDENT)
    return any(_lower_s(each) > limit.limit_s for limit, each in latencies)


def _lower_s(each: LatencyStatistic) -> float:
    return each.value_s - BEYOND_CHANCE * (each.bound_s - each.value_s)
