"""The ledger: predictions by constants that had not seen their rows, as lines for ranges.

First predictions of every batch of rows, in `tests/validation/never_seen/first_predictions*.csv`,
are never edited; each new batch adds a part before any of its rows joins a fit.
"""

import csv
from collections.abc import Iterable, Mapping
from math import log
from pathlib import Path

from gpuplan.calibration.inference.labels import inference_labels, range_kind, range_regime
from gpuplan.calibration.inference.novelty import novelty_of
from gpuplan.calibration.inference.ranges import Line
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.power.serving import POWER_METRICS
from gpuplan.studies.validation.figures import METRICS, TAIL_METRICS
from gpuplan.studies.validation.inference_table import benchmark_of

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "validation" / "never_seen"
TABLE = ROOT / "src" / "gpuplan" / "calibration" / "data" / "measured" / "llm_inference.csv"
Row = dict[str, str]
ANY = "any"  # the regime of power: one cell


def rows_of(path: Path) -> list[Row]:
    """The rows of a table of this repository."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def later_figures() -> list[Row]:
    """First predictions of the rows published after the first table, as they were made."""
    return rows_of(FOLDER / "first_predictions_later.csv")


def later_lines(figures: Iterable[Row], *, metrics: Iterable[str] = METRICS) -> list[Line]:
    """Lines of the later rows; percentiles are told from means and stand aside.

    Figures that cannot be right are in no table, and say nothing of ranges.
    """
    table = {row["id"]: row for row in rows_of(TABLE)}
    return [
        _line(table[row["id"]], row["metric"], row["novelty"], _log_ratio(row), group=row["group"])
        for row in possible_figures(figures, metrics=metrics)
    ]


def possible_figures(figures: Iterable[Row], *, metrics: Iterable[str] = METRICS) -> list[Row]:
    """Those of these metrics whose rows the table still holds."""
    table, wanted = {row["id"]: row for row in rows_of(TABLE)}, set(metrics) - set(TAIL_METRICS)
    return [row for row in figures if row["metric"] in wanted and _is_kept(table, row)]


def _is_kept(table: Mapping[str, Row], figure: Row) -> bool:
    row, metric = table.get(figure["id"]), figure["metric"]
    return row is not None and (metric not in METRICS or bool(row[_column(metric)]))


def _column(metric: str) -> str:
    return f"measured_{metric}"


def never_seen_lines(known: Mapping[str, frozenset[str]]) -> list[Line]:
    """Lines of sources that no fit ever held."""
    table = {row["id"]: row for row in rows_of(FOLDER / "llm_inference.csv")}
    found = []
    for first in rows_of(FOLDER / "first_predictions.csv"):
        row, metric = table.get(first["id"], {}), first["metric"]
        measured = row.get(_column(metric))
        if measured and metric in METRICS and metric not in TAIL_METRICS:
            ratio = log(float(measured) / float(first["value"]))
            found.append(_line(row, metric, "", ratio, known=known))
    return found


def _log_ratio(row: Row) -> float:
    return log(float(row["measured"]) / float(row["predicted"]))


def _line(
    row: Row,
    metric: str,
    novelty: str,
    log_ratio: float,
    *,
    group: str = "",
    known: Mapping[str, frozenset[str]] | None = None,
) -> Line:
    setup = serving_setup(row)
    labels = inference_labels(setup, benchmark=benchmark_of(row))
    regime = setup.load.regime
    name = setup.model.name
    group = group or f"{row['source']}|{row['model']}|{row['accelerator']}"
    novelty = novelty or novelty_of(known or {}, labels, model=name, regime=regime).kind
    where = ANY if metric in POWER_METRICS else range_regime(labels, setup.load)
    return Line(metric, where, range_kind(labels), group, novelty, log_ratio)
