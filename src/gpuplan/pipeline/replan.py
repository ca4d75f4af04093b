"""Replan: the plan and what happened -> drift, demand to come, a new plan, whether to move."""

from dataclasses import replace
from datetime import date
from pathlib import Path

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.plan import PlanBasis
from gpuplan.domain.telemetry.monitoring import LiveSource
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.domain.telemetry.replan import Replanned, ReplanRequest
from gpuplan.inputs.plan_file import read_plan
from gpuplan.observe.read import read_source
from gpuplan.observe.service import observed_service
from gpuplan.pipeline.plan import plan
from gpuplan.studies.drift import refit
from gpuplan.studies.drift.demand import (
    changed_request,
    demand_ahead,
    demand_to_plan,
    planned_service,
    refuse_blind,
    same_request,
)
from gpuplan.studies.drift.drift import drifts_of
from gpuplan.studies.drift.judge import judged


def replan_files(
    plan_file: Path, telemetry: Path | LiveSource, request: ReplanRequest | None = None
) -> Replanned:
    """A plan held against what happened: drift, the new plan, and whether to move.

    Telemetry is a file, or a monitoring server.
    """
    return replan(read_plan(plan_file), read_source(telemetry), request or ReplanRequest())


def replan_measured(plan_file: Path, query: ReplanRequest) -> tuple[Answer, Answer]:
    """A plan file beside the same plan by the calibration of the user's own runs."""
    old = read_plan(plan_file)
    request = replace(same_request(old), basis=PlanBasis(query.calibration))
    today = date.fromisoformat(query.as_of) if query.as_of else request.today
    return old, plan(replace(request, today=today))


def replan(old: Answer, telemetry: Telemetry, query: ReplanRequest) -> Replanned:
    """What drifted, what comes, and the plan that answers it."""
    observed = observed_service(telemetry)
    chosen = refuse_blind(old, observed)
    load = planned_service(old, query.workload)
    ahead = demand_ahead(telemetry, query)
    demand, assumptions = demand_to_plan(observed, ahead, query)
    ratios = refit.latency_ratios(chosen, load, observed, tolerance_frac=query.tolerance_frac)
    request = changed_request(old, load, demand=demand, observed=observed, query=query)
    new = plan(refit.corrected(request, load, ratios))
    drifts = (
        *drifts_of(chosen, load, observed, tolerance_frac=query.tolerance_frac),
        *refit.power_drift(chosen, observed, tolerance_frac=query.tolerance_frac),
        *refit.version_drifts(old, new),
    )
    notes = (*assumptions, *refit.assumed(ratios))
    return judged(old, new, request=query, found=(observed, drifts, ahead), assumptions=notes)
