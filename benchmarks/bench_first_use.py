"""CPU-seconds that the first use of each kind of run compiles, and that a later start loads.

    python benchmarks/bench_first_use.py [KIND …]

Every kind runs in a process of its own, at first with nothing compiled, then with what the first
one kept. What a process has to import is not in it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from bench_fleet import START, pool
from bench_simulate import chat, fleet

from gpuplan.domain.columns import ints
from gpuplan.domain.simulation.engine import Admission, PrefillFirst
from gpuplan.domain.simulation.fleet import (
    Autoscaler,
    Clients,
    ElasticFleet,
    Failures,
    Router,
    Spot,
)
from gpuplan.domain.traffic.stream import Requests
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from gpuplan.simulation.serving.run import simulate_serving

N_REQUESTS = 2000
SGLANG = Admission(is_ahead=True, prefill_first=PrefillFirst())


def _plain() -> None:
    requests = chat(N_REQUESTS, 16.0)
    simulate_serving(requests, fleet(requests))


def _routed() -> None:
    requests = chat(N_REQUESTS, 64.0)
    simulate_serving(requests, replace(fleet(requests), n_engines=4, router="least_outstanding"))


def _sharing(requests: Requests) -> Requests:
    """The same with text in common: without, a prefix cache is left out of the run."""
    group = ints(np.arange(len(requests)) % 50)
    return replace(requests, prefix_group=group, prefix_tokens=requests.input_tokens)


def _featured() -> None:
    requests = _sharing(chat(N_REQUESTS, 16.0))
    of = fleet(requests)
    simulate_serving(requests, replace(of, limits=replace(of.limits, caches_prefixes=True)))


def _sglang(n_engines: int = 1) -> None:
    requests = chat(N_REQUESTS, 16.0)
    of = fleet(requests)
    limits = replace(of.limits, admission=SGLANG, caches_prefixes=True)
    router = "round_robin" if n_engines == 1 else "least_outstanding"
    simulate_serving(requests, replace(of, limits=limits, n_engines=n_engines, router=router))


def _autoscaled(*, is_featured: bool = False) -> None:
    """All that a fleet can do: it grows, shrinks, breaks, is taken away and left by clients."""
    requests = chat(4 * N_REQUESTS, 16.0 * 4)
    requests = _sharing(requests) if is_featured else requests
    parts = {
        "scaler": Autoscaler(target_requests=30.0, interval_s=5.0, down_window_s=10.0),
        "failures": Failures(mtbf_s=200.0, mttr_s=20.0),
        "spot": Spot(mean_s=300.0, notice_s=5.0, away_s=10.0),
    }
    one = pool(requests, 4, **parts)
    one = replace(one, start=replace(START, boot_s=1.0, compile_s=1.0))
    one = replace(one, limits=replace(one.limits, caches_prefixes=is_featured))
    clients = Clients(timeout_s=5.0, max_retries=1)
    router = Router(rule="least_outstanding")
    simulate_fleet(requests, ElasticFleet(pools=(one,), router=router, clients=clients))


KINDS: dict[str, Callable[[], None]] = {
    "plain": _plain,
    "routed": _routed,
    "featured": _featured,
    "sglang": _sglang,
    "sglang-routed": lambda: _sglang(4),
    "autoscaled": _autoscaled,
    "autoscaled-featured": lambda: _autoscaled(is_featured=True),
}


def _one(kind: str) -> None:
    """Seconds of the first run in this process, less those of a second."""
    spent_s = []
    for _ in range(2):
        start_s = time.process_time()
        KINDS[kind]()
        spent_s.append(time.process_time() - start_s)
    print(f"{spent_s[0] - spent_s[1]:.3f}")


def _spent_s(kind: str, kept: str) -> float:
    environment = os.environ | {"NUMBA_CACHE_DIR": kept}
    run = subprocess.run(
        [sys.executable, __file__, "--one", kind],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(run.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--one", choices=list(KINDS))
    given = parser.parse_args()
    if given.one:
        _one(given.one)
        return
    print(f"load of the machine {os.getloadavg()[0]:.1f}")
    print(f"{'kind':18s} {'compiles, CPU-s':>16s} {'loads, CPU-s':>14s}")
    for kind in given.kinds:
        with tempfile.TemporaryDirectory() as kept:
            first_s, later_s = _spent_s(kind, kept), _spent_s(kind, kept)
        print(f"{kind:18s} {first_s:16.1f} {later_s:14.2f}", flush=True)


if __name__ == "__main__":
    main()
