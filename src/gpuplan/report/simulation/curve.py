"""Precision and recall over the fleet's size as a document and a table."""

from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.simulation.simulation import FleetSizeCurve, FleetTried
from gpuplan.report.prediction.fit import precision_name
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import HOUR, MS


def curve_sheet(curve: FleetSizeCurve) -> Sheet:
    """One curve, ready to show."""
    return Sheet(
        document=curve_document(curve),
        tables=(_table(curve),),
        head=_head(curve),
        remarks=(
            ("Read as:", _lines(curve)),
            ("Assumed:", assumption_lines(curve.assumptions)),
        ),
    )


def curve_document(curve: FleetSizeCurve) -> dict[str, Any]:
    """The machine-readable curve."""
    return {
        "schema_version": SCHEMA_VERSION,
        "model": curve.setup.model.name,
        "accelerator": curve.setup.accelerator.id,
        "tp": curve.setup.layout.tp,
        "slo_s": {"ttft": curve.slo.ttft_s, "tpot": curve.slo.tpot_s, "e2e": curve.slo.e2e_s},
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
        "assumptions": assumptions_document(curve.assumptions),
    }


def _point(point: FleetTried) -> dict[str, Any]:
    return {
        "replicas": point.n_replicas,
        "busy_precision": point.precision_frac,
        "recall": point.recall_frac,
        "busy": point.busy_frac,
        "ttft_p99_s": point.ttft_p99_s,
        "overloaded": point.is_overloaded,
        "paid_gpu_h": point.paid_accelerator_s / HOUR,
        "n_late": point.n_late,
    }


def _cheapest(curve: FleetSizeCurve) -> FleetTried:
    place = min(range(len(curve.points)), key=lambda k: curve.cost_usd[k])
    return curve.points[place]


def _head(curve: FleetSizeCurve) -> str:
    setup, best = curve.setup, curve.points[curve.best]
    return (
        f"{setup.model.name} in {precision_name(setup.storage)} on {setup.layout.tp} "
        f"{setup.accelerator.name} a replica: {best.n_replicas} replicas balance waste and delay "
        f"(F {100 * curve.f_frac[curve.best]:.1f} % at beta {curve.beta_ratio:.2f})"
    )


def _table(curve: FleetSizeCurve) -> Table:
    rows = tuple(
        (
            ("→ " if place == curve.best else "  ") + str(point.n_replicas),
            f"{100 * curve.precision_frac[place]:.1f} %",
            f"{100 * point.recall_frac:.1f} %",
            f"{100 * curve.f_frac[place]:.1f} %",
            f"{100 * point.busy_frac:.0f} %",
            "?" if point.ttft_p99_s is None else f"{point.ttft_p99_s / MS:,.0f}",
            f"{curve.cost_usd[place]:,.2f}",
            "overloaded" if point.is_overloaded else "",
        )
        for place, point in enumerate(curve.points)
    )
    columns = ("replicas", "precision", "recall", "F", "busy", "TTFT p99 ms", "cost USD", "")
    return Table(
        title="Precision and recall over the fleet's size",
        columns=columns,
        rows=rows,
        right=columns[:-1],
    )


def _lines(curve: FleetSizeCurve) -> tuple[str, ...]:
    waste, delay = curve.waste_usd_per_accelerator_s * HOUR, curve.delay_usd_per_request
    each = curve.useful_accelerator_s_per_request
    cheapest = _cheapest(curve).n_replicas
    return (
        f"precision: share of the paid GPU time that kept requests need, {each:,.3f} GPU-seconds "
        "each: what they take in the size that batches best",
        "recall: share of the requests served within the objective",
        f"beta² = cost of missed work / cost of wasted time = {delay:g} USD a late request / "
        f"({waste:g} USD a GPU-hour x {each:,.3f} GPU-seconds a request) = "
        f"{curve.beta_ratio**2:,.2f}",
        f"cost: wasted GPU time and late requests of this load; least at {cheapest} replicas",
    )
