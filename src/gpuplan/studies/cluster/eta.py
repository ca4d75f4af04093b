"""When a job that is not submitted yet would start, with a range that has proved itself.

The estimate is simulated: what runs goes on as long as jobs of its kind that had lasted as long
went on; what waits runs as long as jobs of its kind did; others come as they came before. The
range comes from the record: the same estimate is made for the jobs of the trace that started last,
each from what was known when it was submitted, and compared with when they started [Vovk2005].
Whether a job can start at once is known at its submission: jobs that could and jobs that had to
wait are records of their own.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpuplan.demand.jobs import JobGenerator, draw_jobs, fit_jobs, taken
from gpuplan.domain.cluster.answer import EtaRequest, StartEstimate
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import ANY, JobNeeds, Jobs, JobTerms, column, joined
from gpuplan.domain.cluster.outcome import ClusterOutcome
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.provenance import assume
from gpuplan.errors import InputError, one
from gpuplan.simulation.cluster.run import simulate_cluster
from gpuplan.studies.cluster.described import described
from gpuplan.studies.cluster.start_range import (
    LEAST_RECORD,
    NEVER_S,
    Record,
    calibrated,
    score,
)
from gpuplan.units import DAY, WEEK

RECORD_S = 14 * DAY  # of recent starts that the range is taken from
BEFORE_S = 1e-3
AT_ONCE_S = 1.0
AHEAD_S = 2 * DAY  # of arrivals to come: later ones find the job started, or behind them
SUBMIT_S = 1.0  # what runs starts before
LEAST_KIND = 30  # jobs of a kind that say enough about how long it lasts
SIZE_EDGES = (1, 2, 8, 64)
MOST_WORK = 20_000_000  # estimates x (jobs that wait)²: about 15 s


def eta(cluster_file: Path, jobs_file: Path, request: EtaRequest) -> StartEstimate:
    """The start of a job on the cluster as the trace leaves it."""
    return start_estimate(*described(cluster_file, jobs_file), request)


def start_estimate(cluster: Cluster, jobs: Jobs, request: EtaRequest) -> StartEstimate:
    """The same of nouns; jobs submitted after the request's time are not looked at."""
    now_s = float(jobs.arrive_s[-1]) if request.at_s is None else request.at_s
    known = jobs.arrive_s <= now_s
    past = taken(jobs, np.flatnonzero(known), jobs.arrive_s[known], jobs.week_s)
    _check(cluster, past, request)
    history = simulate_cluster(cluster, past, until_s=now_s)
    running, queued = allocated_at(past, history, now_s)
    wait_s = expected_wait(cluster, past, history, replace(request, at_s=now_s))
    n_record = record_size(request.n_record, len(queued))
    requested = replace(request, n_record=n_record)
    earlier = record(cluster, past, history, requested, waits=must_wait(wait_s))
    low, high = calibrated(wait_s, earlier, now_s)
    why = "durations and arrivals to come are drawn from the trace up to the submission"
    assumptions = [assume("what comes next", "as before", why, "--jobs")]
    if n_record < request.n_record:
        why = f"{len(queued):,} jobs wait, and every estimate looks at all of them again"
        assumptions.append(assume("recent jobs of the range", f"{n_record}", why, "--record"))
    return StartEstimate(
        request=request,
        wait_p50_s=wait_s,
        wait_low_s=low,
        wait_high_s=high,
        n_running=len(running),
        n_queued=len(queued),
        queued_accelerators=int(past.n_accelerators[queued].sum()),
        n_record=len(earlier.scores),
        assumptions=tuple(assumptions),
    )


