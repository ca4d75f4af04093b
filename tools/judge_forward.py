"""What ranges hold of rows of the next year, by constants of engines of the years before.

The year of a row is that of its engine's release. Constants are fitted to the engines of earlier
years; the rows of the year are predicted by them. `past` is a rule learned from such predictions
of the years before alone; `shipped` is today's rule, whose ledger holds rows of every year. The
form of the model was chosen with all rows in sight.

    python tools/judge_forward.py        writes tests/validation/never_seen/forward.csv
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from fits.ranges import learned
from ledger import FOLDER, TABLE
from validation_ranges import bootstrap, interval_score

from gpuplan.calibration.inference.ranges import Line
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.calibration.constants import RangeRule
from gpuplan.studies.validation.figures import TAIL_METRICS
from gpuplan.studies.validation.fit_inference import (
    Study,
    fit_study,
    known_labels,
    observed_line,
    study,
)
from gpuplan.studies.validation.inference_table import read_table

YEARS = (2024, 2025, 2026)
LEAST_ROWS = 30  # fewer say nothing
COLUMNS = (
    "year", "rule", "figure", "figures", "groups", "median_ape", "coverage", "low", "high",
    "groups_coverage", "width", "score",
)  # fmt: skip


def forward_lines(of: Study, year: int) -> list[Line]:
    """Rows of engines of a year, predicted by constants of earlier ones."""
    years = np.array([int(labels["generation"]) for labels in of.table.labels])[of.observed.row]
    before, metrics = years < year, of.observed.metric
    found = fit_study(of, before)
    known = known_labels(of, sorted(set(of.observed.row[before].tolist())))
    return [
        observed_line(of, int(of.observed.row[j]), str(metrics[j]), known, -found.residual[j])
        for j in np.flatnonzero((years == year) & ~np.isin(metrics, TAIL_METRICS)).tolist()
    ]


def judged(year: int, name: str, lines: Sequence[Line], rule: RangeRule) -> Iterator[list[object]]:
    """What a rule holds of these lines, by figure and in all."""
    cells: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        cells[line.cell.replace("|", ", ")].append(line)
    for cell, some in (*sorted(cells.items()), ("all", list(lines))):
        if len(some) >= LEAST_ROWS:
            yield [year, name, cell, *_figures(some, rule)]


def _figures(lines: Sequence[Line], rule: RangeRule) -> list[object]:
    error = np.array([line.log_ratio for line in lines])
    half = np.array([rule.half(line.keys) for line in lines])
    inside, names = np.abs(error) <= half, [line.group for line in lines]
    groups: dict[str, list[bool]] = defaultdict(list)
    for name, is_inside in zip(names, inside.tolist(), strict=True):
        groups[name].append(is_inside)
    shares = (
        100 * np.median(np.abs(np.expm1(-error))), 100 * inside.mean(), *bootstrap(inside, names),
        100 * np.mean([np.mean(each) for each in groups.values()]),
    )  # fmt: skip
    widths = (2 * half.mean(), interval_score(error, -half, half))
    return [len(lines), len(groups), *(f"{x:.1f}" for x in shares), *(f"{x:.2f}" for x in widths)]


def main() -> None:
    of, shipped = study(read_table(read_csv_rows(TABLE))), inference_calibration().ranges
    past: list[Line] = []
    rows: list[list[object]] = []
    for year in YEARS:
        lines = forward_lines(of, year)
        rows += judged(year, "shipped", lines, shipped)
        if past:
            rows += judged(year, "past", lines, learned(past))
        past += lines
        print(year, rows[-1], flush=True)
    with (FOLDER / "forward.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])


if __name__ == "__main__":
    main()
