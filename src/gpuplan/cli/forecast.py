"""`gpuplan forecast` and `replan`: demand ahead, and a plan against what happened.

`gpuplan eta`: when a job that is not submitted yet would start.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from gpuplan import api
from gpuplan.cli.command import Form
from gpuplan.cli.options import (
    ANALYSIS,
    FLEET,
    LOAD,
    SERVER,
    Calibration,
    Out,
    Seed,
    arg,
    opt,
    option,
)
from gpuplan.cli.output import busy, check_writable, deliver, emit
from gpuplan.cli.watch import telemetry_source
from gpuplan.errors import DriftError, InputError, Problem, one
from gpuplan.units import WEEK

if TYPE_CHECKING:
    from gpuplan.cli.output import FileToWrite
    from gpuplan.domain.telemetry.forecast import GrowthModel
    from gpuplan.domain.telemetry.replan import Replanned, ReplanRequest


class EtaOptions(NamedTuple):
    """Options of `eta`, in the order of its help."""

    cluster: Annotated[Path, arg("Cluster file: nodes, teams, policy.")]
    jobs: Annotated[Path, opt(LOAD, "Job trace up to now, with what runs and waits.", "--jobs")]
    n_accelerators: int = option(LOAD, "GPUs that the job asks for.", "--gpus", default=1, min=1)
    duration_h: float = option(
        LOAD, "Duration of the job in hours.", "--hours", default=1.0, min=0.001
    )
    team: str | None = option(LOAD, "Team of the job; the trace's first by default.")
    accelerator: str | None = option(LOAD, "GPU type; any by default.", "--on")
    priority: int = option(LOAD, "Priority of the job.", default=0)
    at_h: float | None = option(
        LOAD, "Hour of submission on the trace's clock; its last by default.", "--at-h", min=0
    )
    n_record: int = option(
        ANALYSIS,
        "Recent jobs that the range is taken from.",
        "--record",
        default=100,
        min=2,
        max=1000,
    )
    seed: Seed = 0


GROWTH: dict[str, float] = {"min": -0.9, "max": 1.0}  # past doubling every month nothing is a trend
WEEKS: dict[str, float] = {"min": 0, "max": 156}
HISTORY_H = 8 * 7 * 24.0  # weeks that a growth model can be tried on
HistoryHours = Annotated[
    float, opt(SERVER, "Hours of history to read from a server.", "--history-h", min=1)
]
FIX = "adopt the new plan, or raise --tolerance"


class ForecastOptions(NamedTuple):
    """Options of `forecast`, in the order of its help."""

    source: Annotated[
        str, arg("Telemetry file that `gpuplan diagnose` reads, or a Prometheus server's URL.")
    ]
    n_devices: int | None = option(
        FLEET, "Number of accelerators in the fleet.", "--devices", min=1
    )
    n_capacity: float | None = option(
        FLEET, "Capacity of the fleet in the metric's unit.", "--capacity"
    )
    trigger_frac: float = option(
        FLEET,
        "Peak utilization at which to order, 0 to 1.",
        "--trigger",
        default=0.85,
        min=0.01,
        max=1,
    )
    target_frac: float = option(
        FLEET,
        "Target utilization of new capacity, 0 to 1.",
        "--target",
        default=0.80,
        min=0.01,
        max=1,
    )
    lead_weeks: float | None = option(
        FLEET, "Lead time from order to service, weeks.", "--lead-weeks", **WEEKS
    )
    lead_weeks_high: float | None = option(
        FLEET, "Late end of the lead time (90th percentile), weeks.", "--lead-weeks-high", **WEEKS
    )
    service_frac: float = option(
        FLEET,
        "Probability that capacity lasts until an order arrives.",
        "--service-level",
        default=0.95,
        min=0.5,
        max=0.9999,
    )
    history_h: HistoryHours = HISTORY_H
    metric: str | None = option(LOAD, "Metric to forecast; the best measure of demand by default.")
    horizon_h: float = option(
        LOAD, "Forecast horizon in hours.", "--horizon-h", default=24.0, min=0.1, max=168
    )
    step_s: float | None = option(LOAD, "Seconds between two values (step).", "--step-s", min=1)
    growth_frac_per_month: float | None = option(
        LOAD, "Growth per month, e.g. 0.08; fitted to the peaks by default.", "--growth", **GROWTH
    )
    growth_model: str | None = option(
        LOAD,
        "Growth model: compound, linear or damped; chosen by back-test by default.",
        "--growth-model",
    )


def forecast(options: ForecastOptions, form: Form) -> None:
    """Forecast demand with its range, the method's backtest, and when to order."""
    from gpuplan.domain.requests.typed import request_of
    from gpuplan.domain.telemetry.forecast import ForecastRequest

    model, late_s = _growth_model(options.growth_model), _late_s(options)
    request = request_of(ForecastRequest, options, growth_model=model, lead_high_s=late_s)
    source = telemetry_source(
        options.source, hours=options.history_h, step_s=options.step_s or 3600.0
    )
    with busy("backtesting"):
        found = api.forecast(source, request)
    emit(api.forecast_sheet(found), form)


