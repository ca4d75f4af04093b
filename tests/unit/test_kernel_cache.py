"""Compiled kernels on disk are a help, never a condition."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)
MODULE = """
import sys, warnings
from numba import njit
from gpuplan.kernel_cache import cached

def twice(n):
    return 2 * n

with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    kernel = cached(njit, twice, {"_nrt": False}, stamp=sys.argv[1])
    answer = kernel(21)
print(answer, sum(kernel.stats.cache_hits.values()), *(w.message for w in found), sep="|")
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    (tmp_path / "made").mkdir()
    path = tmp_path / "made" / "one.py"
    path.write_text(textwrap.dedent(MODULE))
    return path


def run(path: Path, stamp: str = "a", *, before: str = "", home: str = "") -> list[str]:
    """Answer, loads from disk, and remarks of a fresh process."""
    environment = os.environ | {"HOME": home or str(path.parent)}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment["XDG_CACHE_HOME"] = environment["HOME"]
    environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
    start = f"import sys; sys.argv = [{str(path)!r}, {stamp!r}]\n{before}\n"
    code = start + f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


def stored(path: Path, suffix: str) -> list[Path]:
    return sorted(path.parent.rglob(f"*.{suffix}"))


def test_what_was_compiled_is_loaded_until_the_text_changes(kernels: Path):
    assert run(kernels) == ["42", "0"]
    assert run(kernels) == ["42", "1"]
    assert run(kernels, "b") == ["42", "0"]


def test_versions_of_the_compiler_leave_each_other_alone(kernels: Path):
    """As when two environments share one tree and run in turn, or at the same time."""
    later = "import numba; numba.__version__ = '99.1'"
    assert run(kernels) == ["42", "0"]
    assert run(kernels, before=later) == ["42", "0"]
    assert run(kernels, before=later) == ["42", "1"]
    assert run(kernels) == ["42", "1"]
    assert len(stored(kernels, "nbi")) == len(stored(kernels, "nbc")) == 2


def test_code_for_other_arguments_is_not_run(kernels: Path):
    """Two processes that compile at once may give one file to two signatures."""
    text = kernels.read_text()
    run(kernels)
    (data,) = stored(kernels, "nbc")
    of_integers = data.read_bytes()
    data.unlink()
    stored(kernels, "nbi")[0].unlink()
    kernels.write_text(text.replace("kernel(21)", "kernel(21.5)"))
    assert run(kernels) == ["43.0", "0"]
    data.write_bytes(of_integers)
    assert run(kernels) == ["43.0", "0"]
    assert run(kernels) == ["43.0", "1"]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["emptied", "cut short", "one bit", "garbage"])
def test_a_damaged_file_is_made_anew(kernels: Path, suffix: str, damage: str):
    run(kernels)
    (path,) = stored(kernels, suffix)
    whole = path.read_bytes()
    flipped = whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:]
    hurt = {"emptied": b"", "cut short": whole[:-10], "one bit": flipped, "garbage": b"\x80abc"}
    path.write_bytes(hurt[damage])
    answer, n_loaded, *_ = run(kernels)
    assert (answer, n_loaded) == ("42", "0")
    assert run(kernels) == ["42", "1"]  # mended


def test_code_of_an_older_text_under_a_new_index_is_not_run(kernels: Path):
    """A run that is killed between index and data leaves the data of before."""
    run(kernels, "old")
    (data,) = stored(kernels, "nbc")
    old = data.read_bytes()
    run(kernels, "new")
    data.write_bytes(old)
    assert run(kernels, "new")[:2] == ["42", "0"]


def test_code_of_a_module_that_is_gone_is_made_anew(kernels: Path):
    run(kernels)
    gone = "import pickle; before = pickle.loads\n"
    gone += "def loads(*given, **more): raise ModuleNotFoundError('gpuplan.moved')\n"
    gone += "pickle.loads = loads"
    answer, n_loaded, *remarks = run(kernels, before=gone)
    assert (answer, n_loaded) == ("42", "0")
    assert any("made anew" in remark for remark in remarks)


def test_no_folder_to_write_to_costs_a_remark(kernels: Path):
    (kernels.parent / "__pycache__").write_text("not a folder")
    answer, n_loaded, remark = run(kernels, home="/proc/none")
    assert (answer, n_loaded) == ("42", "0")
    assert "NUMBA_CACHE_DIR" in remark


def test_a_full_disk_costs_a_remark(kernels: Path):
    full = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    full += "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    answer, n_loaded, remark = run(kernels, before=full)
    assert (answer, n_loaded) == ("42", "0")
    assert "not cached (File too large)" in remark
    assert stored(kernels, "nbc") == []