def record_size(n_requested: int, n_queued: int) -> int:
    """Estimates that a queue leaves time for: each costs the square of the jobs that wait."""
    return max(2, min(n_requested, MOST_WORK // max(1, n_queued**2)))


def must_wait(expected_s: Floats | float) -> Any:
    """Whether an estimate says that the job does not start at once."""
    return np.asarray(expected_s) >= AT_ONCE_S


def met_queue(past: Jobs, start_s: Floats) -> Any:
    """Jobs that found others waiting at their submission, or waited themselves."""
    n_begun = np.searchsorted(np.sort(start_s), past.arrive_s)
    return (np.arange(len(past)) > n_begun) | (start_s > past.arrive_s)


def record(
    cluster: Cluster, past: Jobs, history: ClusterOutcome, request: EtaRequest, *, waits: bool
) -> Record:
    """Estimates for jobs that started last and for some that wait, with their wait so far.

    Of those that could start at once, or of those that could not; of all where none is like it.
    """
    now_s = float(past.arrive_s[-1])
    start_s = np.where(np.isnan(history.jobs.start_s), np.inf, history.jobs.start_s)
    open_ = np.flatnonzero((start_s >= now_s) & (past.arrive_s < now_s))
    chosen = np.concatenate(
        [
            _spread(_begun(past, start_s, waits=waits), request.n_record),
            _spread(open_, request.n_record // 2),
        ]
    )
    expected = np.array([estimated(cluster, past, history, int(i), request) for i in chosen])
    alike = must_wait(expected) == waits
    chosen, expected = (chosen[alike], expected[alike]) if alike.any() else (chosen, expected)
    so_far = np.minimum(start_s[chosen], now_s) - past.arrive_s[chosen]
    return Record(score(so_far, expected), past.arrive_s[chosen], start_s[chosen])


def _begun(past: Jobs, start_s: Floats, *, waits: bool) -> Ints:
    """Jobs that started lately, in that order; those that met a queue, also earlier ones if few."""
    now_s = float(past.arrive_s[-1])
    # Before a tenth of the time, hardly a job had ended.
    begun = (start_s < now_s) & (past.arrive_s >= now_s / 10)
    begun = begun & met_queue(past, start_s) if waits else begun
    order = np.argsort(start_s, kind="stable")
    order = order[begun[order]]
    n_recent = int((start_s[order] >= now_s - RECORD_S).sum())
    return ints(order[len(order) - max(n_recent, min(LEAST_RECORD, len(order))) :])


def _spread(which: Ints, n: int) -> Ints:
    """At most so many of them, evenly from first to last."""
    if len(which) <= n:
        return which
    return ints(which[np.linspace(0, len(which) - 1, n).astype(np.int64)])


def estimated(
    cluster: Cluster, past: Jobs, history: ClusterOutcome, job: int, request: EtaRequest
) -> float:
    """The wait that one job of the trace would have been told."""
    requested = replace(
        request,
        n_accelerators=int(past.n_accelerators[job]),
        duration_s=float(past.duration_s[job]),
        team=past.team_names[past.team[job]],
        accelerator=None,
        at_s=float(past.arrive_s[job]) - BEFORE_S,
    )
    return expected_wait(cluster, past, history, requested)


def _check(cluster: Cluster, past: Jobs, request: EtaRequest) -> None:
    """InputError where the team, the GPU type or the size is unknown here."""
    types, teams = cluster.accelerators, [team.name for team in cluster.teams]
    if not len(past):
        raise one(InputError, "eta", "--at-h", "no job was submitted by then", "give a later time")
    if request.team is not None and request.team not in teams:
        fix = f"use one of {', '.join(teams[:20])}"
        raise one(InputError, "eta", "--team", f"no team {request.team!r}", fix)
    if request.accelerator is not None and request.accelerator not in types:
        fix = f"use one of {', '.join(types)}"
        raise one(InputError, "eta", "--on", f"no {request.accelerator} in the cluster", fix)
    most = max(
        g.n_accelerators for g in cluster.groups if request.accelerator in (None, g.accelerator)
    )
    if request.n_accelerators > most:
        what = f"{request.n_accelerators} GPUs, and the largest group has {most}"
        raise one(InputError, "eta", "--gpus", what, f"ask for at most {most}")


def allocated_at(past: Jobs, history: ClusterOutcome, now_s: float) -> tuple[Ints, Ints]:
    """Jobs that run at an instant of the history, in order of their start, and jobs that wait."""
    start, end = history.jobs.start_s, history.jobs.end_s
    is_here = past.arrive_s <= now_s
    begun = is_here & (start <= now_s)
    running = np.flatnonzero(begun & ~(end <= now_s))
    queued = np.flatnonzero(is_here & ~begun)
    return running[np.argsort(start[running], kind="stable")], queued


def expected_wait(
    cluster: Cluster, past: Jobs, history: ClusterOutcome, request: EtaRequest
) -> float:
    """The median of the job's wait over a few futures, from the state at its submission."""
    now_s = request.at_s or 0.0
    running, queued = allocated_at(past, history, now_s)
    fitted, kinds = fit_jobs(past), Kinds(past, history, now_s)
    cluster = replace(
        cluster,
        maintenance=tuple(
            replace(window, start_s=window.start_s - now_s)
            for window in cluster.maintenance
            if window.start_s + window.duration_s > now_s
        ),
    )
    gone = now_s - history.jobs.start_s[running]
    waits = np.empty(request.n_draws)
    for k, seed in enumerate(np.random.SeedSequence([request.seed, 22]).spawn(request.n_draws)):
        rng = np.random.default_rng(seed)
        left = kinds.draw(rng, past, running, gone) - gone
        lasts = kinds.draw(rng, past, queued, np.zeros(len(queued)))
        future = _future(fitted, past, now_s, (request.seed, k))
        stream = _stream(past, (running, left), (queued, lasts), future, request)
        found = simulate_cluster(replace(cluster, seed=cluster.seed + k + 1), stream, n_bins=1)
        start = found.jobs.start_s[len(running) + len(queued)]
        waits[k] = NEVER_S if np.isnan(start) else max(0.0, start - SUBMIT_S)
    return float(np.median(waits))


def _future(fitted: JobGenerator, past: Jobs, now_s: float, seed: tuple[int, int]) -> Jobs:
    week_s = (past.week_s + now_s) % WEEK
    return draw_jobs(fitted, span_s=AHEAD_S, week_s=week_s, seed=seed[0] * 1_000_003 + seed[1])


class Kinds:
    """Durations of jobs that had ended, by team and size: how long others go on."""

    def __init__(self, past: Jobs, history: ClusterOutcome, now_s: float) -> None:
        ended = history.jobs.end_s <= now_s
        ended = ended if ended.any() else np.ones(len(past), bool)
        size = np.searchsorted(SIZE_EDGES, past.n_accelerators)
        n_sizes = len(SIZE_EDGES) + 1
        self.kind = past.team * n_sizes + size
        self.lasts: dict[int, Floats] = {}
        for kind in np.unique(self.kind):
            mine = ended & (self.kind == kind)
            if mine.sum() < LEAST_KIND:
                mine = ended & (size == kind % n_sizes)
            mine = mine if mine.sum() >= LEAST_KIND else ended
            self.lasts[int(kind)] = np.sort(past.duration_s[mine])

    def draw(self, rng: np.random.Generator, past: Jobs, which: Ints, gone: Floats) -> Floats:
        """How long each lasts in all, given that it has lasted so long already."""
        u, found = rng.random(len(which)), np.empty(len(which))
        kinds = self.kind[which]
        for kind in np.unique(kinds):
            known, mine = self.lasts[int(kind)], np.flatnonzero(kinds == kind)
            first = np.searchsorted(known, gone[mine], side="right")
            n = len(known) - first
            place = np.minimum(first + (u[mine] * n).astype(np.int64), len(known) - 1)
            # Longer than any that ended: as long again, at most.
            longer = gone[mine] * (1.0 + u[mine]) + 1.0
            found[mine] = np.where(n > 0, known[place], longer)
        return found


def _stream(
    past: Jobs,
    running: tuple[Ints, Floats],
    queued: tuple[Ints, Floats],
    future: Jobs,
    request: EtaRequest,
) -> Jobs:
    """What runs comes first and starts at once; then what waits, the job, and what is to come."""
    team = past.team_names.index(request.team) if request.team in past.team_names else 0
    which = np.concatenate([running[0], queued[0], [0]]).astype(np.int64)
    at = np.concatenate([np.zeros(len(running[0])), np.full(len(queued[0]) + 1, SUBMIT_S)])
    own = taken(past, which, at, past.week_s)
    durations = np.concatenate([running[1], queued[1], [request.duration_s]])
    gpus, teams = own.n_accelerators.copy(), own.team.copy()
    gpus[-1], teams[-1] = request.n_accelerators, team
    own = replace(
        own,
        duration_s=floats(np.maximum(durations, 1.0)),
        n_accelerators=ints(gpus),
        team=ints(teams),
        needs=_needs(own, request),
        terms=_terms(own, durations, request),
    )
    sizes = (len(own), len(future))
    return replace(
        joined(own, replace(future, arrive_s=future.arrive_s + SUBMIT_S), sizes),
        needs=joined(own.needs, future.needs, sizes),
        terms=joined(own.terms, future.terms, sizes),
        week_s=future.week_s,
    )


def _needs(own: Jobs, request: EtaRequest) -> JobNeeds:
    """The job asks for whole GPUs, of the type that it names."""
    needs, n = own.needs, len(own)
    names = needs.accelerator_names
    types = column(needs.accelerator, n, ANY).astype(np.int64)
    if request.accelerator is not None and request.accelerator not in names:
        names = (*names, request.accelerator)
    types[-1] = ANY if request.accelerator is None else names.index(request.accelerator)

    def last(values: Floats | Ints, value: float) -> Floats:
        changed = np.array(values, dtype=np.float64)
        if len(changed):
            changed[-1] = value
        return changed

    return replace(
        needs,
        accelerator=ints(types),
        accelerator_names=names,
        share_frac=floats(last(needs.share_frac, 1.0)),
        profile=ints(last(needs.profile, ANY)),
        n_cpus=floats(last(needs.n_cpus, 0.0)),
        ram_bytes=floats(last(needs.ram_bytes, 0.0)),
    )


def _terms(own: Jobs, durations: Floats, request: EtaRequest) -> JobTerms:
    terms = own.terms
    priority = column(terms.priority, len(own), 0.0)
    priority[-1] = request.priority
    limit = np.maximum(terms.limit_s, durations) if len(terms.limit_s) else terms.limit_s
    return replace(terms, priority=ints(priority), limit_s=floats(limit))