def _growth_model(text: str | None) -> "GrowthModel | None":
    from gpuplan.domain.telemetry.forecast import GROWTH_MODELS

    for model in GROWTH_MODELS:
        if text == model:
            return model
    if text is not None:
        fix = f"use {', '.join(GROWTH_MODELS)}"
        raise one(InputError, "forecast", "--growth-model", f"unknown value {text!r}", fix)
    return None


def _late_s(options: ForecastOptions) -> float | None:
    """The late end of the lead time; InputError where it is not later than the lead time."""
    late, lead = options.lead_weeks_high, options.lead_weeks
    if late is not None and (lead is None or late < lead):
        what = f"{late:g} weeks where the lead time is {'not given' if lead is None else lead}"
        raise one(InputError, "forecast", "--lead-weeks-high", what, "give --lead-weeks below it")
    return None if late is None else late * WEEK


class ReplanOptions(NamedTuple):
    """Options of `replan`, in the order of its help."""

    plan_file: Annotated[Path, arg("Plan in production, written by `gpuplan plan … --out`.")]
    source: Annotated[
        str | None,
        arg(
            "Telemetry file of its service, or a Prometheus server's URL; "
            "none where --calibration is new alone."
        ),
    ] = None
    workload: str | None = option(LOAD, "Workload of the plan that the telemetry is of.")
    growth_frac_per_month: float = option(
        LOAD, "Growth per month to plan for, e.g. 0.08.", "--growth", default=0.0, **GROWTH
    )
    max_added_accelerators: int | None = option(
        FLEET, "Maximum accelerators added at once.", "--max-change", min=1
    )
    hysteresis_frac: float = option(
        FLEET,
        "Minimum saving that justifies a change, 0.05 is 5 %.",
        "--hysteresis",
        default=0.05,
        min=0,
        max=1,
    )
    tolerance_frac: float = option(
        ANALYSIS,
        "Drift tolerance beyond the plan's own range, 0.2 is 20 %.",
        "--tolerance",
        default=0.20,
        min=0,
    )
    history_h: HistoryHours = HISTORY_H
    step_s: float = option(
        SERVER, "Seconds between two samples (step).", "--step-s", default=300.0, min=1
    )
    seed: Seed = 0
    calibration: Calibration = None
    out: Out = None


def replan(options: ReplanOptions, form: Form) -> None:
    """Plan again with telemetry: new plan, difference, advice; exits with code 6 on drift."""
    from gpuplan.domain.requests.typed import request_of
    from gpuplan.domain.telemetry.replan import ReplanRequest

    today = datetime.now(tz=UTC).date().isoformat()
    request = request_of(ReplanRequest, options, as_of=today)
    check_writable(options.out)
    if options.source is None:
        _replan_measured(options, request, form)
        return
    source = telemetry_source(options.source, hours=options.history_h, step_s=options.step_s)
    with busy("planning again"):
        found = api.replan(options.plan_file, source, request)
    files: list[FileToWrite] = [(options.out, lambda: api.plan_text(found.new), "")]
    deliver(api.replan_sheet(found), form, files)
    _refuse_drift(found, options.plan_file)


def _replan_measured(options: ReplanOptions, request: "ReplanRequest", form: Form) -> None:
    """The plan by the user's own runs, beside the old one."""
    if options.calibration is None:
        fix = "give a telemetry file, or --calibration with what `gpuplan calibrate --out` wrote"
        raise one(InputError, "replan", "telemetry", "nothing new is given", fix)
    with busy("planning again"):
        old, new = api.replan_measured(options.plan_file, request)
    files: list[FileToWrite] = [(options.out, lambda: api.plan_text(new), "")]
    deliver(api.diff_sheet(old, new), form, files)


def _refuse_drift(found: "Replanned", plan_file: Path) -> None:
    """Raise DriftError with every figure that left the plan's range and the tolerance."""
    problems = [
        Problem(drift.what, f"planned {drift.planned}, observed {drift.observed}", FIX)
        for drift in found.drifts
        if drift.is_beyond
    ]
    if problems:
        raise DriftError(str(plan_file), problems)


def eta(options: EtaOptions, form: Form) -> None:
    """Estimate when a job would start on a shared cluster, with an 80 % range."""
    from gpuplan.domain.cluster.answer import EtaRequest
    from gpuplan.domain.requests.typed import request_of

    request = request_of(EtaRequest, options)
    with busy("simulating futures of the cluster"):
        found = api.eta(options.cluster, options.jobs, request)
    emit(api.eta_sheet(found), form)
