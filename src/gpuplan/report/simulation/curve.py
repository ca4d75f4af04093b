"""Precision and recall over the fleet's size as a document and a table."""

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.simulation import FleetSizeCurve, FleetTried
from gpuplan.report.document import Document, pick, result_sheet
from gpuplan.report.formats import frac, percent
from gpuplan.report.prediction.setup import precision_name
from gpuplan.report.simulation.document import slo_document
from gpuplan.report.table import table
from gpuplan.units import HOUR, MS


def curve_sheet(curve: FleetSizeCurve) -> Sheet:
    """One curve, ready to show."""
    return result_sheet(
        _body(curve),
        [_table(curve)],
        head=_head(curve),
        remarks=[("Definitions:", _lines(curve))],
        assumptions=curve.assumptions,
    )


def _body(curve: FleetSizeCurve) -> Document:
    setup = curve.setup
    return {
        **pick(setup, model="model.name", accelerator="accelerator.id", tp="layout.tp"),
        "slo_s": slo_document(curve.slo),
        "cost_waste_usd_per_gpu_h": curve.waste_usd_per_accelerator_s * HOUR,
        "cost_delay_usd_per_request": curve.delay_usd_per_request,
        "useful_gpu_s_per_request": curve.useful_accelerator_s_per_request,
        "beta": curve.beta_ratio,
        "points": [
            {
                **_point(point),
                "precision": curve.precision_frac[place],
                "f": curve.f_frac[place],
                "cost_usd": curve.cost_usd[place],
            }
            for place, point in enumerate(curve.points)
        ],
        "best_replicas": curve.points[curve.best].n_replicas,
        "cheapest_replicas": _cheapest(curve).n_replicas,
        "marginal": _marginal(curve),
    }


def _marginal(curve: FleetSizeCurve) -> Document:
    """What one size more and one less would cost beyond the cheapest; None: it was not tried."""
    at = curve.points.index(_cheapest(curve))
    costs, last = curve.cost_usd, len(curve.points) - 1
    return {
        "one_more_usd": costs[at + 1] - costs[at] if at < last else None,
        "one_less_usd": costs[at - 1] - costs[at] if at > 0 else None,
    }


def _point(point: FleetTried) -> Document:
    return {
        **pick(point, "ttft_p99_s", "n_late", replicas="n_replicas", recall="recall_frac"),
        **pick(point, busy="busy_frac", overloaded="is_overloaded"),
        "busy_precision": point.precision_frac,
        "paid_gpu_h": point.paid_accelerator_s / HOUR,
    }


def _cheapest(curve: FleetSizeCurve) -> FleetTried:
    place = min(range(len(curve.points)), key=lambda k: curve.cost_usd[k])
    return curve.points[place]


def _head(curve: FleetSizeCurve) -> str:
    setup, best = curve.setup, curve.points[curve.best]
    return (
        f"{setup.model.name} ({precision_name(setup.storage)}) on {setup.layout.tp} × "
        f"{setup.accelerator.name} per replica: {best.n_replicas} replicas balance waste and delay "
        f"(F {frac(curve.f_frac[curve.best])} at beta {curve.beta_ratio:.2f})"
    )


def _table(curve: FleetSizeCurve) -> Table:
    columns = {
        ">replicas": lambda row: ("→ " if row[0] == curve.best else "  ") + str(row[1].n_replicas),
        ">precision": lambda row: frac(curve.precision_frac[row[0]]),
        ">recall": lambda row: frac(row[1].recall_frac),
        ">F": lambda row: frac(curve.f_frac[row[0]]),
        ">GPU busy": lambda row: percent(row[1].busy_frac),
        ">TTFT p99 (ms)": lambda row: _ttft(row[1]),
        ">cost ($)": lambda row: f"{curve.cost_usd[row[0]]:,.2f}",
        "": lambda row: "overloaded" if row[1].is_overloaded else "",
    }
    return table("Precision and recall by fleet size", enumerate(curve.points), columns)


def _ttft(point: FleetTried) -> str:
    return "?" if point.ttft_p99_s is None else f"{point.ttft_p99_s / MS:,.0f}"


def _lines(curve: FleetSizeCurve) -> tuple[str, ...]:
    waste, delay = curve.waste_usd_per_accelerator_s * HOUR, curve.delay_usd_per_request
    each = curve.useful_accelerator_s_per_request
    cheapest = _cheapest(curve).n_replicas
    sides = {"one size more": "one_more_usd", "one less": "one_less_usd"}
    known = [(name, _marginal(curve)[key]) for name, key in sides.items()]
    margin = ", ".join(f"{name} ${usd:,.2f}" for name, usd in known if usd is not None)
    return (
        f"precision: share of the paid GPU time that requests within SLO need, {each:,.3f} "
        "GPU-seconds each: what they take in the size that batches best",
        "recall: share of the requests served within SLO",
        f"beta² = cost of missed work / cost of wasted time = ${delay:g} per late request / "
        f"(${waste:g} per GPU-hour × {each:,.3f} GPU-seconds per request) = "
        f"{curve.beta_ratio**2:,.2f}",
        f"cost: wasted GPU time and late requests of this load; least at {cheapest} replicas"
        + (f"; beyond it costs {margin}" if margin else ""),
    )
