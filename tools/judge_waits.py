"""Waits of simulated jobs beside recorded ones: Helios' Earth by the minute, and Philly.

    GPUPLAN_SHARED_DATA=… python tools/judge_waits.py

Philly: `tools/philly_waits.csv` is read off the pictures of the trace's own notebook (CDFs of the
queueing delay by virtual cluster and number of GPUs, msr-fiddle/philly-traces, CC-BY-4.0), to one
or two points; the job list has no start times. Each job of the list is drawn against the curve of
its virtual cluster and size.

Earth: the record has running and pending jobs and GPUs of each minute, of eight GPUs or more and
of fewer, and no job list. Jobs are rebuilt from it: the fewest submissions, starts and ends of a
minute that explain both counts, with the sizes that bring the GPUs back to the recorded ones.
Their mean wait is the one of Little's law.
"""

import os
from pathlib import Path

import numpy as np
import polars as pl

from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SchedulingPolicy
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams

TRACES = Path(os.environ["GPUPLAN_SHARED_DATA"]) / "traces"
MINUTE, LEAST_JOBS = 60.0, 50
RULES = {
    "FIFO, packed": SchedulingPolicy(blocking="strict"),
    "FIFO, scattered": SchedulingPolicy(blocking="strict", placement="scatter"),
    "EASY, packed": SchedulingPolicy(),
    "EASY, scattered": SchedulingPolicy(placement="scatter"),
}
LIMITS_MIN = (1, 3.5, 10, 30, 60, 180, 600, 1440)
SIZES = ("1", "2-4", "5-8", ">8")  # GPUs, as in the notebook
PHILLY = ((231, 8), (321, 2))  # nodes and their GPUs, 2,490 in all [Jeon2019]


