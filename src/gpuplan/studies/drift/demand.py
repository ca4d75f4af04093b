"""The demand that the next plan is made for, in: the old plan and telemetry; out: its request."""

from dataclasses import replace
from datetime import date
from typing import Any

from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedLoad
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.requests.plan import PlanBasis, PlanRequest
from gpuplan.domain.telemetry.forecast import DemandForecast
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.domain.telemetry.replan import Observed, ReplanRequest
from gpuplan.errors import InputError, one
from gpuplan.forecast.predict import forecast
from gpuplan.observe.demand import demand_series

SERVICE = "online_inference"


def refuse_blind(old: Answer, observed: Observed) -> ChosenPlan:
    """The fleet of the old plan; InputError where there is none, or nothing to hold it against."""
    if old.plan is None:
        fix = "plan first: there is nothing to hold against what happened"
        raise one(InputError, "replan", "plan", "holds no fleet", fix)
    if observed.peak_requests_per_s is None:
        fix = "give telemetry with counters of requests (vllm:request_success_total …)"
        raise one(InputError, "replan", "telemetry", "does not say how many requests came", fix)
    return old.plan


def planned_service(old: Answer, name: str | None) -> PlannedLoad:
    """The service of the plan that is meant; InputError where it is not clear."""
    services = [load for load in old.load if load.kind == SERVICE]
    named = [load for load in services if name in (None, load.workload)]
    if len(named) == 1:
        return named[0]
    known = ", ".join(load.workload for load in services) or "none"
    what = f"{name or 'no name'} is not one of the plan's services ({known})"
    raise one(InputError, "replan", "workload", what, "name one with --workload")


def demand_ahead(telemetry: Telemetry, request: ReplanRequest) -> DemandForecast | None:
    """Demand to come; None where the telemetry is too short to say."""
    series = demand_series(telemetry, "requests_per_s", None)
    if len(series.level) < 2:
        return None
    return forecast(series, min(request.horizon_s, len(series.level) * series.step_s))


def demand_to_plan(
    observed: Observed, ahead: DemandForecast | None, request: ReplanRequest
) -> tuple[float, list[Assumption]]:
    """Requests a second to plan for: the higher of what came and what is to come, with growth."""
    peak = observed.peak_requests_per_s or 0.0
    assumed = []
    if ahead is not None:
        peak = max(peak, ahead.peak)
    else:
        why = "the telemetry is too short for a forecast"
        assumed.append(assume("demand to come", "as observed", why, "more telemetry"))
    return peak * (1.0 + request.growth_frac_per_month), assumed


def changed_request(
    old: Answer, load: PlannedLoad, *, demand: float, observed: Observed, query: ReplanRequest
) -> PlanRequest:
    """The old scenario with the demand and the token lengths that were observed."""
    tree: dict[str, Any] = dict(old.provenance.scenario)
    works = [dict(work) for work in tree["workloads"]]
    for work in works:
        if work["name"] == load.workload:
            rate = {"requests_per_s": round(demand, 6)}
            work["demand"] = _retained(work.get("demand", {})) | rate
            request = dict(work.get("request", {}))
            for key, value in (
                ("input_tokens", observed.input_tokens),
                ("output_tokens", observed.output_tokens),
            ):
                if value is not None:
                    request[key] = max(1, round(value))
            work["request"] = request
    today = date.fromisoformat(query.as_of or old.provenance.as_of)
    return replace(
        same_request(old),
        today=today,
        seed=query.seed,
        tree=tree | {"workloads": works},
        basis=PlanBasis(query.calibration),
    )


def same_request(old: Answer) -> PlanRequest:
    """What the plan was made from, to make it again: as sure as it was meant to be, or as bare."""
    made, risk = old.provenance, old.decision.risk
    fresh = PlanRequest(
        target=old.name,
        today=date.fromisoformat(made.as_of),
        seed=made.seed,
        tree=dict(made.scenario),
    )
    return replace(
        fresh,
        min_probability_frac=risk.level_frac if risk else None,
        n_samples=fresh.n_samples if risk else 0,
    )


def _retained(demand: dict[str, Any]) -> dict[str, Any]:
    """What telemetry does not replace: burstiness and the shape of the day."""
    return {
        key: demand[key]
        for key in ("burstiness_cv", "hourly_profile", "peak_to_mean")
        if key in demand
    }
