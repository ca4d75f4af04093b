"""Compiled equals Python, and every kernel is compiled once."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers, BatchTable
from gpuplan.domain.simulation.engine import LockStep
from gpuplan.simulation.serving import batching, gaps, run
from gpuplan.simulation.serving import kernels as room
from kernels.cases import fleet_of, limits_of, stream_of

MODULES = tuple(
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
)
TESTS = Path(__file__).parent.parent


def kernels() -> dict[str, object]:
    return {
        f"{module.__name__}.{name}": value
        for module in MODULES
        for name, value in vars(module).items()
        if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__
    }


def runs() -> list[bytes]:
    """Bytes of runs by every method and router."""
    draw = np.random.default_rng(2)
    requests = stream_of(draw, 60)
    limits = limits_of(draw, requests, n_blocks=60)
    found = []
    for method in ("jump", "step"):
        outcome = run.simulate_serving(requests, fleet_of(limits), method=method)
        found.append(outcome.times.e2e_s.tobytes() + outcome.use.busy_frac.tobytes())
    for router in ("least_outstanding", "power_of_two"):
        many = fleet_of(limits, n_engines=3, router=router)
        found.append(run.simulate_serving(requests, many).times.ttft_s.tobytes())
    for router in ("round_robin", "power_of_two"):
        alike = fleet_of(limits, n_engines=4, router=router)
        lock = LockStep(n_engines=2, own=alike.table, shared_s=floats([0.0, 1e-3]))
        grouped = run.simulate_serving(requests, replace(alike, lockstep=lock))
        found.append(grouped.times.e2e_s.tobytes())
    found.append(repr(gaps.gaps_of(requests, fleet_of(limits))).encode())
    policy = BatchPolicy(max_batch=limits.max_sequences, max_delay_s=0.05)
    fixed = fleet_of(limits, n_engines=2, router="least_outstanding", batching=policy)
    found.append(run.simulate_serving(requests, fixed).times.e2e_s.tobytes())
    by_size = floats(0.01 * np.arange(limits.max_sequences + 1))
    table = BatchTable(batch_s=by_size, arithmetic_s=by_size, memory_s=by_size)
    servers = BatchServers(policy=policy, table=table, n_engines=2)
    found.append(batching.simulate_servers(requests, servers).times.e2e_s.tobytes())
    return found


def test_compiled_equals_python(monkeypatch: pytest.MonkeyPatch):
    compiled = runs()
    for module in (*MODULES, run, batching, gaps):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    assert runs() == compiled


def test_one_signature_per_kernel():
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        pytest.skip("nothing is compiled")
    runs()
    counts = {
        name: [_kind(signature) for signature in kernel.signatures]
        for name, kernel in kernels().items()
    }
    assert len(counts) > 30
    assert {name: kinds for name, kinds in counts.items() if len(kinds) > len(set(kinds))} == {}


def _kind(signature: object) -> tuple[str, ...]:
    """Which sorts of engine the arguments are; another layout of arrays would be the same sort."""
    return tuple(sorted(set(re.findall(r"(\w*Engines?)\(", str(signature)))))


def test_no_kernel_reads_out_of_bounds(tmp_path: Path):
    """Without the check a wrong index returns garbage in silence."""
    code = (
        "from dataclasses import replace\n"
        "import numpy as np\n"
        "from gpuplan.domain.simulation.batching import BatchPolicy\n"
        "from kernels.cases import bent_table, fleet_of, limits_of, stream_of\n"
        "from gpuplan.domain.simulation.engine import Fleet\n"
        "from gpuplan.simulation.serving.run import simulate_serving\n"
        "for seed in range(40):\n"
        "    draw = np.random.default_rng(seed)\n"
        "    requests = stream_of(draw, 100)\n"
        "    limits = limits_of(draw, requests)\n"
        "    fleet = Fleet(limits=limits, table=bent_table(draw, limits), n_engines=2,\n"
        "                  router='least_outstanding')\n"
        "    simulate_serving(requests, fleet, bin_s=0.01)\n"
        "    policy = BatchPolicy(max_batch=limits.max_sequences, max_delay_s=0.05)\n"
        "    simulate_serving(requests, replace(fleet, batching=policy), bin_s=0.01)\n"
    )
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=300)
