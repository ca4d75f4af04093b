"""Speed of predictions: whole configurations in Python, and step times as columns.

python benchmarks/bench_predict.py
"""

import csv
import sys
import time
from pathlib import Path

import numpy as np

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.performance.kernels.step import StepLoad, step_time_s
from gpuplan.performance.memory.weights import weights_bytes
from gpuplan.studies.inference.predict import constants_for, predict_inference
from gpuplan.studies.inference.work import deployment_work, setup_work
from gpuplan.studies.measured.inference import serving_setup

TABLE = Path(__file__).resolve().parents[1] / (
    "src/gpuplan/calibration/data/measured/llm_inference.csv"
)
N_STEPS = 1_000_000
N_PASSES = 5
CHUNK_ROWS = 4096


def configurations_per_s(rows: list[dict[str, str]]) -> float:
    """Setup given, everything else computed: work, memory, constants, regime, ranges.

    The best of some passes in processor time, for others may use the machine; every pass derives
    each deployment anew when it first meets it.
    """
    setups = [serving_setup(row) for row in rows]
    predict_inference(setups[0])  # compiled loops and tables load once
    spent_s = []
    for _ in range(N_PASSES):
        deployment_work.cache_clear()
        weights_bytes.cache_clear()
        started = time.process_time()
        for setup in setups:
            predict_inference(setup)
        spent_s.append(time.process_time() - started)
    return len(setups) / min(spent_s)


def steps_per_s(row: dict[str, str]) -> float:
    """One deployment, a million loads."""
    setup = serving_setup(row)
    work = setup_work(setup)
    k, _ = constants_for(inference_calibration(), inference_labels(setup))
    rng = np.random.default_rng(0)
    loads = StepLoad(*(rng.uniform(1, 2000, N_STEPS) for _ in StepLoad._fields))
    # Chunks whose intermediate columns stay in the processor's cache.
    chunks = [slice(at, at + CHUNK_ROWS) for at in range(0, N_STEPS, CHUNK_ROWS)]
    step_time_s(work, k, StepLoad(*(column[chunks[0]] for column in loads)))
    started = time.process_time()
    for chunk in chunks:
        step_time_s(work, k, StepLoad(*(column[chunk] for column in loads)))
    return N_STEPS / (time.process_time() - started)


def main() -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for regime in ("max_load", "static_batch", "fixed_max_batch", "fixed_concurrency"):
        some = [row for row in rows if row["regime"] == regime][:: 10 if regime[0] != "f" else 3]
        sys.stdout.write(f"{regime}: {configurations_per_s(some):,.0f} configurations/s\n")
    dense = next(row for row in rows if row["model"] == "Llama-3.1-70B")
    experts = next(row for row in rows if row["model"].startswith("Mixtral"))
    for name, row in (("dense", dense), ("experts", experts)):
        sys.stdout.write(f"{name}: {steps_per_s(row):,.0f} step times/s\n")


if __name__ == "__main__":
    main()
