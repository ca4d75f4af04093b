"""What `gpuplan --help` costs beside a bare interpreter, in one run: the ratio must stay below 10.

    python benchmarks/bench_help.py

Medians of interleaved runs, so that a busy machine slows both alike.
"""

import statistics
import subprocess
import sys
import time

N_ROUNDS = 15
LIMIT = 10.0
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "gpuplan --help": [sys.executable, "-m", "gpuplan", "--help"],
    "gpuplan": [sys.executable, "-m", "gpuplan"],
    "gpuplan fit --help": [sys.executable, "-m", "gpuplan", "fit", "--help"],
    "gpuplan fit Llama-3.1-8B --on H100": [
        sys.executable, "-m", "gpuplan", "fit", "Llama-3.1-8B", "--on", "H100",
    ],
}  # fmt: skip


def wall_s(command: list[str]) -> float:
    """Seconds from start to end of one run."""
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - begin


def main() -> int:
    """Print the ratios; 1 when help has become too dear."""
    for command in COMMANDS.values():
        wall_s(command)  # the first run of each writes byte code
    times_s: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(N_ROUNDS):
        for name, command in COMMANDS.items():
            times_s[name].append(wall_s(command))
    medians_s = {name: statistics.median(runs) for name, runs in times_s.items()}
    bare_s = medians_s["python -c pass"]
    for name, median_s in medians_s.items():
        print(f"{name:40} {1000 * median_s:7.1f} ms  {median_s / bare_s:5.1f} x")
    return int(medians_s["gpuplan --help"] / bare_s > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
