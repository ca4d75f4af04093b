"""A sweep of fleet sizes on one process and on two: wall seconds, and the same answers.

    python benchmarks/bench_sweep.py [--requests 4000000] [--cases 6]

Chat on Llama-3.1-8B at 60 requests a second against fleets of 4, 5, 6 … replicas. Wall time
includes the start of the processes; other work on the machine takes from both.
"""

import argparse
import os
import pickle
import resource
import time

from gpuplan import api
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.simulation import CurveRequest, FleetSizeCurve, SimulateRequest
from gpuplan.domain.traffic.drawn import DrawnLoad

LENGTHS = TokenLengths(shape="lognormal", mean_tokens=400, p95_tokens=1200, max_tokens=4000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4_000_000)
    parser.add_argument("--cases", type=int, default=6)
    typed = parser.parse_args()
    load = DrawnLoad(
        law="poisson", requests_per_s=60.0, input=LENGTHS, output=LENGTHS,
        n_requests=typed.requests,
    )  # fmt: skip
    requests, asked = api.drawn_load(load).requests, SimulateRequest()
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", requests, asked)
    sizes = tuple(range(4, 4 + typed.cases))

    def run(n_workers: int) -> tuple[FleetSizeCurve, float]:
        curve = CurveRequest(
            sizes=sizes, waste_usd_per_accelerator_s=1e-3, delay_usd_per_request=0.01,
            n_workers=n_workers,
        )  # fmt: skip
        start_s = time.perf_counter()
        found = api.simulate_curve(ready, requests, curve, request=asked)
        return found, time.perf_counter() - start_s

    cpu_s = time.process_time()
    one, one_s = run(1)
    cpu_s = time.process_time() - cpu_s
    two, two_s = run(2)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    children_s = used.ru_utime + used.ru_stime
    is_same = pickle.dumps(one.points) == pickle.dumps(two.points)
    print(f"{typed.cases} fleets x {typed.requests:,} requests, load of the machine "
          f"{os.getloadavg()[0]:.1f}")  # fmt: skip
    print(f"one process {one_s:.1f} s, two {two_s:.1f} s: x {one_s / two_s:.2f}; same: {is_same}")
    print(f"CPU-seconds: {cpu_s:.1f} in one, {children_s:.1f} in two, start included: "
          f"x {2 * cpu_s / children_s:.2f} on two free cores")  # fmt: skip


if __name__ == "__main__":
    main()
