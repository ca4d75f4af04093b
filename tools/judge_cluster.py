"""Figures of docs/validation-cluster.md: start-time ranges and generated weeks.

    GPUPLAN_SHARED_DATA=… python tools/judge_cluster.py [jobs per trace]

Start times: estimates for jobs of the last three quarters of a trace that met a queue, each from
what was known at its submission; ranges from the hundred of them that started last before it and
are of its kind (could start at once, or not), and from those that waited, as far as their wait was
known.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from judge_waits import rebuilt, stream_of

from gpuplan.demand.jobs import draw_jobs, fit_jobs, taken
from gpuplan.domain.cluster.answer import EtaRequest
from gpuplan.domain.cluster.cluster import Cluster, NodeFailures, NodeGroup
from gpuplan.domain.cluster.jobs import JobNeeds, Jobs, JobTerms
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.studies.cluster.eta import estimated, met_queue, must_wait
from gpuplan.studies.cluster.start_range import LEAST_RECORD, Record, calibrated, score

TRACES = Path(os.environ["GPUPLAN_SHARED_DATA"]) / "traces"
CASES = {  # nodes of eight GPUs
    "alibaba_gpu_2023/openb_pod_list_default.csv": (4, 5, 6, 7),
    "philly/philly.csv": (110, 100, 90, 80, 72, 65),
}
RECORD, WEEK = 100, 604_800.0


def coverage(jobs: Jobs, n_nodes: int, n_tried: int) -> str:
    """A line of the page: starts within their range, of jobs that cannot start at once or can."""
    group = NodeGroup(accelerator="GPU", n_nodes=n_nodes, n_accelerators_per_node=8)
    cluster = with_all_teams(Cluster(name="judged", groups=(group,)), jobs)
    full = simulate_cluster(cluster, jobs)
    start, wait = full.jobs.start_s, full.jobs.start_s - jobs.arrive_s
    met = met_queue(jobs, np.where(np.isnan(start), np.inf, start))
    able = np.flatnonzero((jobs.arrive_s > 0.25 * jobs.span_s) & np.isfinite(wait) & met)
    tried = able[np.linspace(0, len(able) - 1, min(n_tried, len(able))).astype(int)]
    request = EtaRequest(n_accelerators=1, duration_s=1.0)
    told = np.array([estimated(cluster, jobs, full, int(i), request) for i in tried])
    held, width = ranges(told, jobs.arrive_s[tried], start[tried])
    known, blocked = np.isfinite(held), must_wait(told)
    parts = np.array_split(np.flatnonzero(known & blocked), 10)
    error = np.std([held[each].mean() for each in parts]) / np.sqrt(10)
    free = held[known & ~blocked]
    others = f"of {len(free)} others {free.mean():.1%}" if len(free) else "no others"
    return (
        f"{n_nodes} nodes: mean wait {wait[np.isfinite(wait)].mean() / 3600:.1f} h, "
        f"{(wait > 60).mean():.0%} of jobs wait; of {(known & blocked).sum()} that cannot start at "
        f"once {held[known & blocked].mean():.1%} (error {error:.1%}) in range, "
        f"high / low {np.exp(np.median(width[known & blocked])):.1f}; "
        f"{others}"
    )


def ranges(told: np.ndarray, arrive: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, ...]:
    """Whether each start lies within its range, and the range's width; NaN: too few before it."""
    held, width = np.full((2, len(told)), np.nan)
    for k in range(len(told)):
        alike = np.flatnonzero(must_wait(told[:k]) == must_wait(told[k]))
        order = alike[np.argsort(start[alike], kind="stable")]
        begun = order[start[order] < arrive[k]][-RECORD:]
        waits = alike[start[alike] >= arrive[k]][-RECORD:]
        if len(begun) < LEAST_RECORD:
            continue
        known = np.concatenate([begun, waits])
        # Of a job that still waits, its wait so far is known.
        so_far = np.minimum(start[known], arrive[k]) - arrive[known]
        begun_s = np.where(start[known] < arrive[k], start[known], np.inf)
        earlier = Record(score(so_far, told[known]), arrive[known], begun_s)
        low, high = calibrated(told[k], earlier, arrive[k])
        held[k] = low - 1e-6 <= start[k] - arrive[k] <= high + 1e-6
        width[k] = score(high, low)
    return held, width


