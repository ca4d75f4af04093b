"""A cluster file and a job trace in, the answers out; traces larger than memory part by part.

Of a stream every start is that of a whole replay; percentiles are those of
bins 1 % wide (waits under a second are one bin), means and sums are exact.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.domain.cluster.answer import ClusterAdvice, ClusterRequest, ClusterSimulation, WaitRow
from gpuplan.domain.cluster.cluster import Cluster
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.domain.columns import Floats
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, one
from gpuplan.inputs.cluster import read_cluster
from gpuplan.inputs.jobs.read import job_parts
from gpuplan.simulation.cluster.run import with_all_teams
from gpuplan.simulation.cluster.stream import ClusterStream, EndedJobs
from gpuplan.studies.cluster.bills import bills_of, team_sums
from gpuplan.studies.cluster.described import as_named, described, with_slices
from gpuplan.studies.cluster.simulate import answers, assumptions
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

    def add(self, wait: Floats, slow: Floats, allocated: Floats) -> None:
        """Count jobs that ended."""
        is_in = np.isfinite(wait)
        self.wait.add(wait)
        self.slow.add(slow)
        self.n_jobs, self.n_never = self.n_jobs + len(wait), self.n_never + int((~is_in).sum())
        self.sum_s += float(wait[is_in].sum())
        self.held_s += float(allocated.sum())

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
    if not request.is_streamed:
        return answers(*described(cluster_file, jobs_file), request)
    if request.is_more_than_a_replay:
        fix = "leave out comparisons and advice, or --stream"
        raise one(InputError, "simulate", "--stream", "replays a trace once", fix)
    cluster = with_slices(read_cluster(cluster_file))
    return _streamed(replace(cluster, seed=request.seed), jobs_file)


class StreamSums:
    """What is kept of a stream: sketches by team and size, sums of work and money."""

    def __init__(self, cluster: Cluster, team_names: tuple[str, ...]) -> None:
        self.cluster, self.every = cluster, WaitSketch()
        self.teams = {name: WaitSketch() for name in team_names}
        self.sizes: dict[str, WaitSketch] = {}
        self.work, self.money = np.zeros(len(WorkSums._fields)), np.zeros((4, len(cluster.teams)))
        self.remarks: dict[str, None] = {}
        self.assumed: dict[str, Assumption] = {}

    def read(self, jobs: Jobs) -> None:
        """Note what the part does not say."""
        self.remarks |= dict.fromkeys(jobs.remarks)
        self.assumed |= {each.what: each for each in assumptions(self.cluster, jobs)}

    def add(self, ended: EndedJobs) -> None:
        """Count jobs that ended."""
        jobs, found = ended
        self.work += np.array(work_sums(self.cluster, jobs, found))
        self.money += team_sums(self.cluster, jobs, found)
        chosen = [(self.every, np.ones(len(jobs), bool))]
        chosen += [(self.sizes.setdefault(n, WaitSketch()), mine) for n, mine in by_size(jobs)]
        chosen += [(each, jobs.team == t) for t, each in enumerate(self.teams.values())]
        for sketch, mine in chosen:
            sketch.add(*waits_of(jobs, found, mine), found.held_accelerator_s[mine])


def _streamed(cluster: Cluster, jobs_file: Path) -> ClusterSimulation:
    """The answers of a trace in order of submission; jobs are not kept one by one."""
    head, parts = job_parts(jobs_file, N_ROWS)
    none = _no_jobs(head.team_names)
    cluster = with_all_teams(cluster, none)
    stream = ClusterStream(cluster, head.team_names, head.span_s)
    sums = StreamSums(cluster, head.team_names)
    for jobs, before_s in _ahead(as_named(cluster, part) for part in parts):
        sums.read(jobs)
        for ended in stream.feed(jobs, before_s):
            sums.add(ended)
    return _answers(sums, stream, none)


def _answers(sums: StreamSums, stream: ClusterStream, none: Jobs) -> ClusterSimulation:
    cluster, found = sums.cluster, stream.outcome(none)
    targets = {team.name: team.wait_p90_s for team in cluster.teams}
    sizes = [name for name in SIZE_NAMES if name in sums.sizes]
    return ClusterSimulation(
        cluster=cluster,
        jobs=replace(none, remarks=tuple(sums.remarks)),
        found=found,
        by_team=tuple(s.row(n, targets.get(n)) for n, s in sums.teams.items() if s.n_jobs),
        by_size=tuple(sums.sizes[name].row(name) for name in sizes),
        all_jobs=sums.every.row("all"),
        use=use_of(cluster, found.timeline, WorkSums(*sums.work)),
        bills=bills_of(cluster, sums.money, np.zeros(len(cluster.teams)), found.end_s),
        shares=(),
        advice=ClusterAdvice(),
        assumptions=tuple(sums.assumed.values()),
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


def _no_jobs(team_names: tuple[str, ...]) -> Jobs:
    none = np.empty(0, np.int64)
    return Jobs(
        arrive_s=np.empty(0),
        duration_s=np.empty(0),
        n_accelerators=none,
        team=none,
        team_names=team_names,
    )
