"""Requests streamed without keeping them: CPU-seconds, memory, and the share of each part.

    python benchmarks/bench_stream.py [--requests 100000000] [--replicas 1]

Chat on Llama-3.1-8B, one H100 a replica, 16 requests a second each: lognormal lengths (mean 665
in, 220 out), Poisson arrivals, drawn block by block. CPU time of the process, compiled code
loaded; memory is the most that was resident.
"""

import argparse
import resource
import time

from gpuplan import api
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.traffic.drawn import DrawnLoad

RATE = 16.0


def chat(n: int, replicas: int) -> DrawnLoad:
    return DrawnLoad(
        law="poisson", requests_per_s=RATE * replicas, n_requests=n,
        input=TokenLengths(shape="lognormal", mean_tokens=665, p95_tokens=2100, max_tokens=6000),
        output=TokenLengths(shape="lognormal", mean_tokens=220, p95_tokens=650, max_tokens=2000),
    )  # fmt: skip


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(n: int, replicas: int) -> None:
    blocks = api.drawn_blocks(chat(n, replicas))
    asked = SimulateRequest(n_replicas=replicas)
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", blocks.first, asked)
    start_s, marks = time.process_time(), {n // 100: 0.0, n // 10: 0.0, n: 0.0}

    def told(n_done: int) -> None:
        for mark, seen in marks.items():
            if n_done >= mark and not seen:
                marks[mark] = resident_mb()

    found = api.simulate_stream(ready, blocks, asked, on_progress=told)
    cpu_s = time.process_time() - start_s
    ttft = found.statistics.ttft
    assert ttft is not None
    print(
        f"{replicas} replicas, {found.outcome.n_completed:,} of {n:,} requests: {cpu_s:.1f} CPU-s, "
        f"{n / cpu_s:,.0f} a CPU-s; {found.outcome.totals.span_s / 86400:.1f} days simulated; "
        f"TTFT p50 {1e3 * ttft.p50_s:.1f}, p99 {1e3 * ttft.p99_s:.1f} ms"
    )
    shown = ", ".join(f"{mark:,}: {mb:.0f} MB" for mark, mb in marks.items())
    print(f"resident at most after {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000_000)
    parser.add_argument("--replicas", type=int, default=1)
    asked = parser.parse_args()
    n_warm = 20_000
    blocks = api.drawn_blocks(chat(n_warm, asked.replicas))
    few = SimulateRequest(n_replicas=asked.replicas)
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", blocks.first, few)
    api.simulate_stream(ready, blocks, few)
    run(asked.requests, asked.replicas)


if __name__ == "__main__":
    main()
