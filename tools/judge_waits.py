"""Waits of simulated jobs beside recorded ones: virtual clusters of Helios' Earth, by the minute.

    GPUPLAN_SHARED_DATA=… python tools/judge_waits.py

The record has running and pending jobs and GPUs of each minute, no job list. Jobs are rebuilt from
it: a rise of running plus pending GPUs is a submission, a fall an end, of the oldest job of that
size; what runs more was started, the oldest first. That is right where the rebuilt mean wait is the
one that Little's law gives for the record (pending jobs times minutes over submissions): virtual
clusters where it is within a factor of two are also shown by themselves.
"""

import os
from pathlib import Path

import numpy as np
import polars as pl

from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SchedulingPolicy
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.simulation.cluster.run import simulate_cluster

TRACES = Path(os.environ["GPUPLAN_SHARED_DATA"]) / "traces"
MINUTE, LEAST_JOBS = 60.0, 50
RULES = {
    "FIFO, packed": SchedulingPolicy(blocking="strict"),
    "FIFO, scattered": SchedulingPolicy(blocking="strict", placement="scatter"),
    "EASY, packed": SchedulingPolicy(),
    "EASY, scattered": SchedulingPolicy(placement="scatter"),
}


class Rebuilt:
    """Jobs of a record: minute of submission, start and end, and GPUs."""

    def __init__(self) -> None:
        self.jobs: list[list[int]] = []
        self.waiting: list[int] = []
        self.running: list[int] = []

    def submit(self, minute: int, gpus: int, n: int) -> None:
        for i in range(n):
            size = gpus // n + (i < gpus % n)
            if size:
                self.waiting.append(len(self.jobs))
                self.jobs.append([minute, -1, -1, size])

    def end(self, minute: int, gpus: int, n: int) -> None:
        for i in range(n):
            size = gpus // n + (i < gpus % n)
            able = self.running or self.waiting
            if able:
                job = min(able, key=lambda j: (abs(self.jobs[j][3] - size), j))
                able.remove(job)
                self.jobs[job][2] = minute

    def start(self, minute: int, gpus: int) -> None:
        room = gpus - sum(self.jobs[j][3] for j in self.running)
        for job in [*reversed(self.running)]:  # an end and a submission of one minute
            if room < 0 and self.jobs[job][3] <= -room:
                room += self.jobs[job][3]
                self.running.remove(job)
                self.jobs[job][2] = minute
        for job in [*self.waiting]:
            if self.jobs[job][3] <= room:
                room -= self.jobs[job][3]
                self.waiting.remove(job)
                self.running.append(job)
                self.jobs[job][1] = minute


def rebuilt(path: Path) -> tuple[int, np.ndarray, float]:
    """GPUs of the virtual cluster, jobs that started and ended, the wait by Little's law."""
    record = pl.read_csv(path)
    names = ("running_gpu_num", "pending_gpu_num", "total_gpujob_num")
    running, pending, n_jobs = (record[name].to_numpy() for name in names)
    found, before, n_before = Rebuilt(), 0, 0
    for minute in range(len(running)):
        now, n = int(running[minute] + pending[minute]), int(n_jobs[minute])
        if now > before:
            found.submit(minute, now - before, max(1, n - n_before))
        elif now < before:
            found.end(minute, before - now, max(1, n_before - n))
        found.start(minute, int(running[minute]))
        before, n_before = now, n
    jobs = np.array([j for j in found.jobs if j[1] >= 0 and j[2] > j[1]])
    waited = float(record["pending_gpujob_num"].sum()) / len(found.jobs)
    return int(record["total_gpu_num"].max()), jobs, waited


def simulated_min(capacity: int, jobs: np.ndarray, policy: SchedulingPolicy) -> np.ndarray:
    """Waits of the same jobs under these rules."""
    stream = Jobs(
        arrive_s=jobs[:, 0] * MINUTE,
        duration_s=(jobs[:, 2] - jobs[:, 1]) * MINUTE,
        n_accelerators=jobs[:, 3],
        team=np.zeros(len(jobs), np.int64),
        team_names=("all",),
    )
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


def main() -> None:
    parts: dict[str, list[np.ndarray]] = {"recorded": [], **{name: [] for name in RULES}}
    is_alike: list[bool] = []
    for path in sorted((TRACES / "helios").glob("Earth_vc*.csv.gz")):
        capacity, jobs, waited = rebuilt(path)
        if len(jobs) < LEAST_JOBS:
            continue
        recorded = (jobs[:, 1] - jobs[:, 0]).astype(float)
        print(f"{path.name[6:11]}: rebuilt wait {recorded.mean():.1f} min, by Little {waited:.1f}")
        is_alike.append(waited / 2 <= recorded.mean() <= 2 * waited)
        parts["recorded"].append(recorded)
        for name, policy in RULES.items():
            parts[name].append(simulated_min(capacity, jobs, policy))
        means = ", ".join(f"{name} {np.nanmean(found[-1]):.1f}" for name, found in parts.items())
        print(
            f"{path.name[6:11]}: {capacity} GPUs, {len(jobs)} jobs; mean wait in minutes: {means}"
        )
    for title, chosen in (("all", [True] * len(is_alike)), ("rebuilt as Little's law", is_alike)):
        print(f"{title}: {sum(chosen)} virtual clusters")
        for name, found in parts.items():
            kept = [wait for wait, is_in in zip(found, chosen, strict=True) if is_in]
            print(row(name, np.concatenate(kept)))


if __name__ == "__main__":
    main()
