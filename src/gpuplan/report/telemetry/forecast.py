"""A forecast, ready to show: demand ahead, how the method did on the past, when to order."""

from datetime import UTC, datetime

from gpuplan.domain.columns import Floats
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.telemetry.forecast import OrderAdvice, Outlook
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.table import table
from gpuplan.units import HOUR, WEEK

TITLE = "When to order: growth per month, times in weeks, utilization at arrival, GPUs"
N_ROWS = 24
METRIC_NAMES = {
    "allocated_frac": "GPU allocation",
    "gpu_util_frac": "GPU utilization",
    "sm_active_frac": "SM activity",
    "tensor_active_frac": "tensor core activity",
    "dram_active_frac": "memory bandwidth utilization",
}
EPOCH_S = 1e9  # times above it are dates, below it spans since the first sample


def forecast_sheet(found: Outlook) -> Sheet:
    """The outlook in both forms."""
    series = found.forecast.series
    gaps = [f"{series.n_filled} steps without samples were interpolated"] if series.n_filled else []
    if series.n_before_gap:
        gaps.append(f"{series.n_before_gap} readings before a gap of over two weeks are not used")
    return result_sheet(
        _body(found),
        [_future(found), _record(found), _growth(found), _orders(found)],
        head=_head(found),
        remarks=[("Warnings:", [*found.forecast.warnings, *gaps, *_no_orders(found)])],
        assumptions=(*found.forecast.assumptions, *found.assumptions),
    )


def _no_orders(found: Outlook) -> list[str]:
    return [f"no order advice: {found.no_advice}"] if found.no_advice else []


def _head(found: Outlook) -> str:
    if len(found.advice) > 1:
        return _order_line(found.advice[1])
    f = found.forecast
    k = int(f.middle.argmax())
    low, middle, high = (_shown(found, float(level[k])) for level in (f.low, f.middle, f.high))
    return f"{_name(found)} peaks at {middle} ({low} … {high}) at {_when(float(f.at_s[k]))}"


def _name(found: Outlook) -> str:
    """The series as people call it: a share is a utilization, not a fraction in a column."""
    name = found.forecast.series.name
    return METRIC_NAMES.get(name, name)


def _shown(found: Outlook, level: float) -> str:
    return f"{level:.0%}" if found.forecast.series.name.endswith("_frac") else f"{level:,.4g}"


def _level(found: Outlook, column: Floats, begin: int, n: int) -> str:
    return _shown(found, float(column[begin : begin + n].mean()))


def _order_line(row: OrderAdvice) -> str:
    if row.trigger_in_s is None:
        return "the trigger is not reached at the expected growth"
    weeks = row.trigger_in_s / WEEK
    spare = f"; safety stock {row.n_safety_stock} GPUs" if row.n_safety_stock else ""
    if row.order_in_s == 0.0:
        return (
            f"order now: the trigger is reached in {weeks:.1f} weeks, before an order arrives; "
            f"bridge {row.bridge_s / WEEK:.1f} weeks{spare}"
        )
    by = (
        f"by {_day(row.order_at_s)}" if row.order_at_s else f"within {_weeks(row.order_in_s)} weeks"
    )
    return f"order {by}: trigger in {weeks:.1f} weeks{spare}"


def _day(at_s: float | None) -> str | None:
    return None if at_s is None else datetime.fromtimestamp(at_s, tz=UTC).date().isoformat()


def _weeks(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds / WEEK:.1f}"


def _future(found: Outlook) -> Table:
    f = found.forecast
    each = max(1, -(-len(f.at_s) // N_ROWS))
    columns = {
        "time": lambda k: _when(float(f.at_s[k])),
        ">expected": lambda k: _level(found, f.middle, k, each),
        ">80 % range": lambda k: (
            f"{_level(found, f.low, k, each)} … {_level(found, f.high, k, each)}"
        ),
    }
    return table(f"{_name(found)} ahead, {f.method}", range(0, len(f.at_s), each), columns)


def _when(at_s: float) -> str:
    if at_s < EPOCH_S:
        return f"{at_s / HOUR:,.1f} h"
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%d %H:%M")


def _record(found: Outlook) -> Table:
    columns = {
        "method": lambda row: row.method,
        ">error (MASE)": lambda row: f"{row.mase_ratio:.3f}",
        ">origins": lambda row: str(row.n_origins),
    }
    coverage = found.forecast.range_held_frac
    cover = "" if coverage is None else f"; the 80 % range covered {coverage:.0%}"
    return table(f"Backtest{cover}", found.forecast.backtest, columns)


def _orders(found: Outlook) -> Table:
    columns = {
        ">growth": lambda row: f"{row.growth_frac_per_month:+.1%}",
        ">trigger": lambda row: _weeks(row.trigger_in_s),
        ">order by": lambda row: _day(row.order_at_s) or _weeks(row.order_in_s),
        ">bridge": lambda row: _weeks(row.bridge_s),
        ">if late": lambda row: _weeks(row.late.bridge_s) if row.late else "",
        ">at arrival": lambda row: f"{row.use_at_arrival_frac:.0%}",
        ">safety": lambda row: str(row.n_safety_stock),
        ">in a year": lambda row: str(row.n_needed_in_a_year),
    }
    return table(TITLE, found.advice, columns)


def _growth(found: Outlook) -> Table:
    """The growth models on the weekly peaks of the past, best first."""
    columns = {
        "growth model": lambda row: row.model,
        ">error of peaks": lambda row: f"{row.error_frac:.1%}",
        ">origins": lambda row: str(row.n_origins),
    }
    return table("Growth models, back-tested", found.trend.record if found.trend else (), columns)


def _order(row: OrderAdvice) -> Document:
    keys = ("trigger_in_s", "order_in_s", "bridge_s", "n_needed_in_a_year")
    renamed = {"growth_per_month": "growth_frac_per_month", "use_at_arrival": "use_at_arrival_frac"}
    late = row.late
    return {
        **pick(row, *keys, **renamed),
        "order_by": _day(row.order_at_s),
        "bridge_weeks": row.bridge_s / WEEK,
        "safety_stock": row.n_safety_stock,
        "reorder_at_utilization": row.reorder_at_frac,
        "late_delivery": late
        and {
            "lead_weeks": late.lead_s / WEEK,
            "bridge_weeks": late.bridge_s / WEEK,
            "utilization_at_arrival": late.use_at_arrival_frac,
        },
    }


def _body(found: Outlook) -> Document:
    f = found.forecast
    trend = {"per_month": "per_month_frac", "low": "low_frac", "high": "high_frac"}
    return {
        **pick(f, "method", "at_s", "low", "high", "warnings", expected="middle"),
        **pick(f.series, "step_s", metric="name"),
        "backtest": {row.method: row.mase_ratio for row in f.backtest},
        "n_origins": f.backtest[0].n_origins if f.backtest else 0,
        "range_held": f.range_held_frac,
        "trend": found.trend and pick(found.trend, "n_weeks", "model", **trend),
        "growth_models": pick_each(
            found.trend.record if found.trend else (), "model", "n_origins", error="error_frac"
        ),
        "peak_use": found.peak_use_frac,
        "orders": [_order(row) for row in found.advice],
        "no_orders_because": found.no_advice,
    }
