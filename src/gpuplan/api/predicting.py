"""Verbs on performance: predict, scale, roofline, validate, calibrate."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.domain.requests.requests import NetworkRequest, PredictRequest

if TYPE_CHECKING:
    from gpuplan.domain.calibration.runs import CalibrationOutcome
    from gpuplan.domain.calibration.validation import ValidationReport
    from gpuplan.domain.inference.prediction import Prediction, Roofline
    from gpuplan.domain.model.other import NetworkForecast
    from gpuplan.domain.requests.requests import TrainingRun
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.training.run import RunForecast
    from gpuplan.domain.training.scaling import ScaleCurve, ScaleRequest


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
    from gpuplan.studies.inference.configuration import predict as verb

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
    from gpuplan.report.prediction.serving import predict_sheet as verb

    return verb(found)


def predict_table(path: Path) -> "ValidationReport":
    """Predictions for every configuration of a table, measured or not."""
    from gpuplan.studies.validation.report import validate_file

    return validate_file(path)


def predict_network(
    name: str,
    on: str,
    request: NetworkRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
) -> "NetworkForecast":
    """Time of a batch of a network that is no language model, with its range."""
    from gpuplan.studies.networks.predict import predict_network as verb

    return verb(name, on, request or NetworkRequest(), overlays=overlays)


def network_sheet(found: "NetworkForecast") -> "Sheet":
    """A network's forecast, ready to show."""
    from gpuplan.report.prediction.network import network_sheet as verb

    return verb(found)


def predict_training(run: "TrainingRun") -> "RunForecast":
    """Step time, throughput, utilization and length of a training run, with ranges."""
    from gpuplan.studies.training.predict import predict_run as verb

    return verb(run)


def run_sheet(found: "RunForecast") -> "Sheet":
    """A training run, ready to show."""
    from gpuplan.report.prediction.training_run import run_sheet as verb

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
    from gpuplan.studies.inference.roofline import roofline as verb

    return verb(model, on, request or PredictRequest(), overlays=overlays, store=store)


def roofline_sheet(found: "Roofline") -> "Sheet":
    """A roofline, ready to show."""
    from gpuplan.report.prediction.serving import roofline_sheet as verb

    return verb(found)


def scale(request: "ScaleRequest") -> "ScaleCurve":
    """Speed of a training job over the number of accelerators, with its knee and causes."""
    from gpuplan.studies.training.scaling import scale as verb

    return verb(request)


def scale_sheet(curve: "ScaleCurve") -> "Sheet":
    """A speed-up curve, ready to show."""
    from gpuplan.report.prediction.scaling import scale_sheet as verb

    return verb(curve)


def validate(
    path: Path | None = None, *, kind: str = "llm_inference", cross: bool = False
) -> "ValidationReport":
    """Predictions against a measured table, or against the package's own of this kind."""
    from gpuplan.studies.validation.report import validate_file, validate_package

    return validate_package(kind, cross=cross) if path is None else validate_file(path, cross=cross)


def validate_sheet(report: "ValidationReport", *, group: str = "regime") -> "Sheet":
    """A validation, ready to show."""
    from gpuplan.report.prediction.validation import validate_sheet as verb

    return verb(report, group=group)


def predictions_csv(report: "ValidationReport", *, is_whole: bool = False) -> str:
    """Every prediction of a validation, one row each; whole: also what nobody measured."""
    from gpuplan.studies.validation.report import predictions_csv as verb

    return verb(report, is_whole=is_whole)


def calibrate(
    paths: Sequence[Path], *, given: Mapping[str, str] | None = None, out: Path | None = None
) -> "CalibrationOutcome":
    """The inference model refitted to a user's own runs; written to a file where one is named."""
    from gpuplan.studies.validation.calibrate import calibrate as verb
    from gpuplan.studies.validation.calibrate import write_calibration

    outcome = verb(paths, given=given)
    if out is not None:
        write_calibration(outcome, out)
    return outcome


def calibrate_sheet(outcome: "CalibrationOutcome", *, written: str = "") -> "Sheet":
    """A refit, ready to show."""
    from gpuplan.report.prediction.calibration import calibrate_sheet as verb

    return verb(outcome, written=written)
