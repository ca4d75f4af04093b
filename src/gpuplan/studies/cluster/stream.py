"""A cluster file and a job trace in, the answers out; traces larger than memory part by part.

Of a stream every start is that of a whole replay; percentiles are those of
bins 1 % wide (waits under a second are one bin), means and sums are exact.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.cluster.answer import ClusterAdvice, ClusterRequest, ClusterSimulation, WaitRow
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.cluster.outcome import ClusterOutcome, JobOutcomes, JobRuns
from gpuplan.domain.columns import Floats
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, one
from gpuplan.inputs.cluster import read_cluster
from gpuplan.inputs.jobs.read import job_parts, read_jobs
from gpuplan.simulation.cluster.run import with_all_teams
from gpuplan.simulation.cluster.stream import ClusterStream, EndedJobs
from gpuplan.studies.cluster.bills import bills_of, team_sums
from gpuplan.studies.cluster.simulate import answers, assumptions, with_slice_shares, with_slices
from gpuplan.studies.cluster.waits import SIZE_NAMES, WorkSums, by_size, use_of, waits_of, work_sums

N_ROWS = 50_000  # of the trace at a time
WIDTH = np.log(1.01)
N_STEPS = 3000  # 1.01^3000 s is past any wait


class Sketch:
    """Counts by the logarithm of a value; values below one are one bin."""

    def __init__(self, least: float) -> None:
        self.least, self.counts = least, np.zeros(N_STEPS + 1, np.int64)

    def add(self, values: Floats) -> None:
        """Count finite values."""
        step = np.ceil(np.log(np.maximum(values[np.isfinite(values)], 1.0)) / WIDTH)
        self.counts += np.bincount(
            np.minimum(step, N_STEPS).astype(np.int64), minlength=N_STEPS + 1
        )

    def quantile(self, share: float) -> float:
        """The middle of the bin that holds it."""
        total = self.counts.sum()
        step = int(np.searchsorted(np.cumsum(self.counts), share * total))
        return self.least if total == 0 or step == 0 else float(np.exp((step - 0.5) * WIDTH))


class WaitSketch:
    """Waits and slowdowns of one kind of jobs."""

    def __init__(self) -> None:
        self.wait, self.slow = Sketch(0.0), Sketch(1.0)
        self.n_jobs = self.n_never = 0
        self.sum_s = self.held_s = 0.0

    def add(self, wait: Floats, slow: Floats, held: Floats) -> None:
        """Count jobs that ended."""
        is_in = np.isfinite(wait)
        self.wait.add(wait)
        self.slow.add(slow)
        self.n_jobs, self.n_never = self.n_jobs + len(wait), self.n_never + int((~is_in).sum())
        self.sum_s, self.held_s = self.sum_s + float(wait[is_in].sum()), self.held_s + held.sum()

    def row(self, name: str, target_s: float | None = None) -> WaitRow:
        """What was counted."""
        return WaitRow(
            name=name,
            n_jobs=self.n_jobs,
            n_never=self.n_never,
            wait_mean_s=self.sum_s / max(1, self.n_jobs - self.n_never),
            wait_p50_s=self.wait.quantile(0.5),
            wait_p90_s=self.wait.quantile(0.9),
            wait_p99_s=self.wait.quantile(0.99),
            slowdown_p50_ratio=self.slow.quantile(0.5),
            slowdown_p90_ratio=self.slow.quantile(0.9),
            held_accelerator_s=float(self.held_s),
            target_p90_s=target_s,
        )


def simulate_jobs(
    cluster_file: Path, jobs_file: Path, request: ClusterRequest | None = None
) -> ClusterSimulation:
    """Replay a trace on a described cluster; raises InputError where either cannot be read."""
    request = request or ClusterRequest()
    cluster = with_slices(read_cluster(cluster_file), read_catalog())
    if not request.is_streamed:
        return answers(cluster, read_jobs(jobs_file), request)
    if request.is_more_than_a_replay:
        fix = "leave out comparisons and advice, or --stream"
        raise one(InputError, "simulate", "--stream", "replays a trace once", fix)
    return _streamed(replace(cluster, seed=request.seed), jobs_file)


def _streamed(cluster: Cluster, jobs_file: Path) -> ClusterSimulation:
    """The answers of a trace in order of submission; jobs are not kept one by one."""
    head, parts = job_parts(jobs_file, N_ROWS)
    none = _no_jobs(head.team_names)
    cluster = with_all_teams(cluster, none)
    stream = ClusterStream(cluster, head.team_names, head.span_s)
    rows: dict[str, WaitSketch] = {"all": WaitSketch()}
    teams = [WaitSketch() for _ in head.team_names]
    work, sums = np.zeros(len(WorkSums._fields)), np.zeros((4, len(cluster.teams)))
    said: dict[str, None] = {}
    assumed: dict[str, Assumption] = {}
    for jobs, before_s in _ahead(with_slice_shares(cluster, part) for part in parts):
        said |= dict.fromkeys(jobs.remarks)
        assumed |= {each.what: each for each in assumptions(cluster, jobs)}
        for ended in stream.feed(jobs, before_s):
            work += np.array(work_sums(cluster, ended.jobs, ended.outcomes))
            sums += team_sums(cluster, ended.jobs, ended.outcomes)
            _count(ended, rows, teams)
    targets = {team.name: team.wait_p90_s for team in cluster.teams}
    named = zip(head.team_names, teams, strict=True)
    return ClusterSimulation(
        cluster=cluster,
        jobs=replace(none, remarks=tuple(said)),
        found=_outcome(stream),
        by_team=tuple(one.row(n, targets.get(n)) for n, one in named if one.n_jobs),
        by_size=tuple(rows[name].row(name) for name in SIZE_NAMES if name in rows),
        all_jobs=rows["all"].row("all"),
        use=use_of(cluster, stream.timeline, WorkSums(*work)),
        bills=bills_of(cluster, sums, np.zeros(len(cluster.teams)), stream.end_s),
        shares=(),
        advice=ClusterAdvice(),
        assumptions=tuple(assumed.values()),
    )


def _ahead(parts: Iterator[Jobs]) -> Iterator[tuple[Jobs, float | None]]:
    """Every part with the first submission of the next."""
    before = None
    for part in parts:
        if before is not None and len(part):
            yield before, float(part.arrive_s[0])
        before = part if len(part) or before is None else before
    if before is not None:
        yield before, None


def _count(ended: EndedJobs, rows: dict[str, WaitSketch], teams: list[WaitSketch]) -> None:
    jobs, found = ended
    chosen = [(rows["all"], np.ones(len(jobs), bool))]
    chosen += [(rows.setdefault(name, WaitSketch()), mine) for name, mine in by_size(jobs)]
    chosen += [(each, jobs.team == t) for t, each in enumerate(teams)]
    for sketch, mine in chosen:
        sketch.add(*waits_of(jobs, found, mine), found.held_accelerator_s[mine])


def _no_jobs(team_names: tuple[str, ...]) -> Jobs:
    none = np.empty(0, np.int64)
    return Jobs(
        arrive_s=np.empty(0),
        duration_s=np.empty(0),
        n_accelerators=none,
        team=none,
        team_names=team_names,
    )


def _outcome(stream: ClusterStream) -> ClusterOutcome:
    real, whole = np.empty(0), np.empty(0, np.int64)
    return ClusterOutcome(
        jobs=JobOutcomes(
            start_s=real,
            end_s=real,
            n_preempted=whole,
            n_failed=whole,
            held_accelerator_s=real,
            lost_accelerator_s=real,
            group=whole,
            node=whole,
        ),
        timeline=stream.timeline,
        runs=JobRuns(
            start_s=real,
            end_s=real,
            job=whole,
            node=whole,
            n_accelerators=real,
            ending=whole,
            n_total=0,
        ),
        service_short_accelerator_s=0.0,
        service_accelerator_s=0.0,
        end_s=stream.end_s,
        n_unfit=stream.n_unfit,
        wall_s=stream.wall_s,
    )
