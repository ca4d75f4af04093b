"""A refit to a user's runs as a document, and as tables: errors before and after, what moved."""

from collections.abc import Mapping
from typing import Any

from gpuplan.domain.calibration.runs import CalibrationOutcome, MovedConstant
from gpuplan.domain.calibration.validation import MetricErrors
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.formats import count, frac
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document

Document = dict[str, Any]

VERDICTS = {
    "better": "The refit predicts runs that it has not seen better than the package does.",
    "no better": "The refit predicts runs that it has not seen no better than the package does: "
    "keep the package's constants.",
    "too few rows": "Too few runs to say whether the refit helps: give runs under at least three "
    "different conditions.",
}
MOST_MOVES = 20


def calibrate_sheet(outcome: CalibrationOutcome, *, written: str = "") -> Sheet:
    """The outcome, ready to show; `written` names the file that holds it."""
    moved = _moved_table(outcome.moved[:MOST_MOVES])
    return Sheet(
        document=calibrate_document(outcome, written=written),
        tables=tuple(t for t in (_error_table(outcome), moved) if t.rows),
        whole_tables=(_error_table(outcome), _moved_table(outcome.moved)),
        head=_head(outcome, written),
        remarks=(
            ("Told:", outcome.told),
            ("Left out:", tuple(f"{id_}: {' '.join(why.split())}" for id_, why in outcome.refused)),
            ("Assumed:", assumption_lines(outcome.assumptions)),
        ),
    )


def calibrate_document(outcome: CalibrationOutcome, *, written: str = "") -> Document:
    """The machine-readable outcome; errors are fractions."""
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": outcome.verdict,
        "calibration_version": outcome.calibration.version,
        "written": written or None,
        "n_rows": outcome.n_rows,
        "n_conditions": outcome.n_conditions,
        "before": _errors_document(outcome.before),
        "after_left_out": _errors_document(outcome.after),
        "moved": [
            {
                "constant": m.name,
                "where": m.label,
                "before": m.values[0],
                "after": m.values[1],
                "change_frac": m.change_frac,
            }
            for m in outcome.moved
        ],
        "left_out": [{"id": id_, "reason": reason} for id_, reason in outcome.refused],
        "told": list(outcome.told),
        "assumptions": assumptions_document(outcome.assumptions),
    }


def _head(outcome: CalibrationOutcome, written: str) -> str:
    runs = f"{count(outcome.n_rows)} runs under {count(outcome.n_conditions)} conditions. "
    file = f" Written to {written}." if written else " Nothing is written: give --out FILE."
    return runs + VERDICTS[outcome.verdict] + file


def _errors_document(errors: Mapping[str, MetricErrors]) -> Document:
    return {
        metric: {
            "n": of.n,
            "median_ape": of.median_ape,
            "mape": of.mape,
            "p90_ape": of.p90_ape,
            "bias": of.bias,
            "range_coverage": of.range_coverage,
        }
        for metric, of in errors.items()
    }


def _error_table(outcome: CalibrationOutcome) -> Table:
    heads = (
        "metric",
        "runs",
        "before",
        "after",
        "bias",
        "bias then",
        "in range",
        "then",
    )
    rows = []
    for metric, old in sorted(outcome.before.items()):
        new = outcome.after.get(metric)
        rows.append(
            (
                metric,
                count(old.n),
                frac(old.median_ape),
                frac(new.median_ape) if new else "",
                _signed(old.bias),
                _signed(new.bias) if new else "",
                frac(old.range_coverage),
                frac(new.range_coverage) if new else "",
            )
        )
    title = "Median error of your runs; after: each run predicted by a refit without it"
    return Table(title=title, columns=heads, rows=tuple(rows), right=heads[1:])


def _moved_table(moved: tuple[MovedConstant, ...]) -> Table:
    heads = ("constant", "where", "before", "after", "change")
    rows = tuple(
        (m.name, m.label, f"{m.values[0]:.4g}", f"{m.values[1]:.4g}", _signed(m.change_frac))
        for m in moved
    )
    return Table(title="What moved", columns=heads, rows=rows, right=heads[2:])


def _signed(share: float) -> str:
    return f"{100 * share:+.1f} %"
