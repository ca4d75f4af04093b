"""Two measured runs as a sheet: figures that moved, and the versions that moved with them."""

from gpuplan.domain.calibration.compared import RunComparison
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.document import Document, pick_each, result_sheet
from gpuplan.report.formats import plural
from gpuplan.report.table import table


def runs_sheet(found: RunComparison) -> Sheet:
    """The comparison, ready to show."""
    n = sum(row.is_worse for row in found.rows)
    state = f"{plural(n, 'regression')} beyond {found.tolerance_frac:.0%}"
    return result_sheet(
        _body(found),
        [_figures(found), _versions(found)],
        head=f"{found.names[0]} to {found.names[1]}: {state}",
        remarks=[("Conditions of one run only:", found.unpaired)],
    )


def _body(found: RunComparison) -> Document:
    figures = ("condition", "metric", "change_frac", "is_worse")
    return {
        "before": found.names[0],
        "after": found.names[1],
        "regression": found.is_regression,
        "tolerance_frac": found.tolerance_frac,
        "rows": pick_each(found.rows, *figures, before="n_before", after="n_after"),
        "fingerprint_changes": pick_each(found.fingerprint, "what", "before", "after"),
        "unpaired": list(found.unpaired),
    }


def _figures(found: RunComparison) -> Table:
    columns = {
        "condition": lambda row: row.condition,
        "metric": lambda row: row.metric,
        ">before": lambda row: f"{row.n_before:,.4g}",
        ">after": lambda row: f"{row.n_after:,.4g}",
        ">change": lambda row: f"{row.change_frac:+.1%}",
        "": lambda row: "worse" if row.is_worse else "",
    }
    return table("Measured figures", found.rows, columns)


def _versions(found: RunComparison) -> Table:
    columns = {
        "fingerprint": lambda row: row.what,
        "before": lambda row: row.before,
        "after": lambda row: row.after,
    }
    return table("What changed with them", found.fingerprint, columns)
