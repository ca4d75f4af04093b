"""The short way from statements to instructions gives what Python gives."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.jit.compiled import PLAIN, SORTS, njit, part

TESTS = Path(__file__).parent.parent
WHOLE = some.integers(-(2**31), 2**31)
REAL = some.floats(allow_nan=True, width=32)
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"

kernel = njit(**SORTS.get("kernel", PLAIN))


@part
def _scaled(row, k):
    row[k] *= 3
    return row[k]


@kernel
def whole_numbers(a, b, found):
    """All that kernels do with two integers."""
    found[0, 0], found[0, 1], found[0, 2] = a + b, a - b, a * b
    found[0, 3], found[1, 0] = a & b, a | b
    found[1, 1], found[1, 2] = a << 3, a >> 3
    found[1, 3] = (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b)
    found[2, 0] = (a == b) + 2 * (a != b)
    found[2, 1] = _scaled(found[0], st.ONE)
    found[2, 2] -= a


@kernel
def real_numbers(a, b, found):
    """All that kernels do with two floats."""
    found[0], found[1], found[2] = a + b, a - b, a * b
    found[3] = (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b)
    found[4] = (a == b) + 2 * (a != b)


@given(WHOLE, WHOLE)
@settings(deadline=None, max_examples=200, derandomize=True)
def test_integers_are_those_of_python(a, b):
    found = np.zeros((3, 4), dtype=np.int64)
    whole_numbers(a, b, found)
    expected = [a + b, 3 * (a - b), a * b, a & b, a | b, a << 3, a >> 3]
    expected += [(a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b), (a == b) + 2 * (a != b)]
    assert found.ravel().tolist() == [*expected, 3 * (a - b), -a, 0]


@given(REAL, REAL)
@settings(deadline=None, max_examples=200, derandomize=True)
def test_floats_are_those_of_python_nan_included(a, b):
    found = np.zeros(5)
    real_numbers(a, b, found)
    expected = [a + b, a - b, a * b]
    expected += [(a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b), (a == b) + 2 * (a != b)]
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_no_kernel_counts_from_the_back(tmp_path: Path):
    """The short way would read what lies before the array: here such an index ends the process."""
    code = (
        "from llvmlite import ir\n"
        "from gpuplan.simulation.serving.kernels.jit.lowering import LONG, LeanLower\n"
        "found = LeanLower._counts\n"
        "def checked(self, index):\n"
        "    counts, build = found(self, index), self.builder\n"
        "    for one in counts:\n"
        "        with build.if_then(build.icmp_signed('<', one, LONG(0))):\n"
        "            kind = ir.FunctionType(ir.VoidType(), ())\n"
        "            build.call(build.module.declare_intrinsic('llvm.trap', (), kind), ())\n"
        "    return counts\n"
        "LeanLower._counts = checked\n"
        "import numpy as np\n"
        "from kernels.fleets import autoscaled_fleet, talking_stream, with_policies\n"
        "from gpuplan.simulation.serving.fleet.run import simulate_fleet\n"
        "for seed in range(40):\n"
        "    draw = np.random.default_rng(seed)\n"
        "    requests = talking_stream(draw, 100)\n"
        "    fleet = autoscaled_fleet(draw, requests)\n"
        "    fleet = with_policies(draw, fleet, drafts=fleet.kv_transfer is None)\n"
        "    simulate_fleet(requests, fleet)\n"
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=600)
