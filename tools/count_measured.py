"""Print, for every table of a folder of measurements, how many rows are predicted and why not.

    python tools/count_measured.py FOLDER [PART_OF_A_NAME]

Tables in columns of their own are read as a user would: `gpuplan validate --map column=meaning`.
"""

import sys
from collections import Counter
from pathlib import Path

from gpuplan.csv_rows import read_csv_rows
from gpuplan.errors import PlannerError
from gpuplan.studies.validation.report import validate_file

TRAINING = ("gpu=accelerator", "n_gpus=n_accelerators", "global_batch:=", "micro_batch:=")
MAPS = {
    "nemo_launcher_scaling_a100": (
        *TRAINING, "tokens_per_s_per_gpu=measured_tokens_per_s_per_accelerator", "seq_len:=2048",
    ),
    "maxtext_tpu": (
        "model_params=model", "n_chips=n_accelerators", "mfu_pct=measured_mfu_pct",
        "tokens_per_s_per_device=measured_tokens_per_s_per_accelerator",
        "global_batch:=", "micro_batch:=",
    ),
    "finetune_memory_throughput": (
        "gpu=accelerator", "n_gpus=n_accelerators", "method=task", "global_batch:=",
    ),
    "nvidia_deeplearningexamples_training": (
        "hardware=accelerator", "n_gpus=n_accelerators", "batch_per_gpu=micro_batch",
        "global_batch:=",
    ),
}  # fmt: skip
N_REASONS, REASON_CHARACTERS = 2, 110


def counted(path: Path) -> tuple[int, int, Counter[str]]:
    """Rows, rows predicted, and the reasons of the others."""
    try:
        report = validate_file(path, columns=MAPS.get(path.stem, ()))
    except PlannerError as error:
        n = len(read_csv_rows(path))
        return n, 0, Counter({_short(str(error)): n})
    reasons = Counter(_short(reason) for _, reason in report.refused)
    return report.n_rows, report.n_covered, reasons


def _short(reason: str) -> str:
    return " ".join(reason.split())[:REASON_CHARACTERS]


def main() -> None:
    folder, part = Path(sys.argv[1]), (*sys.argv[2:], "")[0]
    print("| table | rows | predicted | refused | most frequent reasons |")
    print("|---|---:|---:|---:|---|")
    for path in sorted(path for path in folder.glob("*.csv") if part in path.stem):
        n, n_predicted, reasons = counted(path)
        said = "; ".join(f"{k} × {reason}" for reason, k in reasons.most_common(N_REASONS))
        cells = (path.stem, n, n_predicted, sum(reasons.values()), said.replace("|", "/"))
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
