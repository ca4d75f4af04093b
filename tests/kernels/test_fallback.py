"""Where numba has changed inside, plain `njit` compiles the same text to the same answers."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpuplan.simulation.serving.kernels.jit import compiled
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import fleet_of, limits_of, stream_of

TESTS = Path(__file__).parent.parent
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"
# As a later version of the compiler might: who imports this from it finds that it is gone.
GONE = """
import sys, types
import {module} as was
less = types.ModuleType(was.__name__)
less.__dict__.update({{name: value for name, value in vars(was).items() if name != "{name}"}})
sys.modules[was.__name__] = less
"""
OTHERWISE = """
from gpuplan.simulation.serving.kernels.jit import assembly
assembly._dynfunc = None
"""
A_PASS = GONE.format(module="numba.core.typed_passes", name="IRLegalization")
A_LIBRARY = GONE.format(module="numba.core.codegen", name="JITCodeLibrary")
A_TEMPLATE = GONE.format(module="numba.core.typing.templates", name="AttributeTemplate")
RUN = """
from kernels.test_fallback import times
from gpuplan.simulation.serving.kernels.jit import compiled
print(times().hex())
print(compiled.is_assembled())
"""


def times() -> bytes:
    """Times of a small run with preemptions."""
    draw = np.random.default_rng(2)
    requests = stream_of(draw, 30)
    outcome = simulate_serving(requests, fleet_of(limits_of(draw, requests, n_blocks=60)))
    return outcome.times.e2e_s.tobytes() + outcome.use.busy_frac.tobytes()


def printed(before: str, kept: Path) -> tuple[list[str], str]:
    """Lines that a fresh process prints after a change to the compiler, and what it warns of."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(kept),
        "NUMBA_OPT": "0",
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
    }
    command = [sys.executable, "-c", before + RUN]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("change", [A_PASS, OTHERWISE], ids=["gone", "otherwise"])
def test_the_answers_are_the_same_whatever_has_changed(change: str, tmp_path: Path):
    (found, assembled), warned = printed(change, tmp_path)
    assert found == times().hex()
    assert assembled == str(change == OTHERWISE)
    assert "numba has changed inside" in warned


@pytest.mark.parametrize("change", [A_LIBRARY, A_TEMPLATE], ids=["library", "template"])
def test_every_missing_piece_is_noticed_at_import(change: str):
    code = change + (
        "import warnings\nwarnings.simplefilter('ignore')\n"
        "from gpuplan.simulation.serving.kernels.jit import compiled\n"
        "print(compiled.is_assembled())\n"
    )
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == "False"


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_nothing_is_kept_on_disk_where_stale_code_cannot_be_told(monkeypatch: pytest.MonkeyPatch):
    class Cache:
        _cache_file = object()

    def made(**options: object):
        def decorated(function):
            function.options = options
            function._cache = Cache() if options.get("cache") else None
            return function

        return decorated

    def of_a_kernel():
        return None

    of_a_kernel.__module__ = compiled.SERVING
    monkeypatch.setattr(compiled, "njit", made)
    assert "cache" not in compiled.kernel(of_a_kernel).options
