"""The same jobs through AccaSim and through gpuplan: starts job by job, and jobs per CPU second.

    python benchmarks/peers/accasim_jobs.py ENVIRONMENT/bin/python [trace or -] [jobs] [nodes]

ENVIRONMENT has AccaSim (`pip install accasim`, 1.1.3), an event-driven simulator of HPC dispatchers
in Python. One pool of 8-GPU nodes; GPUs of a job may lie anywhere, as AccaSim's allocator places
them; limits are the durations. Both run first-come first-served and EASY backfill.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

PEER = """
import sys, os, json, time, collections, collections.abc
for name in ("Mapping", "MutableMapping", "Iterable", "Sequence"):  # where Python 3.9 had them
    setattr(collections, name, getattr(collections.abc, name))
from accasim.base.simulator_class import Simulator
from accasim.base.scheduler_class import FirstInFirstOut, EASYBackfilling
from accasim.base.allocator_class import FirstFit
folder, name = sys.argv[1:3]
kind = {"fifo": FirstInFirstOut, "easy": EASYBackfilling}[name]
began = time.process_time()
Simulator(
    os.path.join(folder, "jobs.swf"), os.path.join(folder, "system.json"), kind(FirstFit()),
    RESULTS_FOLDER_PATH=os.path.join(folder, name), statistics_output=False,
    show_statistics=False, EXTENDED_JOB_DESCRIPTION=False,
).start_simulation()
print(json.dumps({"cpu_s": time.process_time() - began}))
"""
N_NODES, SIZE = int(sys.argv[4]) if len(sys.argv) > 4 else 40, 8


def stream(path: str | None, n: int):
    """The first jobs of a trace, or made-up ones; whole seconds, as SWF has them."""
    from dataclasses import replace  # noqa: PLC0415

    from bench_cluster import stream as made  # noqa: PLC0415

    from gpuplan.demand.jobs import taken  # noqa: PLC0415
    from gpuplan.inputs.jobs.read import read_jobs  # noqa: PLC0415

    jobs = read_jobs(Path(path)) if path else made(n)
    jobs = taken(jobs, np.arange(min(n, len(jobs))), jobs.arrive_s[:n], 0.0)
    fits = np.minimum(jobs.n_accelerators, N_NODES * SIZE)
    whole = np.maximum(np.floor(jobs.duration_s), 1.0)
    return replace(
        jobs, arrive_s=np.floor(jobs.arrive_s) + 1, duration_s=whole, n_accelerators=fits
    )


def write(folder: Path, jobs) -> None:
    """The system, and the jobs in the standard workload format."""
    group = {"core": SIZE}
    system = {"groups": {"node": group}, "resources": {"node": N_NODES}, "start_time": 0}
    system["equivalence"] = {"processor": {"core": 1}}
    (folder / "system.json").write_text(json.dumps(system))
    rows = [
        f"{i + 1} {a:.0f} -1 {d:.0f} {g} -1 -1 {g} {d:.0f} -1 1 1 1 1 1 1 -1 -1"
        for i, (a, d, g) in enumerate(
            zip(jobs.arrive_s, jobs.duration_s, jobs.n_accelerators, strict=True)
        )
    ]
    (folder / "jobs.swf").write_text("; UnixStartTime: 0\n" + "\n".join(rows) + "\n")


def ours(jobs, blocking: str) -> tuple[np.ndarray, float]:
    """Starts and CPU seconds, the kernel compiled before."""
    from gpuplan.domain.cluster.cluster import (  # noqa: PLC0415
        Cluster,
        NodeGroup,
        SchedulingPolicy,
    )
    from gpuplan.simulation.cluster.run import simulate_cluster  # noqa: PLC0415

    group = NodeGroup(accelerator="GPU", n_nodes=N_NODES, n_accelerators_per_node=SIZE)
    policy = SchedulingPolicy(blocking=blocking, placement="scatter", depth=1 << 30)
    cluster = Cluster(name="peer", groups=(group,), policy=policy)
    simulate_cluster(cluster, jobs)
    began = process_time()
    found = simulate_cluster(cluster, jobs)
    return found.jobs.start_s - jobs.arrive_s, process_time() - began


def theirs(python: str, folder: Path, name: str, n: int) -> tuple[np.ndarray, float]:
    """The same of the peer, from the dispatching plan that it writes."""
    done = subprocess.run(
        [python, "-c", PEER, str(folder), name], capture_output=True, text=True, check=True
    )
    text = next((folder / name).glob("sched-*")).read_text().splitlines()
    wait = np.full(n, np.nan)
    for line in text:
        head, _, tail = line.split("__")
        job, _, queued = head.split(";")
        wait[int(job) - 1] = _seconds(tail.split(";")[0]) - _seconds(queued)
    return wait, json.loads(done.stdout.splitlines()[-1])["cpu_s"]


def _seconds(text: str) -> float:
    return float(np.datetime64(text.replace(" ", "T")).astype("datetime64[s]").astype(float))


def main() -> None:
    python, path = sys.argv[1], sys.argv[2] if sys.argv[2:3] not in ([], ["-"]) else None
    sys.path.insert(0, str(Path(__file__).parents[1]))
    jobs = stream(path, int(sys.argv[3]) if len(sys.argv) > 3 else 5000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, jobs)
        for name, blocking in (("fifo", "strict"), ("easy", "easy")):
            mine, mine_s = ours(jobs, blocking)
            other, other_s = theirs(python, folder, name, len(jobs))
            same = np.mean(np.abs(mine - other) <= 1)
            print(
                f"{name}: mean wait {mine.mean():,.0f} s, AccaSim {np.nanmean(other):,.0f} s; "
                f"{same:.1%} of {len(jobs):,} starts equal; {len(jobs) / mine_s:,.0f} jobs/CPU-s, "
                f"AccaSim {len(jobs) / other_s:,.0f}"
            )


if __name__ == "__main__":
    main()
