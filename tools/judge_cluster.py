"""Figures of docs/validation-cluster.md: start-time ranges and generated weeks.

    GPUPLAN_SHARED_DATA=… python tools/judge_cluster.py [jobs per trace]

Start times: estimates for jobs of the last three quarters of a trace, each from what was known at
its submission; ranges from the hundred of them that started last before it, and from those that
waited, as far as their wait was known.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from gpuplan.demand.jobs import draw_jobs, fit_jobs, taken
from gpuplan.domain.cluster.answer import EtaRequest
from gpuplan.domain.cluster.cluster import Cluster, NodeGroup
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.studies.cluster.eta import Record, calibrated, judged

TRACES = Path(os.environ["GPUPLAN_SHARED_DATA"]) / "traces"
CASES = {  # nodes of eight GPUs
    "philly/philly.csv": (65, 72, 80, 90, 100),
    "alibaba_gpu_2023/openb_pod_list_default.csv": (4, 5, 6, 7),
}
RECORD, WEEK = 100, 604_800.0


def coverage(jobs: Jobs, n_nodes: int, n_tried: int) -> tuple[float, float]:
    """Share of starts within their range, and share of jobs that wait more than a minute."""
    group = NodeGroup(accelerator="GPU", n_nodes=n_nodes, n_accelerators_per_node=8)
    cluster = with_all_teams(Cluster(name="judged", groups=(group,)), jobs)
    full = simulate_cluster(cluster, jobs)
    start, wait = full.jobs.start_s, full.jobs.start_s - jobs.arrive_s
    able = np.flatnonzero((jobs.arrive_s > 0.25 * jobs.span_s) & np.isfinite(wait))
    tried = able[np.linspace(0, len(able) - 1, n_tried).astype(int)]
    request = EtaRequest(n_accelerators=1, duration_s=1.0)
    scores = np.array(
        [judged(cluster, jobs, full, int(i), float(start[i]), request) for i in tried]
    )
    held = []
    for k in range(RECORD, n_tried):
        now_s, order = float(jobs.arrive_s[tried[k]]), np.argsort(start[tried[:k]], kind="stable")
        begun = order[start[tried[order]] < now_s][-RECORD:]
        waits = np.flatnonzero(start[tried[:k]] >= now_s)[-RECORD:]
        # Of a job that still waits, its wait so far is known.
        so_far = np.log((now_s - jobs.arrive_s[tried[waits]] + 60) / (wait[tried[waits]] + 60))
        earlier = Record(
            np.concatenate([scores[begun], scores[waits] + so_far]),
            jobs.arrive_s[tried[np.concatenate([begun, waits])]],
            np.concatenate([start[tried[begun]], np.full(len(waits), np.inf)]),
        )
        # The range scales with the estimate: a score within it is a start within it.
        low, high = np.log((np.array(calibrated(1e9, earlier, now_s)) + 60) / (1e9 + 60))
        held.append(low - 1e-9 <= scores[k] <= high + 1e-9)
    return float(np.mean(held)), float((wait > 60).mean())


def weeks(jobs: Jobs, first: int) -> None:
    """Each week beside twenty draws of a generator that was fitted to all weeks before it."""
    for week in range(first, int(jobs.span_s // WEEK)):
        seen = np.flatnonzero(jobs.arrive_s < week * WEEK)
        fitted = fit_jobs(taken(jobs, seen, jobs.arrive_s[seen], jobs.week_s))
        inside = (jobs.arrive_s >= week * WEEK) & (jobs.arrive_s < (week + 1) * WEEK)
        work = float((jobs.duration_s * jobs.n_accelerators)[inside].sum()) / 3600
        draws = [draw_jobs(fitted, span_s=WEEK, week_s=jobs.week_s, seed=s) for s in range(20)]
        n = [len(d) for d in draws]
        hours = [float((d.duration_s * d.n_accelerators).sum()) / 3600 for d in draws]
        print(
            f"week {week + 1}: {inside.sum():,} jobs (drawn {np.mean(n):,.0f}), "
            f"{work:,.0f} GPU-h (drawn {np.mean(hours):,.0f})"
        )


def main() -> None:
    n_tried = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for name, sizes in CASES.items():
        jobs = replace(read_jobs(TRACES / name), needs=JobNeeds())  # each on whole GPUs of any type
        for n_nodes in sizes:
            held, waiting = coverage(jobs, n_nodes, n_tried)
            print(f"{name}, {n_nodes} nodes: {held:.1%} of starts held, {waiting:.0%} of jobs wait")
    weeks(read_jobs(TRACES / "philly/philly.csv"), 4)


if __name__ == "__main__":
    main()
