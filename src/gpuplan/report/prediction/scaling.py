"""A speed-up curve with its knee, what causes the loss, and what helps more than accelerators."""

from math import isinf

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.scaling import ScaleCurve, ScalePoint
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.formats import count, percent
from gpuplan.report.table import table
from gpuplan.units import GB

BAR = 20  # cells of full efficiency
STRAIGHT_FRAC = 0.95  # efficiency from which the curve counts as a line


def scale_sheet(curve: ScaleCurve) -> Sheet:
    """The curve, ready to show."""
    remedies = {
        "change": lambda r: r.what,
        ">efficiency then": lambda r: percent(r.efficiency_frac),
    }
    body = {
        "knee": curve.knee,
        "states_bytes": round(curve.states_bytes),
        "points": [_point(point) for point in curve.points],
        "remedies": pick_each(curve.remedies, "what", "efficiency_frac"),
        "parallel": {
            "communication_to_compute": curve.communication_ratio,
            "serial_frac": curve.serial_frac,
        },
        "sensitivity": pick_each(curve.gains, "resource", "step_gain_frac", "worth_usd_per_month"),
        "next_spend": pick_each(curve.spends, "what", "buys", "speed_gain_frac"),
    }
    tables = [
        _curve_table(curve),
        table("Before adding accelerators", curve.remedies, remedies),
        _gain_table(curve),
        _spend_table(curve),
    ]
    return result_sheet(body, tables, head=_head(curve), assumptions=curve.assumptions)


def _head(curve: ScaleCurve) -> str:
    first, last = curve.points[0], curve.points[-1]
    if last.efficiency_frac >= STRAIGHT_FRAC:
        return f"speed grows in proportion up to {count(last.n_accelerators)} accelerators"
    return (
        f"{count(last.n_accelerators)} accelerators are {last.speedup_ratio:.1f} times as fast as "
        f"{count(first.n_accelerators)}, not {last.n_accelerators / first.n_accelerators:.0f} "
        f"times; {_knee(curve)}"
    )


def _knee(curve: ScaleCurve) -> str:
    if not curve.is_past_knee:
        return "every step still brings half of what it could"
    return f"beyond {count(curve.knee)} a doubling brings less than half of what it could"


def _gain_table(curve: ScaleCurve) -> Table:
    serial = "" if curve.serial_frac is None else f"; {percent(curve.serial_frac)} of it is serial"
    columns = {
        "10 % more of": lambda g: g.resource,
        ">step shorter by": lambda g: f"{g.step_gain_frac:.1%}",
        ">worth ($/month)": lambda g: (
            "" if g.worth_usd_per_month is None else f"{g.worth_usd_per_month:,.0f}"
        ),
    }
    ratio = f"communication over compute {curve.communication_ratio:.2f}"
    return table(f"Sensitivity at the largest number: {ratio}{serial}", curve.gains, columns)


def _spend_table(curve: ScaleCurve) -> Table:
    columns = {
        "the next $10,000 a month on": lambda s: s.what,
        "buys": lambda s: s.buys,
        ">faster by": lambda s: f"{s.speed_gain_frac:.0%}",
    }
    return table("What to spend on", curve.spends, columns)


def _point(point: ScalePoint) -> Document:
    usd = point.usd_per_percent
    return {
        **pick(point, "n_accelerators", "step_s", "compute_s", "efficiency_frac", "cause"),
        "speedup": point.speedup_ratio,
        "causes_s": dict(point.causes_s),
        "usd_per_h_per_percent": None if usd is None or isinf(usd) else usd,
    }


def _curve_table(curve: ScaleCurve) -> Table:
    columns = {
        ">accelerators": lambda p: count(p.n_accelerators),
        ">step (s)": lambda p: f"{p.step_s:.3f}",
        ">speed-up": lambda p: f"{p.speedup_ratio:.2f}",
        ">efficiency": lambda p: percent(p.efficiency_frac),
        "": lambda p: (
            "█" * round(BAR * p.efficiency_frac)
            + (" ← knee" if p.n_accelerators == curve.knee else "")
        ),
        "cause of the loss": lambda p: p.cause,
        ">$/h per %": _usd,
    }
    title = f"Speed-up; model states before sharding {curve.states_bytes / GB:,.1f} GB"
    return table(title, curve.points, columns)


def _usd(point: ScalePoint) -> str:
    if point.usd_per_percent is None:
        return "–"
    return "no gain" if isinf(point.usd_per_percent) else f"{point.usd_per_percent:.2f}"
