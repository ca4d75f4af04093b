"""Predictions against measurements, and a refit to a user's runs: errors, bias, what moved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.domain.calibration.runs import CalibrationOutcome, MovedConstant
from gpuplan.domain.calibration.validation import MetricErrors, ValidationReport
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick, result_sheet
from gpuplan.report.formats import count, frac, percent
from gpuplan.report.table import table

ERRORS = ("n", "median_ape", "mape", "p90_ape", "bias", "range_coverage")
MOST_REFUSED = 12
MOST_MOVES = 20
VERDICTS = {
    "better": "The refit predicts held-out runs better than the package does.",
    "no better": "The refit predicts held-out runs no better than the package does: "
    "keep the package's constants.",
    "too few rows": "Too few runs to say whether the refit helps: give runs under at least three "
    "different conditions.",
}
Row = tuple[str, str, MetricErrors]  # group, metric, errors


def validate_sheet(report: ValidationReport, *, group: str = "regime") -> Sheet:
    """The report, ready to show, split by one group."""
    body: Document = {
        **pick(report, "kind", rows="n_rows", covered="n_covered"),
        "metrics": _errors(report.metrics),
        "by": {
            name: {value: _errors(metrics) for value, metrics in values.items()}
            for name, values in report.by.items()
        },
        "refused": [{"id": row, "reason": why} for row, why in report.refused],
    }
    if report.cross is not None:
        body["cross"] = {split: _errors(found) for split, found in report.cross.items()}
    return result_sheet(
        body,
        _validation_tables(report, group),
        head=f"{report.kind}: {report.n_covered} of {report.n_rows} rows predicted",
        remarks=[
            ("Notes:", report.remarks),
            ("Not predicted:", _reasons(report.refused)),
            (
                "How errors are counted:",
                ("as shares of the measurement; in range: inside the 80 % range",),
            ),
        ],
    )


def _validation_tables(report: ValidationReport, group: str) -> Iterator[Table]:
    yield _error_table("All rows", [("", m, e) for m, e in report.metrics.items()])
    rows = [
        (value or "–", metric, errors)
        for value, metrics in report.by.get(group, {}).items()
        for metric, errors in metrics.items()
    ]
    yield _error_table(f"By {group}", rows, group=group)
    for split, metrics in (report.cross or {}).items():
        yield _error_table(f"Held out by {split}", [("", m, e) for m, e in metrics.items()])


def _error_table(title: str, rows: Sequence[Row], *, group: str = "") -> Table:
    columns = {
        group: lambda row: row[0],
        "metric": lambda row: row[1],
        ">rows": lambda row: str(row[2].n),
        ">median": lambda row: frac(row[2].median_ape),
        ">mean": lambda row: frac(row[2].mape),
        ">p90": lambda row: frac(row[2].p90_ape),
        ">bias": lambda row: _signed(row[2].bias),
        ">in range": lambda row: percent(row[2].range_coverage),
    }
    if not group:
        del columns[group]
    return table(title, rows, columns)


def _reasons(refused: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Every reason once, the most frequent first, with its rows."""
    rows: dict[str, list[str]] = {}
    for row, why in refused:
        # The first line only counts the errors.
        rows.setdefault(why.rpartition("\n")[2].strip(), []).append(row)
    ordered = sorted(rows.items(), key=lambda item: -len(item[1]))
    lines = [f"{len(ids)} × {why} (first: {ids[0] or 'no id'})" for why, ids in ordered]
    n_more = sum(len(ids) for _, ids in ordered[MOST_REFUSED:])
    more = [f"{n_more} more for {len(ordered) - MOST_REFUSED} other reasons"] if n_more else []
    return (*lines[:MOST_REFUSED], *more)


def _errors(metrics: Mapping[str, MetricErrors]) -> Document:
    return {metric: pick(errors, *ERRORS) for metric, errors in metrics.items()}


def calibrate_sheet(outcome: CalibrationOutcome, *, written: str = "") -> Sheet:
    """The refit, ready to show; `written` names the file that holds it."""
    errors = _refit_table(outcome)
    sheet = result_sheet(
        _refit_body(outcome, written),
        [errors, _moved_table(outcome.moved[:MOST_MOVES])],
        head=_refit_head(outcome, written),
        remarks=[
            ("Notes:", outcome.remarks),
            ("Rejected:", [f"{run}: {' '.join(why.split())}" for run, why in outcome.refused]),
        ],
        assumptions=outcome.assumptions,
    )
    return replace(sheet, whole_tables=(errors, _moved_table(outcome.moved)))


def _refit_body(outcome: CalibrationOutcome, written: str) -> Document:
    """Errors are fractions."""
    return {
        **pick(outcome, "verdict", "n_rows", "n_conditions", told="remarks"),
        "calibration_version": outcome.calibration.version,
        "written": written or None,
        "before": _errors(outcome.before),
        "after_left_out": _errors(outcome.after),
        "moved": [
            {
                **pick(m, "change_frac", constant="name", where="label"),
                "before": m.values[0],
                "after": m.values[1],
            }
            for m in outcome.moved
        ],
        "left_out": [{"id": run, "reason": reason} for run, reason in outcome.refused],
    }


def _refit_head(outcome: CalibrationOutcome, written: str) -> str:
    runs = f"{count(outcome.n_rows)} runs under {count(outcome.n_conditions)} conditions. "
    file = f" Written to {written}." if written else " Nothing is written: give --out FILE."
    return runs + VERDICTS[outcome.verdict] + file


def _refit_table(outcome: CalibrationOutcome) -> Table:
    rows = [(name, old, outcome.after.get(name)) for name, old in sorted(outcome.before.items())]
    columns = {
        "metric": lambda row: row[0],
        ">runs": lambda row: count(row[1].n),
        ">before": lambda row: frac(row[1].median_ape),
        ">after": lambda row: frac(row[2].median_ape) if row[2] else "",
        ">bias before": lambda row: _signed(row[1].bias),
        ">bias after": lambda row: _signed(row[2].bias) if row[2] else "",
        ">in range before": lambda row: frac(row[1].range_coverage),
        ">in range after": lambda row: frac(row[2].range_coverage) if row[2] else "",
    }
    title = "Median error of your runs; after: each run predicted by a refit that holds it out"
    return table(title, rows, columns)


def _moved_table(moved: Sequence[MovedConstant]) -> Table:
    columns = {
        "constant": lambda m: m.name,
        "where": lambda m: m.label,
        ">before": lambda m: f"{m.values[0]:.4g}",
        ">after": lambda m: f"{m.values[1]:.4g}",
        ">change": lambda m: _signed(m.change_frac),
    }
    return table("What moved", moved, columns)


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %"
