"""The verbs: one function each, the same in Python and on the command line.

The only module that the doors use. Each verb loads its rooms when it is called, so that asking
for help costs nothing.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.domain.requests import (
    FitRequest,
    NetworkRequest,
    PredictRequest,
    TrainingRequest,
    UpdateRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from gpuplan.domain.findings import Finding
    from gpuplan.domain.fit import Fit, Survey
    from gpuplan.domain.market import UpdateReport
    from gpuplan.domain.networks import NetworkForecast
    from gpuplan.domain.outcome import Outcome
    from gpuplan.domain.prediction import Prediction, Roofline
    from gpuplan.domain.requests import TrainingRun
    from gpuplan.domain.runs import CalibrationOutcome
    from gpuplan.domain.scaling import ScaleCurve, ScaleRequest
    from gpuplan.domain.scenario import Scenario
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.simulation import SimulateRequest, Simulation
    from gpuplan.domain.stream import Requests
    from gpuplan.domain.trace import TraceQuery, TraceRead
    from gpuplan.domain.training_fit import TrainingFit
    from gpuplan.domain.training_run import RunForecast
    from gpuplan.domain.validation import ValidationReport


def fit(
    model: str,
    on: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Fit":
    """Does this model fit on this accelerator, and with what room to spare."""
    from gpuplan.pipeline.fit import fit as verb

    return verb(model, on, request or FitRequest(), overlays=overlays, store=store)


def survey(
    model: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Survey":
    """Where this model fits: every accelerator of the catalog, fewest devices first."""
    from gpuplan.pipeline.fit import survey as verb

    return verb(model, request or FitRequest(), overlays=overlays, store=store)


def training_fit(
    model: str,
    on: str,
    request: TrainingRequest,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "TrainingFit":
    """Does this training job fit, and with what room to spare."""
    from gpuplan.pipeline.training_fit import training_fit as verb

    return verb(model, on, request, overlays=overlays, store=store)


def training_sheet(answer: "TrainingFit") -> "Sheet":
    """A training fit, ready to show."""
    from gpuplan.report.training import training_sheet as verb

    return verb(answer)


def fit_sheet(answer: "Fit") -> "Sheet":
    """A fit, ready to show."""
    from gpuplan.report.fit import fit_sheet as verb

    return verb(answer)


def survey_sheet(found: "Survey") -> "Sheet":
    """A survey, ready to show."""
    from gpuplan.report.fit import survey_sheet as verb

    return verb(found)


def catalog_list(
    kind: str,
    *,
    accelerator: str | None = None,
    cloud: str | None = None,
    region: str | None = None,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Sheet":
    """Everything of one kind that the catalog knows."""
    from gpuplan.pipeline.catalog import list_items as verb

    return verb(
        kind, accelerator=accelerator, cloud=cloud, region=region, overlays=overlays, store=store
    )


def catalog_show(item: str, *, overlays: Sequence[Path] = (), store: Path | None = None) -> "Sheet":
    """One item with the source of every number."""
    from gpuplan.pipeline.catalog import show_item as verb

    return verb(item, overlays=overlays, store=store)


def catalog_check(
    *, today: "date", overlays: Sequence[Path] = (), store: Path | None = None
) -> "tuple[Finding, ...]":
    """Every objection of the integrity rules."""
    from gpuplan.pipeline.catalog import check as verb

    return verb(today=today, overlays=overlays, store=store)


def catalog_overlay(path: Path) -> "Sheet":
    """What a user's overlay file changes."""
    from gpuplan.pipeline.catalog import overlay as verb

    return verb(path)


def catalog_update(request: UpdateRequest, *, store: Path, today: "date") -> "UpdateReport":
    """Fresh prices and model configs into the user's folder."""
    from gpuplan.pipeline.update import update as verb

    return verb(request, store=store, today=today)


def findings_sheet(findings: "Sequence[Finding]") -> "Sheet":
    """Findings, ready to show."""
    from gpuplan.pipeline.catalog import findings_sheet as verb

    return verb(findings)


def update_sheet(report: "UpdateReport") -> "Sheet":
    """What an update changed, ready to show."""
    from gpuplan.report.update import update_sheet as verb

    return verb(report)


def scenario_template(kind: str) -> str:
    """A commented scenario that is valid as written."""
    from gpuplan.pipeline.scenario import template as verb

    return verb(kind)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    from gpuplan.pipeline.scenario import schema as verb

    return verb()


def read_scenario(path: Path) -> "Scenario":
    """A scenario file as a value, or every fault of it at once."""
    from gpuplan.pipeline.scenario import read as verb

    return verb(path)


def scenario_sheet(scenario: "Scenario", name: str) -> "Sheet":
    """A scenario, ready to show."""
    from gpuplan.report.scenario import scenario_sheet as verb

    return verb(scenario, name)


def predict(
    model: str,
    on: str,
    request: PredictRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
    calibration: Path | None = None,
) -> "Prediction":
    """Throughput, latency, power and memory of one configuration, each with a range."""
    from gpuplan.pipeline.predict_names import predict as verb

    return verb(
        model,
        on,
        request or PredictRequest(),
        overlays=overlays,
        store=store,
        calibration=calibration,
    )


