"""Training memory: ours beside the estimators of DeepSpeed and accelerate, on measured peaks.

    python benchmarks/peers/memory.py --peers PYTHON

PYTHON is the interpreter of an environment with `deepspeed` and `accelerate` in it; a peer that is
not there is skipped with the reason. Rows: published peaks of runs in which every weight is
trained (the estimators know no adapters). Ours on rows that the fit has not seen (holdout) and on
all; the estimators count states of 16-bit training with Adam and say themselves that activations
are not in it. hf-mem reads headers from the hub, which needs a network, and sizes inference alone.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "validation"), str(ROOT / "tests")]

from training_memory_rows import Row, rows  # noqa: E402

from shared_data import SHARED  # noqa: E402

STAGES = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}
PEERS = {
    "DeepSpeed": """
import json, sys
from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs as three
from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs as two
out = []
for case in json.load(sys.stdin):
    n, gpus, layer = case["n_params"], case["n_gpus"], case["layer_params"]
    if case["stage"] == 3:
        out.append(three(n, layer, gpus, 1, cpu_offload=False, cpu_offload_params=False)[1])
    else:
        out.append(two(n, gpus if case["stage"] else 1, 1, cpu_offload=False)[1])
print("\\n" + json.dumps(out))
""",
    "accelerate": """
import json, sys
from accelerate.commands.estimate import estimate_training_usage
out = []
for case in json.load(sys.stdin):
    found = estimate_training_usage(4 * case["n_params"], "bfloat16")
    out.append(max(found.values()) if case["n_gpus"] == 1 else None)
print("\\n" + json.dumps(out))
""",
}


def case_of(row: Row) -> dict[str, float]:
    """What an estimator is told: parameters of one tensor- and pipeline-parallel rank."""
    split = row.layout.tp * row.layout.pp
    return {
        "n_params": row.model.n_params // split,
        "layer_params": row.model.n_params // row.model.main.n_layers // split,
        "n_gpus": row.layout.dp,
        "stage": STAGES.get(row.layout.sharding, 3),
    }


def asked(python: str, script: str, found: Sequence[Row]) -> list[float | None] | str:
    """Bytes of each row, or why there are none."""
    text = json.dumps([case_of(row) for row in found])
    how = {"input": text, "capture_output": True, "text": True}
    done = subprocess.run([python, "-c", script], check=False, **how)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout.strip().splitlines()[-1])


def line(name: str, pairs: Sequence[tuple[float, float]]) -> str:
    """Errors of one tool: estimate and measured bytes."""
    errors = sorted(abs(one / other - 1) for one, other in pairs)
    low = sum(one < other for one, other in pairs) / len(pairs)
    p90 = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    errors_text = f"median {statistics.median(errors):6.1%}  p90 {p90:6.1%}"
    return f"{name:34s} {len(errors):4d} rows  {errors_text}  too low {low:4.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", default=sys.executable)
    options = parser.parse_args()
    found = [
        row
        for row in rows(SHARED / "measured")
        if row.measured_bytes and row.setup.adapter is None and row.role in ("fit", "holdout")
    ]
    ours = [(row.predicted_bytes, row.measured_bytes or 0.0, row.role) for row in found]
    unseen = [pair[:2] for pair in ours if pair[2] == "holdout"]
    if unseen:
        print(line("gpuplan, rows held out", unseen))
    print(line("gpuplan, all", [pair[:2] for pair in ours]))
    for name, script in PEERS.items():
        answers = asked(options.peers, script, found)
        if isinstance(answers, str):
            print(f"{name}: skipped: {answers}")
            continue
        both = zip(answers, found, strict=True)
        pairs = [(one, row.measured_bytes or 0.0) for one, row in both if one is not None]
        print(line(name, pairs))


if __name__ == "__main__":
    main()
