"""Jobs per second of CPU time that the cluster simulator replays, by policy.

    python benchmarks/bench_cluster.py [trace]

Without a trace, a stream like Philly's: nine jobs of ten on one GPU, gangs of up to 32.
"""

import sys
from pathlib import Path
from time import process_time

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SchedulingPolicy
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.inputs.jobs.read import read_jobs
from gpuplan.simulation.cluster.run import simulate_cluster

SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.90, 0.03, 0.03, 0.03, 0.005, 0.005)
GROUPS = (
    NodeGroup(accelerator="P100", n_nodes=60, n_accelerators_per_node=8),
    NodeGroup(accelerator="P40", n_nodes=30, n_accelerators_per_node=2),
)
POLICIES = (
    ("fifo", "strict"),
    ("fifo", "easy"),
    ("fifo", "conservative"),
    ("shortest", "easy"),
    ("fair", "skip"),
    ("drf", "skip"),
    ("kueue", "skip"),
)


def stream(n: int) -> Jobs:
    """A made-up stream at 95 % of the cluster's GPUs."""
    rng = np.random.default_rng(1)
    gpus = rng.choice(SIZES, n, p=SHARES)
    duration = rng.lognormal(7.0, 2.0, n)
    gap_s = float((gpus * duration).mean()) / (0.95 * sum(g.n_accelerators for g in GROUPS))
    return Jobs(
        arrive_s=np.cumsum(rng.exponential(gap_s, n)),
        duration_s=duration,
        n_accelerators=gpus,
        team=rng.integers(0, 15, n),
        team_names=tuple(f"vc{i}" for i in range(15)),
    )


def main() -> None:
    jobs = read_jobs(Path(sys.argv[1])) if len(sys.argv) > 1 else stream(100_000)
    for order, blocking in POLICIES:
        policy = SchedulingPolicy(order=order, blocking=blocking)
        described = Cluster(name="bench", groups=GROUPS, policy=policy)
        times = []
        for _ in range(3):
            began = process_time()
            found = simulate_cluster(described, jobs)
            times.append(process_time() - began)
        wait_h = float(np.nanmean(found.jobs.start_s - jobs.arrive_s)) / 3600
        rate = len(jobs) / min(times)
        print(f"{order:9} {blocking:12} {rate:>10,.0f} jobs/s of CPU   mean wait {wait_h:8.2f} h")


if __name__ == "__main__":
    main()
