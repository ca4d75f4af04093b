"""`gpuplan forecast` and `replan`: demand ahead, and a plan against what happened.

`gpuplan eta`: when a job that is not submitted yet would start.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from gpuplan.cli.options import (
    ANALYSIS,
    FLEET,
    LOAD,
    SERVER,
    Calibration,
    Json,
    Out,
    Output,
    Seed,
    arg,
    opt,
)
from gpuplan.cli.output import Form, busy, check_writable, chosen, deliver, emit
from gpuplan.cli.watch import telemetry_source

if TYPE_CHECKING:
    from gpuplan.cli.output import FileToWrite
    from gpuplan.domain.telemetry.forecast import GrowthModel
    from gpuplan.domain.telemetry.replan import Replanned, ReplanRequest


class EtaOptions(NamedTuple):
    """Options of `eta`, in the order of its help."""

    cluster: Annotated[Path, arg("Cluster file: nodes, teams, policy.")]
    jobs: Annotated[Path, opt(LOAD, "Job trace up to now, with what runs and waits.", "--jobs")]
    gpus: Annotated[int, opt(LOAD, "GPUs that the job asks for.", min=1)] = 1
    hours: Annotated[float, opt(LOAD, "Duration of the job in hours.", min=0.001)] = 1.0
    team: Annotated[str | None, opt(LOAD, "Team of the job; the trace's first by default.")] = None
    on: Annotated[str | None, opt(LOAD, "GPU type; any by default.", "--on")] = None
    priority: Annotated[int, opt(LOAD, "Priority of the job.")] = 0
    at_h: Annotated[
        float | None,
        opt(LOAD, "Hour of submission on the trace's clock; its last by default.", "--at-h", min=0),
    ] = None
    record: Annotated[
        int, opt(ANALYSIS, "Recent jobs that the range is taken from.", min=2, max=1000)
    ] = 100
    seed: Seed = 0
    output: Output = Form.TABLE
    as_json: Json = False


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
        str,
        arg("Telemetry file that `gpuplan diagnose` reads, or a Prometheus server's URL."),
    ]
    devices: Annotated[int | None, opt(FLEET, "Number of accelerators in the fleet.", min=1)] = None
    capacity: Annotated[float | None, opt(FLEET, "Capacity of the fleet in the metric's unit.")] = (
        None
    )
    trigger: Annotated[
        float,
        opt(FLEET, "Peak utilization at which to order, 0 to 1.", min=0.01, max=1),
    ] = 0.85
    target: Annotated[
        float, opt(FLEET, "Target utilization of new capacity, 0 to 1.", min=0.01, max=1)
    ] = 0.80
    lead_weeks: Annotated[
        float | None, opt(FLEET, "Lead time from order to service, weeks.", "--lead-weeks", **WEEKS)
    ] = None
    lead_weeks_high: Annotated[
        float | None,
        opt(
            FLEET,
            "Late end of the lead time (90th percentile), weeks.",
            "--lead-weeks-high",
            **WEEKS,
        ),
    ] = None
    service_level: Annotated[
        float,
        opt(
            FLEET,
            "Probability that capacity lasts until an order arrives.",
            "--service-level",
            min=0.5,
            max=0.9999,
        ),
    ] = 0.95
    history_h: HistoryHours = HISTORY_H
    metric: Annotated[
        str | None, opt(LOAD, "Metric to forecast; the best measure of demand by default.")
    ] = None
    horizon_h: Annotated[
        float, opt(LOAD, "Forecast horizon in hours.", "--horizon-h", min=0.1, max=168)
    ] = 24.0
    step_s: Annotated[
        float | None, opt(LOAD, "Seconds between two values (step).", "--step-s", min=1)
    ] = None
    growth: Annotated[
        float | None,
        opt(LOAD, "Growth per month, e.g. 0.08; fitted to the peaks by default.", **GROWTH),
    ] = None
    growth_model: Annotated[
        str | None,
        opt(
            LOAD,
            "Growth model: compound, linear or damped; chosen by back-test by default.",
            "--growth-model",
        ),
    ] = None
    output: Output = Form.TABLE
    as_json: Json = False


def forecast(options: ForecastOptions) -> None:
    """Forecast demand with its range, the method's backtest, and when to order."""
    from gpuplan import api
    from gpuplan.domain.telemetry.forecast import ForecastRequest
    from gpuplan.units import HOUR, WEEK

    request = ForecastRequest(
        metric=options.metric,
        horizon_s=options.horizon_h * HOUR,
        step_s=options.step_s,
        n_devices=options.devices,
        n_capacity=options.capacity,
        trigger_frac=options.trigger,
        target_frac=options.target,
        lead_s=None if options.lead_weeks is None else options.lead_weeks * WEEK,
        growth_frac_per_month=options.growth,
        growth_model=_growth_model(options.growth_model),
        lead_high_s=_late_s(options),
        service_frac=options.service_level,
    )
    source = telemetry_source(
        options.source, hours=options.history_h, step_s=options.step_s or 3600.0
    )
    with busy("backtesting"):
        found = api.forecast(source, request)
    emit(api.forecast_sheet(found), chosen(options.output, as_json=options.as_json))


