"""A sweep of 1,000 simulations on one Ray worker and on two, and on two with one killed.

    python3 dev.py ray --speed [--cases 1000]

Wall seconds of the whole command on an idle server; exit code 4 where two workers are less than
1.7 times as fast as one, or where any result differs.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

LEAST_RATIO, N_RATES = 1.7, 5
SWEEP = """verb: simulate
options: {model: Llama-3.1-8B, on: H100, input-tokens: 500, output-tokens: 200, duration: 120}
axes: {rate: [2, 4, 6, 8, 10], seed: 0..LAST}
"""


def family(pid: int) -> list[int]:
    """The process and all that it started."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        for task in Path(f"/proc/{found[-1]}/task").glob("*/children"):
            todo += map(int, task.read_text().split())
    return found


def kill_one_worker(sweep: subprocess.Popen[bytes], after_s: float) -> None:
    """End a Ray worker of this sweep while it is at work."""
    time.sleep(after_s)
    while sweep.poll() is None:
        for each in family(sweep.pid):
            with suppress(OSError):
                command = Path(f"/proc/{each}/cmdline").read_bytes()
                if command.startswith(b"ray::") and b"IDLE" not in command:
                    os.kill(each, signal.SIGKILL)
                    print("killed a worker", flush=True)
                    return
        time.sleep(0.05)
    raise SystemExit("no worker was at work to be killed")


def ran(folder: Path, name: str, n_workers: int, kills_after_s: float = 0.0) -> tuple[float, bytes]:
    """Wall seconds and the table of one run."""
    command = [sys.executable, "-m", "gpuplan", "sweep", str(folder / "sweep.yaml"), "-o", "csv"]
    command += ["--engine", "ray", "--workers", str(n_workers), "--store", str(folder / name)]
    begun_s = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as sweep:
        if kills_after_s:
            kill_one_worker(sweep, kills_after_s)
        found = sweep.communicate()[0]
    if sweep.returncode:
        raise SystemExit(f"the sweep ended with {sweep.returncode}")
    return time.perf_counter() - begun_s, found


def main() -> int:
    """Three runs, and what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    n = parser.parse_args().cases
    with TemporaryDirectory() as temp:
        folder = Path(temp)
        text = SWEEP.replace("LAST", str(max(1, n // N_RATES) - 1))
        (folder / "sweep.yaml").write_text(text)
        one_s, first = ran(folder, "one", 1)
        two_s, second = ran(folder, "two", 2)
        _, third = ran(folder, "killed", 2, two_s / 2)
    ratio, is_same = one_s / two_s, first == second == third
    rows = len(first.splitlines()) - 1
    if b"error" in first.splitlines()[0]:
        raise SystemExit(f"cases were refused: {first.decode()[:400]}")
    print(f"{rows} simulations, load of the server {os.getloadavg()[0]:.1f}")
    print(f"one worker {one_s:.1f} s, two {two_s:.1f} s: x {ratio:.2f} (at least {LEAST_RATIO})")
    print(f"the same table, also with a worker killed: {is_same}")
    return 0 if is_same and ratio >= LEAST_RATIO else 4


if __name__ == "__main__":
    sys.exit(main())
