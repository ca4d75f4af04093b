"""Replan: the plan and what happened -> drift, demand to come, a new plan, whether to move."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from gpuplan.domain.plan.answer import Answer, PlannedLoad
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.telemetry.forecast import DemandForecast
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.domain.telemetry.replan import Observed, Replanned, ReplanRequest
from gpuplan.errors import InputError, one
from gpuplan.forecast.predict import forecast
from gpuplan.inputs.plan_file import read_plan
from gpuplan.observe.demand import demand_series
from gpuplan.observe.read import read_telemetry
from gpuplan.observe.service import observed_service
from gpuplan.pipeline.plan import plan
from gpuplan.studies.drift import refit
from gpuplan.studies.drift.drift import drifts_of
from gpuplan.studies.drift.judge import judged

SERVICE = "online_inference"


def replan_files(plan_file: Path, telemetry: Path, asked: ReplanRequest) -> Replanned:
    """The same, from files."""
    return replan(read_plan(plan_file), read_telemetry(telemetry), asked)


def replan(old: Answer, telemetry: Telemetry, asked: ReplanRequest) -> Replanned:
    """What drifted, what comes, and the plan that answers it."""
    if old.plan is None:
        fix = "plan first: there is nothing to hold against what happened"
        raise one(InputError, "replan", "plan", "holds no fleet", fix)
    load = _service(old, asked.workload)
    seen = observed_service(telemetry)
    if seen.peak_requests_per_s is None:
        fix = "give telemetry with counters of requests (vllm:request_success_total …)"
        raise one(InputError, "replan", "telemetry", "does not say how many requests came", fix)
    ahead = _ahead(telemetry, asked)
    wanted, assumed = _demand(seen, ahead, asked)
    tolerance = asked.tolerance_frac
    ratios = refit.latency_ratios(old.plan, load, seen, tolerance_frac=tolerance)
    request = _request(old, load, wanted=wanted, seen=seen, asked=asked)
    new = plan(_corrected(request, load, ratios))
    drifts = (
        *drifts_of(old.plan, load, seen, tolerance_frac=tolerance),
        *refit.power_drift(old.plan, seen, tolerance_frac=tolerance),
        *refit.version_drifts(old, new),
    )
    told = (*assumed, *refit.assumed(ratios))
    return judged(old, new, asked=asked, found=(seen, drifts, ahead), assumptions=told)


def _corrected(request: PlanRequest, load: PlannedLoad, ratios: refit.Ratios) -> PlanRequest:
    """The request with limits that allow for what the model gets wrong."""
    tree = dict(request.tree or {})
    tree["workloads"] = [
        work | {"slo": refit.tightened(work["slo"], ratios)}
        if work["name"] == load.workload and ratios and isinstance(work.get("slo"), dict)
        else work
        for work in tree["workloads"]
    ]
    return replace(request, tree=tree)


def _service(old: Answer, name: str | None) -> PlannedLoad:
    services = [load for load in old.load if load.kind == SERVICE]
    named = [load for load in services if name in (None, load.workload)]
    if len(named) == 1:
        return named[0]
    known = ", ".join(load.workload for load in services) or "none"
    what = f"{name or 'no name'} is not one of the plan's services ({known})"
    raise one(InputError, "replan", "workload", what, "name one with --workload")


def _ahead(telemetry: Telemetry, asked: ReplanRequest) -> DemandForecast | None:
    series = demand_series(telemetry, "requests_per_s", None)
    if len(series.level) < 2:
        return None
    return forecast(series, min(asked.horizon_s, len(series.level) * series.step_s))


def _demand(
    seen: Observed, ahead: DemandForecast | None, asked: ReplanRequest
) -> tuple[float, list[Assumption]]:
    """Requests a second to plan for: the higher of what came and what is to come, with growth."""
    peak = seen.peak_requests_per_s or 0.0
    assumed = []
    if ahead is not None:
        peak = max(peak, ahead.peak)
    else:
        why = "the telemetry is too short for a forecast"
        assumed.append(
            Assumption(what="demand to come", value="as observed", why=why, change="more telemetry")
        )
    return peak * (1.0 + asked.growth_frac_per_month), assumed


def _request(
    old: Answer, load: PlannedLoad, *, wanted: float, seen: Observed, asked: ReplanRequest
) -> PlanRequest:
    """The old scenario with the demand and the lengths that were seen."""
    tree: dict[str, Any] = dict(old.provenance.scenario)
    works = [dict(work) for work in tree["workloads"]]
    for work in works:
        if work["name"] == load.workload:
            work["demand"] = _kept(work.get("demand", {})) | {"requests_per_s": round(wanted, 6)}
            request = dict(work.get("request", {}))
            for key, value in (
                ("input_tokens", seen.input_tokens),
                ("output_tokens", seen.output_tokens),
            ):
                if value is not None:
                    request[key] = max(1, round(value))
            work["request"] = request
    today = date.fromisoformat(asked.as_of or old.provenance.as_of)
    return PlanRequest(
        target=old.name, today=today, seed=asked.seed, tree=tree | {"workloads": works}
    )


def _kept(demand: dict[str, Any]) -> dict[str, Any]:
    """What telemetry does not replace: burstiness and the shape of the day."""
    return {
        key: demand[key]
        for key in ("burstiness_cv", "hourly_profile", "peak_to_mean")
        if key in demand
    }
