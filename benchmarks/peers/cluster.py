"""Cluster replay: ours beside AccaSim on the same jobs, first in first out and EASY backfilling.

    python benchmarks/peers/cluster.py --peers PYTHON [--jobs 5000]

PYTHON is the interpreter of an environment with `accasim` in it (skipped with the reason where it
is not). Jobs of whole seconds and 1 to 32 GPUs on one pool of 128, so that placement plays no part
and schedules can be held against each other job by job.
"""

import argparse
import json
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from gpuplan.domain.cluster.cluster import Cluster, NodeGroup, SchedulingPolicy
from gpuplan.domain.cluster.jobs import Jobs
from gpuplan.simulation.cluster.run import simulate_cluster

N_GPUS = 128
SIZES, SHARES = (1, 2, 4, 8, 16, 32), (0.70, 0.08, 0.08, 0.08, 0.04, 0.02)
POLICIES = {"FIFO": ("strict", "FirstInFirstOut"), "EASY": ("easy", "EASYBackfilling")}
# Its names of Python 3.9 and older are put back first.
ACCASIM = """
import collections, collections.abc, json, logging, sys, time
for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable"):
    setattr(collections, name, getattr(collections.abc, name))
time.clock = time.process_time
from datetime import datetime
from accasim.base import scheduler_class
from accasim.base.allocator_class import FirstFit
from accasim.base.simulator_class import Simulator
logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
with open("w.swf", "w") as file:
    for i, (at, lasts, n) in enumerate(asked["jobs"], 1):
        file.write(f"{i} {at} -1 {lasts} {n} -1 -1 {n} {lasts} -1 1 1 1 -1 1 -1 -1 -1\\n")
json.dump({"groups": {"g": {"core": asked["n"]}}, "resources": {"g": 1}}, open("s.json", "w"))
kind = getattr(scheduler_class, asked["policy"])
run = Simulator("w.swf", "s.json", kind(FirstFit()), RESULTS_FOLDER_NAME="results")
begun = time.process_time()
found = run.start_simulation()
spent = time.process_time() - begun
path = found["SCHEDULE_OUTPUT"] if isinstance(found, dict) and "SCHEDULE_OUTPUT" in found else None
import glob, os
newest = path or max(glob.glob("**/sched-*", recursive=True) + glob.glob(
    os.path.join(os.path.dirname(sys.argv[0] or "."), "results/sched-*")), key=os.path.getmtime)
starts = {}
for line in open(newest):
    head, _, tail = line.split("__")
    at = datetime.strptime(tail.split(";")[0], "%Y-%m-%d %H:%M:%S") - datetime(1970, 1, 1)
    starts[int(head.split(";")[0])] = at.total_seconds()
print("\\n" + json.dumps([spent, [starts[i + 1] for i in range(len(asked["jobs"]))]]))
"""


def stream(n: int) -> Jobs:
    """Jobs at 90 % of the pool, in whole seconds, no two at the same one."""
    rng = np.random.default_rng(1)
    gpus = rng.choice(SIZES, n, p=SHARES)
    lasts = np.ceil(rng.lognormal(6.0, 1.2, n))
    gap_s = float((gpus * lasts).mean()) / (0.9 * N_GPUS)
    at = np.cumsum(np.maximum(1.0, np.ceil(rng.exponential(gap_s, n))))
    team = np.zeros(n, np.int64)
    return Jobs(arrive_s=at, duration_s=lasts, n_accelerators=gpus, team=team, team_names=("all",))


def theirs(python: str, jobs: Jobs, policy: str) -> tuple[float, np.ndarray] | str:
    """CPU-seconds and starts, or why there are none."""
    rows = np.column_stack([jobs.arrive_s, jobs.duration_s, jobs.n_accelerators]).astype(int)
    text = json.dumps({"jobs": rows.tolist(), "n": N_GPUS, "policy": policy})
    with TemporaryDirectory() as folder:
        how = {"input": text, "capture_output": True, "text": True, "cwd": folder}
        done = subprocess.run([python, "-c", ACCASIM], check=False, **how)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    spent, starts = json.loads(done.stdout.strip().splitlines()[-1])
    return spent, np.array(starts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--jobs", type=int, default=5000)
    options = parser.parse_args()
    jobs = stream(options.jobs)
    group = NodeGroup(accelerator="H100", n_nodes=1, n_accelerators_per_node=N_GPUS)
    for name, (blocking, policy) in POLICIES.items():
        rules = SchedulingPolicy(order="fifo", blocking=blocking)
        cluster = Cluster(name="pool", groups=(group,), policy=rules)
        simulate_cluster(cluster, jobs)  # compiled code is loaded
        begun = process_time()
        starts = simulate_cluster(cluster, jobs).jobs.start_s
        spent = process_time() - begun
        other = theirs(options.peers, jobs, policy)
        if isinstance(other, str):
            print(f"{name}: AccaSim skipped: {other}")
            continue
        same = np.mean(np.abs(starts - other[1]) < 0.5)
        waits = [float((each - jobs.arrive_s).mean()) for each in (starts, other[1])]
        print(
            f"{name}: {len(jobs):,} jobs, {same:.1%} start in the same second; mean wait "
            f"{waits[0]:,.0f} s, AccaSim {waits[1]:,.0f} s; {len(jobs) / spent:,.0f} jobs a CPU-s, "
            f"AccaSim {len(jobs) / other[0]:,.0f}"
        )


if __name__ == "__main__":
    main()
