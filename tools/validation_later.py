"""The part of docs/validation.md on later releases, rounds and boards: training and networks."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.validation import networks
from gpuplan.studies.validation.report import predicted_rows
from gpuplan.studies.validation.training import predicted_training

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "validation" / "never_seen"
HEAD = """\
## Later releases, rounds and boards

{n} training rows that no fit reads: the MLPerf round, the Megatron-Bridge releases and the boards
after those of the package's tables, and software and makers that they do not hold
(`tests/validation/never_seen/*_later.csv`, each row with its source). `first` was predicted before
anything was changed. Afterwards faults that these rows showed were mended (experts that
work in a narrower width, tokens sent once per node, hybrid sharding, names of newer software,
casts to 4 bits, the grouped kernel of releases from June 2026, and that it helps gated experts
alone), so `now` is no blind figure; no constant is fitted to them. {gone} further rows, of one
fine-tuning script, gave 16.4 % and 73 % in range at first; all but six of them are in the fit now.
The six run on two nodes at 1.8 times the time of their own row on one, at every length; they stay
here.

| rows | n | first: median, bias, in range | now: median, p90, bias, in range |
|---|---:|---:|---:|"""
NETWORKS = (
    ("CNN and ViT on RTX 5090", "vision_later", "infer_samples_per_s"),
    ("ResNet-50 training, eleven boards", "vision_training_later", "train_samples_per_s"),
    ("FLUX and HunyuanVideo, H100 and H20", "diffusion_later", "batch_latency_s"),
)
PREDICT = {
    "vision_later": networks.predicted_vision,
    "vision_training_later": networks.predicted_vision_training,
    "diffusion_later": networks.predicted_diffusion,
}
STEP, RATE = "step_s", "tokens_per_s_per_accelerator"
N_SCRIPT_ROWS = 63
Errors = list[tuple[float, bool]]


def later() -> str:
    """Errors of rows published later, at first and now, by source."""
    found, _ = predicted_rows(rows_of("llm_training_later"), predicted_training)
    first = {row["id"]: row for row in rows_of("first_predictions_training")}
    lines = [HEAD.format(n=len(found), gone=N_SCRIPT_ROWS)]
    for name, some in _groups(found).items():
        before = [_first(row, first[row.id]) for row in some if row.id in first]
        lines.append(f"| {name} | {len(some)} | {_short(before)} | {_long(step_errors(some))} |")
    for name, table, metric in NETWORKS:
        errors = network_errors(table, metric)
        lines.append(f"| {name} | {len(errors)} | {_short(errors)} | {_long(errors)} |")
    tail = "Networks were predicted once: nothing was changed for them, so `first` is `now`."
    return "\n".join([*lines, "", tail, ""])


def step_errors(rows: Sequence[PredictedRow]) -> Errors:
    """Log of predicted over measured time of a step, and whether the range holds it."""
    found = []
    for row in rows:
        metric = STEP if STEP in row.measured else RATE
        found.append(_error(row.predicted[metric], row.measured[metric], is_rate=metric == RATE))
    return found


def network_errors(table: str, metric: str) -> Errors:
    """The same of networks that are no language models."""
    rows, refused = predicted_rows(rows_of(table), PREDICT[table])
    if refused:
        raise ValueError(refused)
    is_rate = metric.endswith("_per_s")
    return [_error(row.predicted[metric], row.measured[metric], is_rate=is_rate) for row in rows]


def rows_of(name: str) -> list[dict[str, str]]:
    """One table of the folder."""
    return read_csv_rows(FOLDER / f"{name}.csv")


def _groups(rows: Sequence[PredictedRow]) -> dict[str, list[PredictedRow]]:
    regimes = ("pre-training", "fine-tuning")
    groups = {f"**{name}**": [r for r in rows if r.groups["regime"] == name] for name in regimes}
    for source in sorted({row.groups["source"] for row in rows}):
        groups[source] = [row for row in rows if row.groups["source"] == source]
    return groups


def _first(row: PredictedRow, first: Mapping[str, str]) -> tuple[float, bool]:
    value, low, high = (float(first[name]) for name in ("value", "low", "high"))
    estimate = Estimate(value=value, low=low, high=high, tier="fitted")
    metric = first["metric"]
    return _error(estimate, row.measured[metric], is_rate=metric == RATE)


def _error(estimate: Estimate, measured: float, *, is_rate: bool) -> tuple[float, bool]:
    sign = -1.0 if is_rate else 1.0
    error = sign * float(np.log(estimate.value / measured))
    return error, estimate.low <= measured <= estimate.high


def _short(errors: Errors) -> str:
    if not errors:
        return "–"
    log = np.array([error for error, _ in errors])
    inside = 100 * np.mean([held for _, held in errors])
    median = 100 * np.median(np.abs(np.expm1(log)))
    return f"{median:.1f}, {100 * np.expm1(np.median(log)):+.1f}, {inside:.0f}"


def _long(errors: Errors) -> str:
    log = np.array([error for error, _ in errors])
    median, rest = _short(errors).split(", ", 1)
    return f"{median}, {100 * np.quantile(np.abs(np.expm1(log)), 0.9):.1f}, {rest}"
