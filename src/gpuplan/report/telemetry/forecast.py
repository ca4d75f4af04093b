"""A forecast, ready to show: what comes, how the method did on the past, when to order."""

from datetime import UTC, datetime
from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.telemetry.forecast import OrderAdvice, Outlook
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import WEEK

N_ROWS = 24


def forecast_sheet(found: Outlook) -> Sheet:
    """The outlook in both forms."""
    tables = [_future(found), _record(found)]
    if found.advice:
        tables.append(_orders(found))
    warnings = list(found.forecast.warnings)
    if found.forecast.series.n_filled:
        warnings.append(
            f"{found.forecast.series.n_filled} steps without samples were drawn through"
        )
    return Sheet(
        document=_document(found),
        tables=tuple(tables),
        head=_head(found),
        remarks=(
            ("Mind:", tuple(warnings)),
            ("Assumed:", assumption_lines((*found.forecast.assumptions, *found.assumptions))),
        ),
    )


def _head(found: Outlook) -> str:
    middle = found.advice[1] if len(found.advice) > 1 else None
    if middle is not None:
        return _order_line(middle)
    forecast = found.forecast
    return f"{forecast.series.name}: peak {forecast.peak:,.4g} expected ({forecast.method})"


def _order_line(row: OrderAdvice) -> str:
    if row.trigger_in_s is None:
        return "the trigger is not reached at the expected growth"
    weeks = row.trigger_in_s / WEEK
    if row.order_in_s == 0.0:
        return (
            f"order now: the trigger comes in {weeks:.1f} weeks, before an order can; "
            f"bridge {row.bridge_s / WEEK:.1f} weeks"
        )
    return f"order within {(row.order_in_s or 0.0) / WEEK:.1f} weeks: trigger in {weeks:.1f}"


def _future(found: Outlook) -> Table:
    f = found.forecast
    each = max(1, -(-len(f.at_s) // N_ROWS))
    rows = tuple(
        (
            _when(found, float(f.at_s[k])),
            f"{f.middle[k : k + each].mean():,.4g}",
            f"{f.low[k : k + each].mean():,.4g} … {f.high[k : k + each].mean():,.4g}",
        )
        for k in range(0, len(f.at_s), each)
    )
    title = f"{f.series.name} ahead, {f.method}"
    columns = ("time", "expected", "80 % range")
    return Table(title=title, columns=columns, rows=rows, right=columns[1:])


def _when(found: Outlook, at_s: float) -> str:
    if at_s < 1e9:
        return f"{at_s / 3600.0:,.1f} h"
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%d %H:%M")


def _record(found: Outlook) -> Table:
    held = found.forecast.range_held_frac
    rows = tuple(
        (row.method, f"{row.mase_ratio:.3f}", str(row.n_origins)) for row in found.forecast.backtest
    )
    title = "Record on the past"
    if held is not None:
        title += f"; the 80 % range held {held:.0%}"
    columns = ("method", "error (MASE)", "origins")
    return Table(title=title, columns=columns, rows=rows, right=columns[1:])


def _orders(found: Outlook) -> Table:
    rows = tuple(
        (
            f"{row.growth_frac_per_month:+.1%}",
            "never" if row.trigger_in_s is None else f"{row.trigger_in_s / WEEK:.1f}",
            "never" if row.order_in_s is None else f"{row.order_in_s / WEEK:.1f}",
            f"{row.bridge_s / WEEK:.1f}",
            f"{row.use_at_arrival_frac:.0%}",
            str(row.n_needed_in_a_year),
        )
        for row in found.advice
    )
    columns = (
        "growth/month",
        "trigger, wk",
        "order, wk",
        "bridge, wk",
        "at arrival",
        "in a year",
    )
    return Table(title="When to order", columns=columns, rows=rows, right=columns)


def _document(found: Outlook) -> dict[str, Any]:
    f = found.forecast
    return {
        "schema_version": SCHEMA_VERSION,
        "metric": f.series.name,
        "step_s": f.series.step_s,
        "method": f.method,
        "at_s": f.at_s.tolist(),
        "expected": f.middle.tolist(),
        "low": f.low.tolist(),
        "high": f.high.tolist(),
        "backtest": {row.method: row.mase_ratio for row in f.backtest},
        "n_origins": f.backtest[0].n_origins if f.backtest else 0,
        "range_held": f.range_held_frac,
        "warnings": list(f.warnings),
        "trend": None
        if found.trend is None
        else {
            "per_month": found.trend.per_month_frac,
            "low": found.trend.low_frac,
            "high": found.trend.high_frac,
            "n_weeks": found.trend.n_weeks,
        },
        "peak_use": found.peak_use_frac,
        "orders": [
            {
                "growth_per_month": row.growth_frac_per_month,
                "trigger_in_s": row.trigger_in_s,
                "order_in_s": row.order_in_s,
                "bridge_s": row.bridge_s,
                "use_at_arrival": row.use_at_arrival_frac,
                "n_needed_in_a_year": row.n_needed_in_a_year,
            }
            for row in found.advice
        ],
        "assumptions": assumptions_document((*f.assumptions, *found.assumptions)),
    }
