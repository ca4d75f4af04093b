"""Waits by team and size, where GPU time went, and who waits for whom."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuplan.domain.cluster.answer import ClusterUse, WaitRow, WaitShare
from gpuplan.domain.cluster.cluster import Cluster, ClusterTeam
from gpuplan.domain.cluster.jobs import Jobs, column
from gpuplan.domain.cluster.outcome import ClusterOutcome, ClusterTimeline, JobOutcomes
from gpuplan.domain.columns import Floats

LEAST_SHARE = 0.01  # of a team's waiting: less is the width of a bin
LEAST_RUN_S = 10.0  # bounded slowdown: shorter runs count as this
LAYERS = ("batch", "service", "down", "idle", "quota_blocked", "too_few", "fragmented")
SIZES = ((1, 1), (2, 4), (5, 8), (9, 16), (17, 64), (65, 1 << 30))
SIZE_NAMES = (
    "part of a GPU",
    "1 GPU",
    "2–4 GPUs",
    "5–8 GPUs",
    "9–16 GPUs",
    "17–64 GPUs",
    "65+ GPUs",
)


def waits_of(jobs: Jobs, found: JobOutcomes, chosen: Any) -> tuple[Floats, Floats]:
    """Wait and bounded slowdown of the chosen jobs; NaN of those that never start or end."""
    wait = (found.start_s - jobs.arrive_s)[chosen]
    run = (found.end_s - found.start_s)[chosen]
    return wait, ((wait + run) / np.maximum(run, LEAST_RUN_S)).clip(min=1.0)


def wait_row(
    name: str, jobs: Jobs, found: ClusterOutcome, chosen: Any, target_s: float | None = None
) -> WaitRow:
    """The waits of the chosen jobs; those that never start are counted apart."""
    wait, slow = waits_of(jobs, found.jobs, chosen)
    is_in, slow = np.isfinite(wait), slow[np.isfinite(slow)]
    quantiles = np.percentile(wait[is_in], [50, 90, 99]) if is_in.any() else np.zeros(3)
    slowdown = np.percentile(slow, [50, 90]) if len(slow) else np.ones(2)
    return WaitRow(
        name=name,
        n_jobs=len(wait),
        n_never=int((~is_in).sum()),
        wait_mean_s=float(wait[is_in].mean()) if is_in.any() else 0.0,
        wait_p50_s=float(quantiles[0]),
        wait_p90_s=float(quantiles[1]),
        wait_p99_s=float(quantiles[2]),
        slowdown_p50_ratio=float(slowdown[0]),
        slowdown_p90_ratio=float(slowdown[1]),
        held_accelerator_s=float(found.jobs.held_accelerator_s[chosen].sum()),
        target_p90_s=target_s,
    )


def team_rows(
    teams: Sequence[ClusterTeam], jobs: Jobs, found: ClusterOutcome
) -> tuple[WaitRow, ...]:
    """One row for every team that has jobs."""
    targets = {team.name: team.wait_p90_s for team in teams}
    return tuple(
        wait_row(name, jobs, found, jobs.team == t, targets.get(name))
        for t, name in enumerate(jobs.team_names)
        if (jobs.team == t).any()
    )


def size_rows(jobs: Jobs, found: ClusterOutcome) -> tuple[WaitRow, ...]:
    """One row for every range of sizes that has jobs."""
    return tuple(wait_row(name, jobs, found, chosen) for name, chosen in by_size(jobs))


def by_size(jobs: Jobs) -> Iterator[tuple[str, Any]]:
    """Ranges of sizes that have jobs, by name, and which jobs those are."""
    share = column(jobs.needs.share_frac, len(jobs), 1.0)
    if (share < 1).any():
        yield SIZE_NAMES[0], share < 1
    for (low, high), name in zip(SIZES, SIZE_NAMES[1:], strict=True):
        chosen = (jobs.n_accelerators >= low) & (jobs.n_accelerators <= high) & (share >= 1)
        if chosen.any():
            yield name, chosen


class WorkSums(NamedTuple):
    """GPU time that jobs held and lost, work that was submitted and started within its target."""

    held_accelerator_s: float
    lost_accelerator_s: float
    work_s: float
    in_time_s: float


def work_sums(cluster: Cluster, jobs: Jobs, found: JobOutcomes) -> WorkSums:
    """Sums over jobs; those of the parts of a stream add up."""
    target = {team.name: team.wait_p90_s for team in cluster.teams}
    limits = np.array([_limit(target.get(name)) for name in jobs.team_names])
    work = jobs.duration_s * jobs.n_accelerators * column(jobs.needs.share_frac, len(jobs), 1.0)
    in_time = (found.start_s - jobs.arrive_s <= limits[jobs.team]) & np.isfinite(found.end_s)
    return WorkSums(
        float(found.held_accelerator_s.sum()),
        float(found.lost_accelerator_s.sum()),
        float(work.sum()),
        float(work[in_time].sum()),
    )


def cluster_use(cluster: Cluster, jobs: Jobs, found: ClusterOutcome) -> ClusterUse:
    """Shares of GPU time until the last submission, which leaves out the run-down."""
    return use_of(cluster, found.timeline, work_sums(cluster, jobs, found.jobs))


def use_of(cluster: Cluster, line: ClusterTimeline, sums: WorkSums) -> ClusterUse:
    """The same of a timeline and sums over jobs."""
    inside, total = slice(0, len(line.batch) - 1), cluster.n_accelerators
    mean = {name: float(getattr(line, name)[inside].mean()) / total for name in LAYERS}
    allocated, lost = sums.held_accelerator_s, sums.lost_accelerator_s
    goodput = 1 - lost / allocated if allocated else 1.0
    return ClusterUse(
        **{f"{name}_frac": value for name, value in mean.items()},
        goodput_frac=goodput,
        lost_accelerator_s=lost,
        precision_frac=mean["batch"] * goodput + mean["service"],
        recall_frac=sums.in_time_s / sums.work_s if sums.work_s else 1.0,
    )


def _limit(target_s: float | None) -> float:
    return np.inf if target_s is None else target_s


def _over_time(begin: Floats, end: Floats, weight: Floats, edges: Floats) -> Floats:
    """The sum of weights over time, as a mean of every bin."""
    width = edges[1] - edges[0]

    def integral(at: Floats, sign: float) -> Floats:
        """∫ of Σ weight·1[t ≥ at] up to every edge."""
        order = np.argsort(at)
        times, weights = at[order], weight[order]
        total, moment = np.cumsum(weights), np.cumsum(weights * times)
        place = np.searchsorted(times, edges, side="right")
        total = np.concatenate([[0.0], total])[place]
        moment = np.concatenate([[0.0], moment])[place]
        return sign * (total * edges - moment)

    found: Floats = np.diff(integral(begin, 1.0) + integral(end, -1.0)) / width
    return found


def wait_shares(jobs: Jobs, found: ClusterOutcome, n_bins: int = 200) -> tuple[WaitShare, ...]:
    """Of a team's waiting GPUs over time: who held GPUs meanwhile, in proportion."""
    start, end = found.jobs.start_s, found.jobs.end_s
    is_in = np.isfinite(start) & np.isfinite(end)
    if not is_in.any():
        return ()
    edges = np.linspace(0.0, float(end[is_in].max()) + 1.0, n_bins + 1)
    gpus = jobs.n_accelerators.astype(np.float64)
    allocated, waits = [], []
    for t in range(len(jobs.team_names)):
        mine = is_in & (jobs.team == t)
        allocated.append(_over_time(start[mine], end[mine], gpus[mine], edges))
        waits.append(_over_time(jobs.arrive_s[mine], start[mine], gpus[mine], edges))
    busy = np.maximum(np.sum(allocated, axis=0), 1e-9)
    rows = []
    for t, name in enumerate(jobs.team_names):
        total = waits[t].sum()
        if total > 0:
            by = [float((waits[t] * mine / busy).sum() / total) for mine in allocated]
            rows += [
                WaitShare(team=name, holder=jobs.team_names[h], wait_frac=share)
                for h, share in enumerate(by)
                if share >= LEAST_SHARE
            ]
    return tuple(rows)
