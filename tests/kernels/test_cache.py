"""What was compiled is loaded by the next process, and by a compiler that has changed inside."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from gpuplan.simulation.serving.kernels.engine.runs import run_apart
from gpuplan.simulation.serving.kernels.jit import compiled
from gpuplan.simulation.serving.run import simulate_serving
from kernels.test_compiled import runs

TESTS = Path(__file__).parent.parent
IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"
RUN = """
import hashlib
from kernels.test_compiled import kernels, runs
print(hashlib.sha256(b"".join(runs())).hexdigest())
stats = {name: kernel.stats for name, kernel in kernels().items()}
print(sum(sum(s.cache_hits.values()) for s in stats.values()))
print(sorted(name for name, s in stats.items() if s.cache_misses))
"""
LOAD_ALL = """
from kernels.test_compiled import kernels
n_loaded, lost = 0, []
for name, kernel in kernels().items():
    cache, context = kernel._cache, kernel.targetctx
    if not hasattr(cache, "_cache_file"):
        continue  # a part exists within kernels alone
    for signature, *_ in cache._cache_file._load_index():
        found = cache.load_overload(signature, context)
        n_loaded += found is not None
        lost += [name] * (found is None)
print(n_loaded)
print(sorted(lost))
"""
# As a later version of the compiler might: the method has another name.
RENAMED = """
from numba.core.caching import Cache
Cache._fetched = Cache._load_overload
del Cache._load_overload
def load_overload(self, sig, target_context):
    target_context.refresh()
    with self._guard_against_spurious_io_errors():
        return self._fetched(sig, target_context)
Cache.load_overload = load_overload
"""


def printed(code: str) -> list[str]:
    """Lines that a fresh process prints."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, env=environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


@pytest.fixture(scope="module")
def digest() -> str:
    """Of runs of this process, which leaves what it compiles on disk."""
    if not IS_COMPILED:
        pytest.skip("nothing is compiled")
    from hashlib import sha256  # noqa: PLC0415

    return sha256(b"".join(runs())).hexdigest()


@pytest.mark.parametrize("before", ["", RENAMED], ids=["as it is", "renamed inside"])
def test_a_fresh_process_compiles_nothing(digest: str, before: str):
    found, n_hits, missed, *_ = printed(before + RUN)
    assert found == digest
    assert int(n_hits) >= 6
    assert missed == "[]"


def test_every_kernel_on_disk_loads(digest: str):
    assert digest
    n_loaded, lost, *_ = printed(LOAD_ALL)
    assert int(n_loaded) >= 6
    assert lost == "[]"


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_the_compiler_still_has_what_a_fast_start_is_built_on():
    """Where this fails, kernels still load, half a second slower: see `kernel_cache.kept`."""
    assert isinstance(run_apart._cache.load_overload, partial)
    assert run_apart._cache._cache_file._source_stamp.endswith(compiled.SOURCES)
    # A name that the compiler no longer reads would leave stale code in use.
    plain = compiled.njit(cache=True)(simulate_serving)
    assert hasattr(plain._cache._cache_file, "_source_stamp")