def predict_sheet(found: "Prediction") -> "Sheet":
    """A prediction, ready to show."""
    from gpuplan.report.predict import predict_sheet as verb

    return verb(found)


def predict_table(path: Path) -> "ValidationReport":
    """Predictions for every configuration of a table, measured or not."""
    from gpuplan.pipeline.validate import validate_file

    return validate_file(path)


def predict_network(
    name: str,
    on: str,
    request: NetworkRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
) -> "NetworkForecast":
    """Time of a batch of a network that is no language model, with its range."""
    from gpuplan.pipeline.predict_network import predict_network as verb

    return verb(name, on, request or NetworkRequest(), overlays=overlays)


def network_sheet(found: "NetworkForecast") -> "Sheet":
    """A network's forecast, ready to show."""
    from gpuplan.report.network import network_sheet as verb

    return verb(found)


def predict_training(run: "TrainingRun") -> "RunForecast":
    """Step time, throughput, utilization and length of a training run, with ranges."""
    from gpuplan.pipeline.predict_run import predict_run as verb

    return verb(run)


def run_sheet(found: "RunForecast") -> "Sheet":
    """A training run, ready to show."""
    from gpuplan.report.training_run import run_sheet as verb

    return verb(found)


def roofline(
    model: str,
    on: str,
    request: PredictRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Roofline":
    """Where prefill and decode sit under the roofline, and what limits each."""
    from gpuplan.pipeline.roofline import roofline as verb

    return verb(model, on, request or PredictRequest(), overlays=overlays, store=store)


def roofline_sheet(found: "Roofline") -> "Sheet":
    """A roofline, ready to show."""
    from gpuplan.report.predict import roofline_sheet as verb

    return verb(found)


def scale(request: "ScaleRequest") -> "ScaleCurve":
    """Speed of a training job over the number of accelerators, with its knee and causes."""
    from gpuplan.pipeline.scale import scale as verb

    return verb(request)


def scale_sheet(curve: "ScaleCurve") -> "Sheet":
    """A speed-up curve, ready to show."""
    from gpuplan.report.scale import scale_sheet as verb

    return verb(curve)


def validate(
    path: Path | None = None, *, kind: str = "llm_inference", cross: bool = False
) -> "ValidationReport":
    """Predictions against a measured table, or against the package's own of this kind."""
    from gpuplan.pipeline.validate import validate_file, validate_package

    return validate_package(kind, cross=cross) if path is None else validate_file(path, cross=cross)


def validate_sheet(report: "ValidationReport", *, group: str = "regime") -> "Sheet":
    """A validation, ready to show."""
    from gpuplan.report.validate import validate_sheet as verb

    return verb(report, group=group)


def predictions_csv(report: "ValidationReport", *, is_whole: bool = False) -> str:
    """Every prediction of a validation, one row each; whole: also what nobody measured."""
    from gpuplan.pipeline.validate import predictions_csv as verb

    return verb(report, is_whole=is_whole)


def calibrate(
    paths: Sequence[Path], *, given: Mapping[str, str] | None = None, out: Path | None = None
) -> "CalibrationOutcome":
    """The inference model refitted to a user's own runs; written to a file where one is named."""
    from gpuplan.pipeline.calibrate import calibrate as verb
    from gpuplan.pipeline.calibrate import write_calibration

    outcome = verb(paths, given=given)
    if out is not None:
        write_calibration(outcome, out)
    return outcome


def calibrate_sheet(outcome: "CalibrationOutcome", *, written: str = "") -> "Sheet":
    """A refit, ready to show."""
    from gpuplan.report.calibrate import calibrate_sheet as verb

    return verb(outcome, written=written)


def read_trace(path: Path, query: "TraceQuery | None" = None) -> "TraceRead":
    """Requests of a trace file, with its quirks and its bad lines."""
    from gpuplan.inputs.traces.read import read_trace as verb

    return verb(path, query)


def simulate(
    model: str,
    on: str,
    requests: "Requests",
    request: "SimulateRequest | None" = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Simulation":
    """Replay requests against a fleet: every request's times and what they say."""
    from gpuplan.domain.simulation import SimulateRequest
    from gpuplan.pipeline.simulate import simulate as verb

    asked = request or SimulateRequest()
    return verb(model, on, requests, asked=asked, overlays=overlays, store=store)


def simulate_sheet(found: "Simulation") -> "Sheet":
    """A simulated run, ready to show."""
    from gpuplan.report.simulate import simulate_sheet as verb

    return verb(found)


def request_columns(outcome: "Outcome") -> dict[str, list[float | int | None]]:
    """Simulated requests as columns by name."""
    from gpuplan.report.request_rows import request_columns as verb

    return verb(outcome)


def requests_csv(outcome: "Outcome") -> "Iterator[str]":
    """Simulated requests as lines of a CSV file."""
    from gpuplan.report.request_rows import requests_csv as verb

    return verb(outcome)


def to_csv(sheet: "Sheet") -> str:
    """The tables of a sheet as comma-separated values."""
    from gpuplan.report.table import to_csv as verb

    return verb(sheet)


def to_markdown(sheet: "Sheet") -> str:
    """The tables of a sheet in Markdown."""
    from gpuplan.report.table import to_markdown as verb

    return verb(sheet)
