"""A speed-up curve with its knee, what causes the loss, and what helps more than accelerators."""

from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.training.scaling import ScaleCurve, ScalePoint
from gpuplan.report.formats import count
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import GB

BAR = 20


def scale_sheet(curve: ScaleCurve) -> Sheet:
    """The curve, ready to show."""
    last = curve.points[-1]
    first = curve.points[0]
    head = (
        f"{count(last.n_accelerators)} devices are {last.speedup_ratio:.1f} times as fast as "
        f"{count(first.n_accelerators)}, not {last.n_accelerators / first.n_accelerators:.0f} "
        f"times; beyond {count(curve.knee)} a doubling brings less than half of what it could"
        if last.efficiency_frac < 0.95
        else f"the speed grows with the devices up to {count(last.n_accelerators)}"
    )
    tables = [_curve_table(curve)]
    if curve.remedies:
        tables.append(_remedy_table(curve))
    return Sheet(
        document=_document(curve),
        tables=tuple(tables),
        head=head,
        remarks=(("Assumed:", assumption_lines(curve.assumptions)),),
    )


def _document(curve: ScaleCurve) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "knee": curve.knee,
        "states_bytes": round(curve.states_bytes),
        "points": [_point(point) for point in curve.points],
        "remedies": [
            {"what": r.what, "efficiency_frac": r.efficiency_frac} for r in curve.remedies
        ],
        "assumptions": assumptions_document(curve.assumptions),
    }


def _point(point: ScalePoint) -> dict[str, Any]:
    usd = point.usd_per_percent
    return {
        "n_accelerators": point.n_accelerators,
        "step_s": point.step_s,
        "compute_s": point.compute_s,
        "speedup": point.speedup_ratio,
        "efficiency_frac": point.efficiency_frac,
        "cause": point.cause,
        "causes_s": dict(point.causes_s),
        "usd_per_h_per_percent": None if usd is None or usd == float("inf") else usd,
    }


def _curve_table(curve: ScaleCurve) -> Table:
    rows = []
    for point in curve.points:
        bar = "█" * round(BAR * point.efficiency_frac)
        knee = " ← knee" if point.n_accelerators == curve.knee else ""
        rows.append(
            (
                count(point.n_accelerators),
                f"{point.step_s:.3f}",
                f"{point.speedup_ratio:.2f}",
                f"{100 * point.efficiency_frac:.0f} %",
                f"{bar}{knee}",
                point.cause,
                _usd(point),
            )
        )
    return Table(
        title=f"Speed-up; states before sharding {curve.states_bytes / GB:,.1f} GB",
        columns=(
            "devices",
            "step s",
            "speed-up",
            "efficiency",
            "",
            "cause of the loss",
            "$/h per %",
        ),
        rows=tuple(rows),
        right=("devices", "step s", "speed-up", "efficiency", "$/h per %"),
    )


def _usd(point: ScalePoint) -> str:
    if point.usd_per_percent is None:
        return "–"
    return "no gain" if point.usd_per_percent == float("inf") else f"{point.usd_per_percent:.2f}"


def _remedy_table(curve: ScaleCurve) -> Table:
    rows = tuple((r.what, f"{100 * r.efficiency_frac:.0f} %") for r in curve.remedies)
    return Table(
        title="Before adding devices",
        columns=("change", "efficiency then"),
        rows=rows,
        right=("efficiency then",),
    )
