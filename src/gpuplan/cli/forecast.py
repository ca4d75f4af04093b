"""`gpuplan forecast` and `replan`: demand ahead, and a plan against what happened."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from gpuplan.cli.options import (
    ANALYSIS,
    FLEET,
    LOAD,
    Calibration,
    Json,
    Out,
    Output,
    Seed,
    arg,
    opt,
)
from gpuplan.cli.output import Form, busy, check_writable, chosen, deliver, emit

if TYPE_CHECKING:
    from gpuplan.cli.output import FileToWrite
    from gpuplan.domain.telemetry.replan import Replanned, ReplanRequest

FIX = "adopt the new plan, or raise --tolerance"


class ForecastOptions(NamedTuple):
    """Options of `forecast`, in the order of its help."""

    source: Annotated[Path, arg("Telemetry file, in any format that `gpuplan diagnose` reads.")]
    devices: Annotated[int | None, opt(FLEET, "Number of accelerators in the fleet.", min=1)] = None
    capacity: Annotated[float | None, opt(FLEET, "Capacity of the fleet in the metric's unit.")] = (
        None
    )
    trigger: Annotated[
        float,
        opt(FLEET, "Peak utilization at which to order, 0 to 1.", min=0.01, max=1),
    ] = 0.85
    target: Annotated[
        float, opt(FLEET, "FileToWrite utilization of new capacity, 0 to 1.", min=0.01, max=1)
    ] = 0.80
    lead_weeks: Annotated[
        float | None, opt(FLEET, "Lead time from order to service, weeks.", "--lead-weeks", min=0)
    ] = None
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
        float | None, opt(LOAD, "Growth per month, e.g. 0.08; fitted to the peaks by default.")
    ] = None
    output: Output = Form.TABLE
    as_json: Json = False


def forecast(options: ForecastOptions) -> None:
    """Forecast demand with its range, the method's backtest, and when to order."""
    from gpuplan import api
    from gpuplan.domain.telemetry.forecast import ForecastRequest
    from gpuplan.units import HOUR

    lead_weeks = options.lead_weeks
    request = ForecastRequest(
        metric=options.metric,
        horizon_s=options.horizon_h * HOUR,
        step_s=options.step_s,
        n_devices=options.devices,
        n_capacity=options.capacity,
        trigger_frac=options.trigger,
        target_frac=options.target,
        lead_s=None if lead_weeks is None else lead_weeks * 7 * 24 * HOUR,
        growth_frac_per_month=options.growth,
    )
    with busy("backtesting"):
        found = api.forecast(options.source, request)
    emit(api.forecast_sheet(found), chosen(options.output, as_json=options.as_json))


class ReplanOptions(NamedTuple):
    """Options of `replan`, in the order of its help."""

    plan_file: Annotated[Path, arg("Plan in production, written by `gpuplan plan … --out`.")]
    source: Annotated[
        Path | None, arg("Telemetry file of its service; none where --calibration is new alone.")
    ] = None
    workload: Annotated[str | None, opt(LOAD, "Workload of the plan that the telemetry is of.")] = (
        None
    )
    growth: Annotated[float, opt(LOAD, "Growth per month to plan for, e.g. 0.08.")] = 0.0
    max_change: Annotated[
        int | None, opt(FLEET, "Maximum accelerators added at once.", "--max-change", min=1)
    ] = None
    hysteresis: Annotated[
        float, opt(FLEET, "Minimum saving that justifies a change, 0.05 is 5 %.", min=0, max=1)
    ] = 0.05
    tolerance: Annotated[
        float, opt(ANALYSIS, "Drift tolerance beyond the plan's own range, 0.2 is 20 %.", min=0)
    ] = 0.20
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
    with busy("planning again"):
        found = api.replan(options.plan_file, options.source, request)
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
