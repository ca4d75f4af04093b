"""How predictions compare with measurements: the six figures, by metric and by group."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuplan.domain.calibration.validation import MetricErrors, ValidationReport
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.provenance import SCHEMA_VERSION

COLUMNS = ("metric", "rows", "median", "mean", "p90", "bias", "in range")
MOST_REFUSED = 12


def validate_sheet(report: ValidationReport, *, group: str = "regime") -> Sheet:
    """The report, ready to show, split by one group."""
    head = f"{report.kind}: {report.n_covered} of {report.n_rows} rows predicted"
    tables = [_metrics_table("All rows", report.metrics), _group_table(report, group)]
    for split, metrics in (report.cross or {}).items():
        tables.append(_metrics_table(f"{split} left out of the fit", metrics))
    refused = _reasons(report.refused)
    return Sheet(
        document=_document(report),
        tables=tuple(tables),
        head=head,
        remarks=(
            ("Not predicted:", refused),
            ("Errors are shares of the measurement; in range: inside the 80 % range.", ()),
        ),
    )


def _reasons(refused: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Every reason once, the most frequent first, with its rows."""
    rows: dict[str, list[str]] = {}
    for row, why in refused:
        # The first line only counts the errors.
        rows.setdefault(why.rpartition("\n")[2].strip(), []).append(row)
    ordered = sorted(rows.items(), key=lambda item: -len(item[1]))
    lines = [f"{len(ids)} x {why} (first: {ids[0] or 'no id'})" for why, ids in ordered]
    n_more = sum(len(ids) for _, ids in ordered[MOST_REFUSED:])
    more = [f"{n_more} more for {len(ordered) - MOST_REFUSED} other reasons"] if n_more else []
    return (*lines[:MOST_REFUSED], *more)


def _document(report: ValidationReport) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "kind": report.kind,
        "rows": report.n_rows,
        "covered": report.n_covered,
        "metrics": _errors(report.metrics),
        "by": {
            group: {value: _errors(metrics) for value, metrics in values.items()}
            for group, values in report.by.items()
        },
        "refused": [{"id": row, "reason": why} for row, why in report.refused],
    }
    if report.cross is not None:
        document["cross"] = {split: _errors(found) for split, found in report.cross.items()}
    return document


def _errors(metrics: Mapping[str, MetricErrors]) -> dict[str, dict[str, float]]:
    return {
        metric: {
            "n": e.n,
            "median_ape": e.median_ape,
            "mape": e.mape,
            "p90_ape": e.p90_ape,
            "bias": e.bias,
            "range_coverage": e.range_coverage,
        }
        for metric, e in metrics.items()
    }


def _metrics_table(title: str, metrics: Mapping[str, MetricErrors]) -> Table:
    rows = tuple((metric, *_cells(errors)) for metric, errors in metrics.items())
    return Table(title=title, columns=COLUMNS, rows=rows, right=COLUMNS[1:])


def _group_table(report: ValidationReport, group: str) -> Table:
    rows = tuple(
        (value or "–", metric, *_cells(errors))
        for value, metrics in report.by.get(group, {}).items()
        for metric, errors in metrics.items()
    )
    return Table(title=f"By {group}", columns=(group, *COLUMNS), rows=rows, right=COLUMNS[1:])


def _cells(errors: MetricErrors) -> tuple[str, ...]:
    shares = (errors.median_ape, errors.mape, errors.p90_ape)
    return (
        str(errors.n),
        *(f"{100 * share:.1f} %" for share in shares),
        f"{100 * errors.bias:+.1f} %",
        f"{100 * errors.range_coverage:.0f} %",
    )
