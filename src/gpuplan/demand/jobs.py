"""A stream of jobs fitted to a trace: arrivals by hour and team, sizes, durations, failures.

Arrivals of a team in an hour of the week are Poisson around the trace's own mean, times a factor
that the whole day shares (gamma, its spread fitted to the days): busy days are busy throughout.
Size, duration and needs are drawn together from the team's own jobs: what belongs together stays.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from gpuplan.domain.cluster.jobs import Jobs, at_places
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.noun import dataclass
from gpuplan.units import DAY, HOUR, WEEK

N_HOURS = 168
EDGE_FRAC = 0.005  # of the submissions at either end of a trace
LEAST_DAYS = 3  # fewer say nothing about how days differ


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGenerator:
    """What a trace says about jobs to come."""

    trace: Jobs
    jobs_per_s: Floats  # (teams, hours of the week)
    day_cv_ratio: Floats  # by team: spread of a day around its mean, beyond Poisson's


def fit_jobs(trace: Jobs) -> JobGenerator:
    """The generator of a trace; hours that the trace never saw have the team's mean.

    Traces begin and end raggedly: long jobs of the weeks before, and none of the others. Rates and
    jobs are those between the first and the last half percent of the submissions.
    """
    inside = _dense(trace)
    hour = ((trace.arrive_s[inside] + trace.week_s) // HOUR).astype(np.int64)
    team = trace.team[inside]
    observed = np.arange(hour.min(), hour.max() + 1) % N_HOURS
    n_seen = np.bincount(observed, minlength=N_HOURS)
    n_teams = len(trace.team_names)
    rates = np.zeros((n_teams, N_HOURS))
    for t in range(n_teams):
        counts = np.bincount(hour[team == t] % N_HOURS, minlength=N_HOURS)
        mean = counts.sum() / max(1, n_seen.sum())
        rates[t] = np.where(n_seen > 0, counts / np.maximum(n_seen, 1), mean) / HOUR
    spread = np.array([_spread(trace.arrive_s[inside], team == t) for t in range(n_teams)])
    return JobGenerator(trace=trace, jobs_per_s=rates, day_cv_ratio=spread)


def _dense(trace: Jobs) -> slice:
    """Where the trace is dense: without the first and the last half percent of its jobs."""
    n_edge = int(EDGE_FRAC * len(trace))
    return slice(n_edge, len(trace) - n_edge)


def _spread(arrive_s: Floats, is_mine: Any) -> float:
    """Squared spread of days beyond Poisson's gives the factor's, by moments."""
    day = ((arrive_s[is_mine] - arrive_s[0]) // DAY).astype(np.int64)
    n_days = int((arrive_s[-1] - arrive_s[0]) // DAY)
    if n_days < LEAST_DAYS or not len(day):
        return 0.0
    counts = np.bincount(day, minlength=n_days)[:n_days]
    mean = float(counts.mean())
    excess = (float(counts.var(ddof=1)) - mean) / mean**2 if mean > 0 else 0.0
    return float(np.sqrt(max(0.0, excess)))


def draw_jobs(fitted: JobGenerator, *, span_s: float, week_s: float, seed: int = 0) -> Jobs:
    """A stream that could have been the trace's next; same seed, same bytes."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 21]))
    n_hours = int(np.ceil(span_s / HOUR))
    first = int(week_s // HOUR)
    hours = (first + np.arange(n_hours)) % N_HOURS
    days = np.arange(n_hours) // 24
    arrive, source = [], []
    for team in range(len(fitted.trace.team_names)):
        pool = _pool(fitted.trace, team)
        if not len(pool):
            continue
        factor = _day_factors(rng, int(days[-1]) + 1, float(fitted.day_cv_ratio[team]))
        n = rng.poisson(fitted.jobs_per_s[team][hours] * HOUR * factor[days])
        at = np.repeat(np.arange(n_hours) * HOUR, n) + rng.uniform(0, HOUR, int(n.sum()))
        arrive.append(at)
        source.append(rng.choice(pool, len(at)))
    when = np.concatenate(arrive) if arrive else np.empty(0)
    which = np.concatenate(source) if source else np.empty(0, np.int64)
    inside = when < span_s
    order = np.argsort(when[inside], kind="stable")
    return taken(fitted.trace, which[inside][order], when[inside][order], week_s % WEEK)


def _pool(trace: Jobs, team: int) -> Ints:
    """The team's jobs that others are drawn from: of the dense part, where it has any there."""
    every, inside = np.flatnonzero(trace.team == team), _dense(trace)
    dense = every[(every >= inside.start) & (every < inside.stop)]
    return ints(dense if len(dense) else every)


def _day_factors(rng: np.random.Generator, n: int, cv: float) -> Floats:
    if cv == 0.0:
        return np.ones(n)
    shape = 1.0 / cv**2
    factors: Floats = rng.gamma(shape, 1.0 / shape, n)
    return factors


def taken(trace: Jobs, which: Ints, arrive_s: Floats, week_s: float) -> Jobs:
    """Jobs of the trace, by place, with other times of submission; deadlines move with them."""
    terms = at_places(trace.terms, which)
    if len(terms.deadline_s):
        moved = terms.deadline_s + (arrive_s - trace.arrive_s[which])
        terms = replace(terms, deadline_s=floats(moved))
    return replace(
        at_places(trace, which),
        arrive_s=floats(arrive_s),
        needs=at_places(trace.needs, which),
        terms=terms,
        week_s=week_s,
        remarks=(),
    )