def _growth_model(text: str | None) -> "GrowthModel | None":
    from gpuplan.domain.telemetry.forecast import GROWTH_MODELS
    from gpuplan.errors import InputError, one

    for model in GROWTH_MODELS:
        if text == model:
            return model
    if text is not None:
        fix = f"use {', '.join(GROWTH_MODELS)}"
        raise one(InputError, "forecast", "--growth-model", f"unknown value {text!r}", fix)
    return None


def _late_s(options: ForecastOptions) -> float | None:
    """The late end of the lead time; InputError where it is not later than the lead time."""
    from gpuplan.errors import InputError, one
    from gpuplan.units import WEEK

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
    workload: Annotated[str | None, opt(LOAD, "Workload of the plan that the telemetry is of.")] = (
        None
    )
    growth: Annotated[float, opt(LOAD, "Growth per month to plan for, e.g. 0.08.", **GROWTH)] = 0.0
    max_change: Annotated[
        int | None, opt(FLEET, "Maximum accelerators added at once.", "--max-change", min=1)
    ] = None
    hysteresis: Annotated[
        float, opt(FLEET, "Minimum saving that justifies a change, 0.05 is 5 %.", min=0, max=1)
    ] = 0.05
    tolerance: Annotated[
        float, opt(ANALYSIS, "Drift tolerance beyond the plan's own range, 0.2 is 20 %.", min=0)
    ] = 0.20
    history_h: HistoryHours = HISTORY_H
    step_s: Annotated[
        float, opt(SERVER, "Seconds between two samples (step).", "--step-s", min=1)
    ] = 300.0
    seed: Seed = 0
    calibration: Calibration = None
    out: Out = None
    output: Output = Form.TABLE
    as_json: Json = False


def replan(options: ReplanOptions) -> None:
    """Plan again with telemetry: new plan, difference, advice; exits with code 6 on drift."""
    from gpuplan import api
    from gpuplan.domain.telemetry.replan import ReplanRequest

    request = ReplanRequest(
        workload=options.workload,
        tolerance_frac=options.tolerance,
        hysteresis_frac=options.hysteresis,
        max_added_accelerators=options.max_change,
        growth_frac_per_month=options.growth,
        seed=options.seed,
        as_of=datetime.now(tz=UTC).date().isoformat(),
        calibration=options.calibration,
    )
    check_writable(options.out)
    if options.source is None:
        _replan_measured(options, request)
        return
    source = telemetry_source(options.source, hours=options.history_h, step_s=options.step_s)
    with busy("planning again"):
        found = api.replan(options.plan_file, source, request)
    files: list[FileToWrite] = [(options.out, lambda: api.plan_text(found.new), "")]
    deliver(api.replan_sheet(found), chosen(options.output, as_json=options.as_json), files)
    _refuse_drift(found, options.plan_file)


def _replan_measured(options: ReplanOptions, request: "ReplanRequest") -> None:
    """The plan by the user's own runs, beside the old one."""
    from gpuplan import api
    from gpuplan.errors import InputError, one

    if options.calibration is None:
        fix = "give a telemetry file, or --calibration with what `gpuplan calibrate --out` wrote"
        raise one(InputError, "replan", "telemetry", "nothing new is given", fix)
    with busy("planning again"):
        old, new = api.replan_measured(options.plan_file, request)
    files: list[FileToWrite] = [(options.out, lambda: api.plan_text(new), "")]
    deliver(api.diff_sheet(old, new), chosen(options.output, as_json=options.as_json), files)


def _refuse_drift(found: "Replanned", plan_file: Path) -> None:
    """Raise DriftError with every figure that left the plan's range and the tolerance."""
    from gpuplan.errors import DriftError, Problem

    problems = [
        Problem(drift.what, f"planned {drift.planned}, observed {drift.observed}", FIX)
        for drift in found.drifts
        if drift.is_beyond
    ]
    if problems:
        raise DriftError(str(plan_file), problems)


def eta(options: EtaOptions) -> None:
    """Estimate when a job would start on a shared cluster, with an 80 % range."""
    from gpuplan import api
    from gpuplan.domain.cluster.answer import EtaRequest
    from gpuplan.units import HOUR

    request = EtaRequest(
        n_accelerators=options.gpus,
        duration_s=options.hours * HOUR,
        team=options.team,
        accelerator=options.on,
        priority=options.priority,
        at_s=None if options.at_h is None else options.at_h * HOUR,
        n_record=options.record,
        seed=options.seed,
    )
    with busy("simulating futures of the cluster"):
        found = api.eta(options.cluster, options.jobs, request)
    emit(api.eta_sheet(found), chosen(options.output, as_json=options.as_json))
