"""Which layout and concurrency would we choose, and was it right?

    python benchmarks/decisions/decide.py [MEASURED.csv] [--cross] [--margin 0.05]

On closed-loop rows: for each model, accelerator, engine, precision and lengths, and each target of
time per token, choose the best predicted tokens per second and accelerator among what is predicted
to meet the target; the measurements judge. `--cross` predicts each row from fits without its model.
"""

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.studies.inference.predict import predict_inference
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.validation.fit_inference import Study, by_model, cross_residuals, study
from gpuplan.studies.validation.inference_table import METRICS, benchmark_of, read_table

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "src/gpuplan/calibration/data/measured/llm_inference.csv"
TARGETS_MS = (10.0, 15.0, 20.0, 30.0, 50.0)
GROUP = ("model", "accelerator", "engine", "precision", "input_tokens", "output_tokens")


class Choice(NamedTuple):
    """One layout at one concurrency, predicted and measured."""

    predicted_tpot_ms: float
    predicted_rate: float  # tokens per second and accelerator
    measured_tpot_ms: float
    measured_rate: float


class Score(NamedTuple):
    """How the choices did, as shares of all decisions; `of_best` of those that met the target."""

    n: int
    met_frac: float
    violated_frac: float
    of_best_median: float
    of_best_mean: float


def rate(n_users: float, output_tokens: float, ttft_ms: float, tpot_ms: float) -> float:
    """Tokens per second of a closed loop, by Little's law."""
    return n_users * output_tokens / (ttft_ms + output_tokens * tpot_ms) * 1e3


def choices_of(rows: Sequence[dict[str, str]], predicted: Iterable[tuple[float, float]]):
    """Groups of alternatives; `predicted` holds time to first token and per token, in ms."""
    groups: dict[tuple[str, ...], list[Choice]] = defaultdict(list)
    for row, (ttft_ms, tpot_ms) in zip(rows, predicted, strict=True):
        users, answer = float(row["batch"]), float(row["output_tokens"])
        n = float(row["n_accelerators"])
        true_ttft, true_tpot = (
            float(row["measured_ttft_mean_ms"]), float(row["measured_tpot_mean_ms"])
        )  # fmt: skip
        groups[tuple(row[key] for key in GROUP)].append(
            Choice(
                tpot_ms, rate(users, answer, ttft_ms, tpot_ms) / n,
                true_tpot, rate(users, answer, true_ttft, true_tpot) / n,
            )
        )  # fmt: skip
    return groups


def chosen(options: list[Choice], target_ms: float, margin_frac: float) -> Choice:
    """The best rate among what meets the target with the margin, else without, else the fastest."""
    for margin in (margin_frac, 0.0):
        hoped = [c for c in options if c.predicted_tpot_ms * (1 + margin) <= target_ms]
        if hoped:
            return max(hoped, key=lambda c: c.predicted_rate)
    return min(options, key=lambda c: c.predicted_tpot_ms)


def score(groups: dict[tuple[str, ...], list[Choice]], margin_frac: float) -> Score:
    """Every group at every target that some measured choice meets."""
    n = n_met = 0
    of_best = []
    for options in groups.values():
        for target in TARGETS_MS:
            able = [c.measured_rate for c in options if c.measured_tpot_ms <= target]
            if not able or len(options) < 2:
                continue
            n += 1
            choice = chosen(options, target, margin_frac)
            if choice.measured_tpot_ms <= target:
                n_met += 1
                of_best.append(choice.measured_rate / max(able))
    return Score(n, n_met / n, 1 - n_met / n, float(np.median(of_best)), float(np.mean(of_best)))


def closed_loop_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = [row for row in rows if row["id"].startswith("cl-")]
    return [dict(row) for row in read_table(found).rows]


def shipped(rows: Sequence[dict[str, str]]) -> list[tuple[float, float]]:
    """Predictions of the package as it stands."""
    found = []
    for row in rows:
        got = predict_inference(serving_setup(row), benchmark=benchmark_of(row))
        found.append((got.ttft_mean_s.value * 1e3, got.tpot_mean_s.value * 1e3))
    return found


def left_out(path: Path, rows: Sequence[dict[str, str]]) -> list[tuple[float, float]]:
    """Predictions of fits that never saw the row's model."""
    with path.open(encoding="utf-8", newline="") as file:
        of: Study = study(read_table(list(csv.DictReader(file))))
    near = inference_calibration().constants
    logs = cross_residuals(of, by_model, n_folds=10, near=near) + of.observed.log_value
    by_id: dict[tuple[str, str], float] = {}
    for i, metric, value in zip(of.observed.row, of.observed.metric, logs, strict=True):
        by_id[of.table.rows[i]["id"], str(metric)] = float(np.exp(value))
    names = [name for name in METRICS if name in ("ttft_mean_ms", "tpot_mean_ms")]
    return [(by_id[row["id"], names[0]], by_id[row["id"], names[1]]) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", nargs="?", type=Path, default=TABLE)
    parser.add_argument("--cross", action="store_true")
    parser.add_argument("--margin", type=float, default=0.05)
    asked = parser.parse_args()
    rows = closed_loop_rows(asked.measured)
    predicted = left_out(asked.measured, rows) if asked.cross else shipped(rows)
    for margin in sorted({0.0, asked.margin}):
        got = score(choices_of(rows, predicted), margin)
        sys.stdout.write(
            f"margin {margin:.0%}: {got.n} decisions, meets "
            f"{got.met_frac:.1%}, violates {got.violated_frac:.1%}, of best "
            f"{got.of_best_median:.1%} median {got.of_best_mean:.1%} mean\n"
        )


if __name__ == "__main__":
    main()