def weeks(name: str, jobs: Jobs, first: int) -> None:
    """Each week beside sixty draws of a generator that was fitted to all weeks before it."""
    below = []
    for week in range(first, int(jobs.span_s // WEEK)):
        fitted = fit_jobs(part(jobs, 0.0, week * WEEK))
        own = part(jobs, week * WEEK, (week + 1) * WEEK)
        draws = [draw_jobs(fitted, span_s=WEEK, week_s=jobs.week_s, seed=s) for s in range(60)]
        (n, hours), found = sums(own), np.array([sums(each) for each in draws])
        below.append((found <= (n, hours)).mean(axis=0))
        print(
            f"{name}, week {week + 1}: {n:,.0f} jobs (drawn {found[:, 0].mean():,.0f}), "
            f"{hours:,.0f} GPU-h (drawn {found[:, 1].mean():,.0f}), "
            f"{below[-1][1]:.0%} of draws below"
        )
    held = ((np.array(below) >= 0.1) & (np.array(below) <= 0.9)).mean(axis=0)
    print(f"{name}: in the 80 % range {held[1]:.0%} of the weeks by GPU-h, {held[0]:.0%} by jobs")


def part(jobs: Jobs, begin_s: float, end_s: float) -> Jobs:
    """The jobs submitted between these times, counted from the first."""
    mine = np.flatnonzero((jobs.arrive_s >= begin_s) & (jobs.arrive_s < end_s))
    return taken(jobs, mine, jobs.arrive_s[mine] - begin_s, (jobs.week_s + begin_s) % WEEK)


def sums(jobs: Jobs) -> tuple[float, float]:
    """Number of jobs and their GPU-hours."""
    return float(len(jobs)), float((jobs.duration_s * jobs.n_accelerators).sum()) / 3600


def halves(name: str, jobs: Jobs, n_nodes: int) -> None:
    """Mean waits of the second half of a trace beside those of draws fitted to its first half."""
    group = NodeGroup(accelerator="GPU", n_nodes=n_nodes, n_accelerators_per_node=8)
    cluster = Cluster(name="judged", groups=(group,))

    def mean_min(stream: Jobs) -> float:
        return (
            float(np.nanmean(simulate_cluster(cluster, stream).jobs.start_s - stream.arrive_s)) / 60
        )

    half_s = jobs.span_s / 2
    own, fitted = part(jobs, half_s, np.inf), fit_jobs(part(jobs, 0.0, half_s))
    draws = [
        mean_min(draw_jobs(fitted, span_s=half_s, week_s=own.week_s, seed=s)) for s in range(20)
    ]
    low, middle, high = np.quantile(draws, (0.1, 0.5, 0.9))
    print(
        f"{name}, {n_nodes} nodes, second half: mean wait {mean_min(own):.1f} min, "
        f"drawn {middle:.1f} ({low:.1f} to {high:.1f})",
        flush=True,
    )


def failures() -> None:
    """Llama 3's run (54 days, 16,384 GPUs): rates of two other clusters, their mean, and its own.

    2,048 nodes and spares; checkpoints at Young's interval and restarts of 15 minutes, as
    `predict-training` assumes. Recorded: 419 unexpected stops, above 90 % useful [Llama3-2024].
    """
    day, n_nodes, span = 86_400.0, 2048, 54 * 86_400.0
    others = (6.50, 2.34)  # failures in 1,000 node-days [Kokolis2025]
    for per_1000 in (*others, float(np.sqrt(np.prod(others))), 419 * 1000 / (n_nodes * 54)):
        mtbf_s = 1000 / per_1000 * day
        interval_s = float(np.sqrt(2 * 10.0 * mtbf_s / n_nodes))  # of writes that take 10 s
        job = Jobs(
            arrive_s=np.zeros(1),
            duration_s=np.full(1, span),
            n_accelerators=np.full(1, 8 * n_nodes),
            team=np.zeros(1, np.int64),
            team_names=("pretraining",),
            terms=JobTerms(checkpoint_s=np.full(1, interval_s), restart_s=np.full(1, 900.0)),
        )
        group = NodeGroup(accelerator="H100", n_nodes=n_nodes + 48, n_accelerators_per_node=8)
        stops, useful = [], []
        for seed in range(10):
            failing = NodeFailures(mtbf_s=mtbf_s, mttr_s=day)
            cluster = Cluster(name="llama3", groups=(group,), failures=failing, seed=seed)
            found = simulate_cluster(with_all_teams(cluster, job), job).jobs
            running_s = float(found.held_accelerator_s[0]) / (8 * n_nodes)
            stops.append(int(found.n_failed[0]) * span / running_s)
            useful.append(span / running_s * (1 - 10.0 / interval_s))
        print(
            f"{per_1000:.2f} failures in 1,000 node-days: {np.mean(stops):.0f} stops "
            f"({np.mean(stops) / 419 - 1:+.0%}, seeds {min(stops):.0f} to {max(stops):.0f}), "
            f"{np.mean(useful):.1%} useful",
            flush=True,
        )


def main() -> None:
    failures()
    n_tried = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for name, sizes in CASES.items():
        jobs = replace(read_jobs(TRACES / name), needs=JobNeeds())  # each on whole GPUs of any type
        for n_nodes in sizes:
            print(f"{name}, {coverage(jobs, n_nodes, n_tried)}", flush=True)
    capacity, found, _ = rebuilt(TRACES / "helios/Earth_vcLJZ.cluster_sequence_vc.csv.gz")
    print(f"Helios Earth, vcLJZ, {coverage(stream_of(found), capacity // 8, n_tried)}", flush=True)
    for name, sizes in CASES.items():
        weeks(name, read_jobs(TRACES / name), 4)
        jobs = replace(read_jobs(TRACES / name), needs=JobNeeds())
        for n_nodes in sizes[:-1]:
            halves(name, jobs, n_nodes)


if __name__ == "__main__":
    main()
