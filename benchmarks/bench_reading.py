"""What reading costs beside a bare interpreter's start, in one run: catalog, offers, one model.

    python benchmarks/bench_reading.py

Each is run in a fresh process, so that nothing is cached; import of the room is part of it.
"""

import statistics
import subprocess
import sys
import time

N_ROUNDS = 7
CODE = {
    "bare interpreter": "pass",
    "hardware catalog": "from gpuplan.catalog.load import read_catalog; read_catalog()",
    "8,400 cloud offers": "from gpuplan.catalog.offers import read_offers; read_offers()",
    "one model by name": "from gpuplan.catalog.models import find_model; find_model('Qwen3-32B')",
    "regions": "from gpuplan.catalog.regions import read_regions; read_regions()",
}


def wall_s(code: str) -> float:
    """Seconds of one fresh process."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Print medians of interleaved runs and their ratio to the bare start."""
    times_s: dict[str, list[float]] = {name: [wall_s(code)] for name, code in CODE.items()}
    for _ in range(N_ROUNDS):
        for name, code in CODE.items():
            times_s[name].append(wall_s(code))
    bare_s = statistics.median(times_s["bare interpreter"])
    for name, runs_s in times_s.items():
        median_s = statistics.median(runs_s)
        print(f"{name:22} {1000 * median_s:7.1f} ms  {median_s / bare_s:5.1f} x")


if __name__ == "__main__":
    main()