class Rebuilt:
    """Jobs of one class of sizes: minute of submission, start and end, and GPUs."""

    def __init__(self, least: int) -> None:
        self.least = least  # GPUs of a job of this class
        self.jobs: list[list[int]] = []
        self.waiting: list[int] = []
        self.running: list[int] = []

    def _fitting(self, able: list[int], gpus: int, n: int) -> list[int]:
        """So many of the oldest jobs, those first whose sizes are the mean that is asked for."""
        size = gpus / max(1, n)
        return sorted(sorted(able, key=lambda j: (abs(self.jobs[j][3] - size), j))[:n])

    def _sum(self, which: list[int]) -> int:
        return sum(self.jobs[j][3] for j in which)

    def minute(self, at: int, n: tuple[int, int, int], began: int, gpus: tuple[int, int]) -> None:
        """Submissions, starts and ends (n) and GPUs that run and wait at the end of a minute.

        Sizes are those that bring the GPUs of the rebuilt jobs back to the recorded ones.
        """
        came, begun, ended = n
        over = self._sum(self.running) - (gpus[0] - began)
        for job in self._fitting(self.running, over, ended):
            self.running.remove(job)
            self.jobs[job][2] = at
        more = max(came, sum(gpus) - self._sum(self.running) - self._sum(self.waiting))
        for i in range(came):
            self.waiting.append(len(self.jobs))
            self.jobs.append([at, -1, -1, more // came + (i < more % came)])
        room = gpus[0] - self._sum(self.running)
        starting = self._fitting(self.waiting, room, begun)
        for job in starting:
            self.waiting.remove(job)
            self.jobs[job][1] = at
            # What runs is recorded: a job that starts has the GPUs that are counted with it.
            self.jobs[job][3] = max(self.least, round(room / len(starting)))
        self.running += starting


def changes(running: np.ndarray, pending: np.ndarray) -> tuple[np.ndarray, ...]:
    """Fewest submissions, starts and ends by minute that explain both counts."""
    more = np.diff(running, prepend=0)
    queued = np.diff(pending, prepend=0)
    began = np.maximum(np.maximum(more, -queued), 0)
    return queued + began, began, began - more


def rebuilt(path: Path) -> tuple[int, np.ndarray, float]:
    """GPUs of the virtual cluster, jobs, the wait by Little's law.

    Jobs of eight GPUs or more and smaller ones are counted apart in the record. What runs at the
    end of the month runs on; it ends with the record here.
    """
    record, jobs = pl.read_csv(path), []
    for kind in ("less_8", "noless_8"):
        names = [
            f"{s}_{what}_num_{kind}" for what in ("job", "gpu") for s in ("running", "pending")
        ]
        counts = [record[name].to_numpy() for name in names]
        of_jobs, (_, began, _) = changes(*counts[:2]), changes(*counts[2:])
        found = Rebuilt(8 if kind == "noless_8" else 1)
        for minute in range(record.height):
            n = tuple(int(one[minute]) for one in of_jobs)
            gpus = int(counts[2][minute]), int(counts[3][minute])
            found.minute(minute, n, int(began[minute]), gpus)
        for job in found.running:
            found.jobs[job][2] = record.height
        jobs += [j for j in found.jobs if j[2] > j[1] >= 0]
    waited = float(record["pending_gpujob_num"].sum()) / max(1, len(jobs))
    return int(record["total_gpu_num"].max()), np.array(sorted(jobs)), waited


def stream_of(jobs: np.ndarray) -> Jobs:
    """Rebuilt jobs as any trace has them."""
    return Jobs(
        arrive_s=jobs[:, 0] * MINUTE,
        duration_s=(jobs[:, 2] - jobs[:, 1]) * MINUTE,
        n_accelerators=jobs[:, 3],
        team=np.zeros(len(jobs), np.int64),
        team_names=("all",),
    )


def simulated_min(capacity: int, jobs: np.ndarray, policy: SchedulingPolicy) -> np.ndarray:
    """Waits of the same jobs under these rules."""
    stream = stream_of(jobs)
    group = NodeGroup(accelerator="V100", n_nodes=capacity // 8, n_accelerators_per_node=8)
    found = simulate_cluster(Cluster(name="vc", groups=(group,), policy=policy), stream)
    return (found.jobs.start_s - stream.arrive_s) / MINUTE


def row(name: str, wait_min: np.ndarray) -> str:
    """A line of the page: mean, share that waits, percentiles."""
    p90, p95, p99 = np.nanpercentile(wait_min, [90, 95, 99])
    waits = np.mean(wait_min >= 1)
    return (
        f"| {name} | {np.nanmean(wait_min):.1f} | {waits:.1%} | {p90:.0f} | {p95:.0f} | {p99:.0f} |"
    )


def recorded_within(jobs: Jobs) -> dict[str, np.ndarray]:
    """Share of the listed jobs of each virtual cluster that waited no longer than each limit."""
    table = pl.read_csv(Path(__file__).parent / "philly_waits.csv")
    names = [f"within_{limit:g}_min_pct" for limit in LIMITS_MIN]
    curves = {(row["virtual_cluster"], row["gpus"]): row for row in table.iter_rows(named=True)}
    sizes = np.digitize(jobs.n_accelerators, [2, 5, 9])
    found = {}
    for team, name in enumerate(jobs.team_names):
        counts = np.bincount(sizes[jobs.team == team], minlength=4)
        able = [k for k in range(4) if counts[k] and (name, SIZES[k]) in curves]
        of = [[curves[name, SIZES[k]][column] / 100 for column in names] for k in able]
        found[name] = np.average(of, axis=0, weights=counts[able])
    return found


def philly_cluster(jobs: Jobs, scale: float, policy: SchedulingPolicy) -> Cluster:
    """The paper's nodes, or that share of them."""
    groups = tuple(
        NodeGroup(accelerator="GPU", n_nodes=round(n * scale), n_accelerators_per_node=size)
        for n, size in PHILLY
    )
    return with_all_teams(Cluster(name="Philly", groups=groups, policy=policy), jobs)


def within(wait_s: np.ndarray) -> np.ndarray:
    return np.array([np.mean(wait_s <= limit * MINUTE) for limit in LIMITS_MIN])


def line(name: str, shares: np.ndarray) -> str:
    return f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


def philly() -> None:
    """Philly's list on its own cluster, and on the capacity that leaves the recorded hour's tail.

    The list is a part of what ran there, so the capacity that was left to it is not recorded: it
    is the one free number, chosen by the share of waits above an hour. All else is not fitted.
    """
    jobs = read_jobs(TRACES / "philly/philly.csv")
    counts = np.bincount(jobs.team)
    recorded = recorded_within(jobs)
    rows = {"recorded": np.average(list(recorded.values()), axis=0, weights=counts)}
    waits, hour = {}, LIMITS_MIN.index(60)
    for scale in (1.0, *np.arange(0.28, 0.34, 0.005)):
        described = philly_cluster(jobs, float(scale), SchedulingPolicy())
        name = f"EASY, {described.n_accelerators:,} GPUs"
        waits[name] = simulate_cluster(described, jobs).jobs.start_s - jobs.arrive_s
        rows[name] = within(waits[name])
    best = min(waits, key=lambda name: abs(rows[name][hour] - rows["recorded"][hour]))
    for name, shares in rows.items():
        print(line(name, shares))
    print(f"chosen: {best}, mean wait {waits[best].mean() / MINUTE:.1f} min")
    for team, name in enumerate(jobs.team_names):
        of = np.flatnonzero(jobs.team == team)
        held = float((jobs.duration_s * jobs.n_accelerators)[of].sum()) / jobs.span_s
        print(f"{name}: {len(of):,} jobs, {held:.0f} GPUs held")
        print(line("recorded", recorded[name]))
        print(line("simulated", within(waits[best][of])))


def main() -> None:
    parts: dict[str, list[np.ndarray]] = {"recorded": [], **{name: [] for name in RULES}}
    for path in sorted((TRACES / "helios").glob("Earth_vc*.csv.gz")):
        capacity, jobs, waited = rebuilt(path)
        if len(jobs) < LEAST_JOBS:
            continue
        recorded = (jobs[:, 1] - jobs[:, 0]).astype(float)
        print(f"{path.name[6:11]}: rebuilt wait {recorded.mean():.1f} min, by Little {waited:.1f}")
        parts["recorded"].append(recorded)
        for name, policy in RULES.items():
            parts[name].append(simulated_min(capacity, jobs, policy))
        means = ", ".join(f"{name} {np.nanmean(found[-1]):.1f}" for name, found in parts.items())
        print(
            f"{path.name[6:11]}: {capacity} GPUs, {len(jobs)} jobs; mean wait in minutes: {means}"
        )
    print(f"{len(parts['recorded'])} virtual clusters")
    for name, found in parts.items():
        print(row(name, np.concatenate(found)))
    philly()


if __name__ == "__main__":
    main()
