"""How results show themselves in Python: the report room's functions, found by kind of result."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from gpuplan.domain.result import Result
from gpuplan.domain.sheet import Sheet

# Kind of result → the function of this package that makes its sheet.
SHEETS = {
    "AcceleratorRanking": "rank_sheet",
    "ActualComparison": "actual_sheet",
    "Answer": "plan_sheet",
    "CalibrationOutcome": "calibrate_sheet",
    "ClusterPlan": "cluster_plan_sheet",
    "ClusterSimulation": "cluster_sheet",
    "DesignedPlan": "design_sheet",
    "Diagnosis": "diagnose_sheet",
    "Fit": "fit_sheet",
    "FleetSimulation": "fleet_sheet",
    "FleetSizeCurve": "curve_sheet",
    "NetworkForecast": "network_sheet",
    "NetworkSimulation": "simulate_sheet",
    "Outlook": "forecast_sheet",
    "PrecisionComparison": "precisions_sheet",
    "Prediction": "predict_sheet",
    "ProbeAdvice": "probe_sheet",
    "Replanned": "replan_sheet",
    "Roofline": "roofline_sheet",
    "RunComparison": "runs_sheet",
    "RunForecast": "run_sheet",
    "ScaleCurve": "scale_sheet",
    "Simulation": "simulate_sheet",
    "StartEstimate": "eta_sheet",
    "StreamedSimulation": "simulate_sheet",
    "Survey": "survey_sheet",
    "SystemCheck": "check_sheet",
    "TrainingFit": "training_sheet",
    "ValidationReport": "validate_sheet",
    "Verified": "verified_sheet",
}
# Kind of result → the list of its document that is its main table.
ROWS = {
    "ActualComparison": "plan_against_actual",
    "RunComparison": "rows",
    "AcceleratorRanking": "ranking",
    "PrecisionComparison": "precisions",
    "Answer": "alternatives",
    "ClusterPlan": "alternatives",
    "ClusterSimulation": "by_team",
    "Diagnosis": "verdicts",
    "FleetSizeCurve": "points",
    "Roofline": "points",
    "ScaleCurve": "points",
    "Survey": "fits",
    "SystemCheck": "bottlenecks",
    "Verified": "checks",
}


class Presenter:
    """Shows results with the report room; see `gpuplan.domain.result.Presenter`."""

    def sheet(self, result: Result) -> Sheet:
        """The document, tables and remarks of the result."""
        from gpuplan import api

        make: Callable[[Any], Sheet] = getattr(api, SHEETS[type(result).__name__])
        return make(result)

    def columns(self, result: Result) -> dict[str, Any] | list[dict[str, Any]] | None:
        """Columns or rows of the result's main table; None where it has none."""
        outcome = getattr(result, "outcome", None)
        if outcome is not None and hasattr(outcome, "requests"):
            from gpuplan.report.simulation.document import request_columns

            return dict(request_columns(outcome))
        rows = ROWS.get(type(result).__name__)
        return None if rows is None else flat_rows(self.sheet(result).document[rows])

    def html(self, sheet: Sheet) -> str | None:
        """The sheet as a fragment of a page; None without jinja2, which makes pages."""
        if find_spec("jinja2") is None:
            return None
        from gpuplan.report.page import sheet_html

        return sheet_html(sheet)


def flat_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of plain cells: nested keys are joined by a dot, lists become one text."""
    return [_flat(row) for row in rows]


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells |= _flat(value, f"{before}{key}.")
        else:
            is_list = isinstance(value, list | tuple)
            cells[f"{before}{key}"] = "; ".join(map(str, value)) if is_list else value
    return cells
