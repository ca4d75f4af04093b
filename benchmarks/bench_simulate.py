"""Requests a CPU-second on one core: jumping beside stepping, in the same run.

    python benchmarks/bench_simulate.py [--requests 200000]

Chat on Llama-3.1-8B, one H100 a replica: lognormal lengths (mean 665 in, 220 out), Poisson
arrivals. CPU time of the process, compiled code loaded, set-up and results included; the best of
many. Use is the load as a share of what one replica completes when it is overloaded.
"""

import argparse
import os
import time
from dataclasses import replace

import numpy as np

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.columns import floats
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers, BatchTable
from gpuplan.domain.simulation.engine import Admission, Fleet
from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.simulation.serving.batching import simulate_servers
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.inference.configuration import setup_of
from gpuplan.studies.naming import model_named
from gpuplan.studies.replay.replicas import fleet_of

N_TRIES = {"jump": 15, "step": 5}


def chat(n: int, rate: float, *, seed: int = 0) -> Requests:
    draw = np.random.default_rng(seed)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    inputs = np.clip(draw.lognormal(6.0, 1.0, n), 1, 6000).astype(np.int64)
    outputs = np.clip(draw.lognormal(5.0, 0.9, n), 1, 2000).astype(np.int64)
    return requests_of(arrive_s, inputs, outputs)


def fleet(requests: Requests, **scheduler: int) -> Fleet:
    load = LoadRequest(regime="poisson", input_tokens=665, output_tokens=220, requests_per_s=1.0)
    choice = find_accelerator("H100", read_catalog())
    model = model_named("Llama-3.1-8B", None)
    setup, _ = setup_of(model, choice, PredictRequest(tp=1, load=load))
    settings = replace(setup.settings, max_sequences=scheduler.pop("max_sequences", 256))
    asked = SimulateRequest(tp=1, scheduler=EngineRequest(**scheduler))
    found, _ = fleet_of(replace(setup, settings=settings), requests, asked)
    return found


def requests_per_cpu_s(requests: Requests, of: Fleet, method: str) -> tuple[float, str]:
    best_s = float("inf")
    for _ in range(N_TRIES[method]):
        start_s = time.process_time()
        found = simulate_serving(requests, of, method=method)
        best_s = min(best_s, time.process_time() - start_s)
    # Sequences in the engine on average, by Little's law.
    n_inside = (found.times.e2e_s - found.times.wait_s).sum() / found.totals.span_s / of.n_engines
    note = f"{n_inside:5.0f} {found.totals.n_steps / len(requests):7.1f}"
    return len(requests) / best_s, f"{note} {found.totals.n_preemptions / len(requests):8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    n = parser.parse_args().requests
    simulate_serving(chat(100, 5.0), fleet(chat(100, 5.0)))  # loads or compiles
    flood = chat(n // 4, 40.0)
    capacity = len(flood) / simulate_serving(flood, fleet(flood)).totals.span_s
    print(f"load of the machine {os.getloadavg()[0]:.1f}; a replica completes {capacity:.1f}/s")
    print("one replica: batch, steps and preemptions a request; requests a CPU-second")
    print(f"{'':20s}  use batch steps/r preempt/r {'jump':>9s} {'step':>10s}")
    for label, rate, scheduler in (
        ("10 requests/s", 10.0, {}),
        ("16 requests/s", 16.0, {}),
        ("20 requests/s", 20.0, {}),
        ("25 requests/s", 25.0, {}),
        ("40/s: overload", 40.0, {}),
        ("20/s, 3000 blocks", 20.0, {"n_blocks": 3000}),
    ):
        requests = chat(n, rate)
        of = fleet(requests, **scheduler)
        figures = [requests_per_cpu_s(requests, of, method) for method in ("jump", "step")]
        speeds = " ".join(f"{speed:10,.0f}" for speed, _ in figures)
        print(f"{label:20s} {100 * rate / capacity:3.0f}% {figures[0][1]} {speeds}")
    print("\nreplicas, router, 16 requests/s each                 requests a CPU-second")
    for n_engines in (8, 64):
        requests = chat(n, 16.0 * n_engines)
        for router in ("round_robin", "least_outstanding", "power_of_two"):
            of = replace(fleet(requests), n_engines=n_engines, router=router)
            speed, _ = requests_per_cpu_s(requests, of, "jump")
            print(f"{n_engines:3d} {router:20s} {speed:42,.0f}")
    fixed_batches(n)


def fixed_batches(n: int) -> None:
    """Batches that run to their end: a language model, and servers of whole requests."""
    print("\nfixed batches                          busy   requests a CPU-second")
    requests = chat(n, 1.0)
    policy = BatchPolicy(max_batch=16, max_delay_s=0.5)
    plain = fleet(requests)
    # A fixed batch is drawn up when the one before it has ended.
    limits = replace(plain.limits, admission=Admission(), caches_prefixes=False)
    of = replace(plain, limits=limits, batching=policy)
    speed, _ = requests_per_cpu_s(requests, of, "jump")
    totals = simulate_serving(requests, of).totals
    print(f"static, 16, 1 request/s {100 * totals.busy_s / totals.span_s:17.0f} % {speed:15,.0f}")
    one, times_s = np.ones(n), floats(0.002 + 0.0005 * np.arange(17))
    table = BatchTable(batch_s=times_s, arithmetic_s=times_s, memory_s=times_s)
    policy = BatchPolicy(max_batch=16, max_delay_s=0.005)
    for n_engines, router in ((1, "round_robin"), (8, "least_outstanding")):
        gaps_s = np.random.default_rng(0).exponential(1 / 900 / n_engines, n)
        samples = requests_of(np.cumsum(gaps_s), one, one)
        servers = BatchServers(policy=policy, table=table, n_engines=n_engines, router=router)
        simulate_servers(samples, servers)
        start_s = time.process_time()
        totals = simulate_servers(samples, servers).totals
        speed = n / (time.process_time() - start_s)
        used = totals.busy_s / totals.span_s / n_engines
        print(f"dynamic, 16, {n_engines} x 900 samples/s {100 * used:11.0f} % {speed:15,.0f}")


if __name__ == "__main__":
    main()
