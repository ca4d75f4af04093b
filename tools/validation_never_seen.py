"""The part of docs/validation.md on rows of sources that no table of the package holds."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuplan.calibration.tables import read_rows
from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.calibration.validation import PredictedRow
from gpuplan.studies.validation.report import validate_rows

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "validation" / "never_seen"
KINDS = ("llm_inference", "llm_training", "llm_inference_models")
MODELS = "models never fitted, of known publishers"
FIRST = FOLDER / "first_predictions.csv"
METRICS = ("output_tokens_per_s", "tpot_mean_ms", "ttft_mean_ms", "e2e_s", "step_s")
# What the rows of a source are, in words; regimes of one source apart.
WORDS = {
    ("aws-neuron", "static_batch"): "Inferentia2 and Trainium1, static batch",
    ("cloudrift", "fixed_concurrency"): "games' and workstation cards, closed loop",
    ("dstack", "static_batch"): "Llama 405B on MI300X and H100, static batch",
    ("oracle", "static_batch"): "Llama 405B on MI300X, static batch",
    ("oracle", "max_load"): "Llama 405B on MI300X, max load",
    ("gpustack", "fixed_concurrency"): "recent models on H100 and H200, closed loop",
    ("gpustack", "max_load"): "100 to 500 equal requests at once through a server",
    ("gpustack", "burst"): "1,000 chats of real lengths at once through a server",
    ("tpu-recipes", "fixed_concurrency"): "TPU v6e and v7, closed loop",
    ("tpu-recipes", "pre-training"): "TPU v6e and v7, training step",
    ("aws-neuron", "pre-training"): "Trainium1, training step",
}
HEAD = """\
## Never seen

{n} rows of {sources} sources that no table of the package holds, with new vendors (TPU, Trainium,
Inferentia), cards, models and ways to measure; each names where it was published
(`tests/validation/never_seen`). `first` are the predictions made before anything was changed for
these rows: they are what a stranger's rows may expect. `now` are today's: no constant is fitted to
these rows, but rules were mended with them in sight. Rows that a source may share with the
package's own tables were rejected. Below them stand {models} rows of publishers that are known, of
models that no fit has held because the catalog did not.

| rows | metric | n | first: median, bias, in range | now: median, bias, in range |
|---|---|---:|---:|---:|"""


class Miss(NamedTuple):
    """One prediction beside its measurement."""

    error: float
    is_inside: bool


def never_seen() -> str:
    """Errors of rows never seen, by source and metric: at first, and now."""
    first, tables = _first(), [_unfitted(read_csv_rows(FOLDER / f"{kind}.csv")) for kind in KINDS]
    groups: dict[tuple[str, str, str], tuple[list[Miss], list[Miss]]] = {}
    for rows in tables:
        regimes = {row["id"]: row.get("regime", "") for row in rows}
        for row in validate_rows(rows, where="never seen").rows:
            for metric in METRICS:
                _enter(groups, row, metric, first=first, regime=regimes[row.id])
    new, models = [row for rows in tables[:-1] for row in rows], len(tables[-1])
    n_sources = len({row["source"] for row in new})
    lines = [HEAD.format(n=len(new), sources=n_sources, models=models)]
    for (source, regime, metric), (before, after) in sorted(groups.items()):
        what = WORDS.get((source, regime), f"{MODELS}, {regime}")
        lines.append(
            f"| {what} | {metric} | {len(after)} | {_figures(before)} | {_figures(after)} |"
        )
    return "\n".join(lines) + "\n"


def _enter(
    groups: dict[tuple[str, str, str], tuple[list[Miss], list[Miss]]],
    row: PredictedRow,
    metric: str,
    *,
    first: Mapping[tuple[str, str], tuple[float, float, float]],
    regime: str,
) -> None:
    measured, estimate = row.measured.get(metric), row.predicted.get(metric)
    if not measured or estimate is None:
        return
    named = "burst" if "prompts" in regime else row.groups["regime"]
    source = row.groups["source"]
    group = source if (source, named) in WORDS else "~"  # behind the others
    before, after = groups.setdefault((group, named, metric), ([], []))
    after.append(_miss((estimate.value, estimate.low, estimate.high), measured))
    if (row.id, metric) in first:
        before.append(_miss(first[row.id, metric], measured))


def _miss(found: tuple[float, float, float], measured: float) -> Miss:
    value, low, high = found
    return Miss(value / measured - 1.0, low <= measured <= high)


def _figures(misses: Sequence[Miss]) -> str:
    if not misses:
        return "–"
    errors = np.array([miss.error for miss in misses])
    inside = 100.0 * float(np.mean([miss.is_inside for miss in misses]))
    median, bias = 100.0 * float(np.median(np.abs(errors))), 100.0 * float(np.median(errors))
    return f"{median:.1f}, {bias:+.1f}, {inside:.0f}"


def _unfitted(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Rows that the package's own table does not hold."""
    fitted = {row["id"] for row in read_rows("llm_inference.csv")}
    return [row for row in rows if row["id"] not in fitted]


def _first() -> dict[tuple[str, str], tuple[float, float, float]]:
    return {
        (row["id"], row["metric"]): (float(row["value"]), float(row["low"]), float(row["high"]))
        for row in read_csv_rows(FIRST)
    }
