"""Probe: a plan -> its services sized and priced again -> the runs that its decision is worth."""

from dataclasses import replace
from pathlib import Path

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.probe import ProbeAdvice, ProbeRequest
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InfeasibleError, Problem
from gpuplan.inputs.plan_file import read_plan
from gpuplan.pipeline.plan import solved_services
from gpuplan.studies.drift.demand import same_request
from gpuplan.studies.explanation.rows import compared_rows
from gpuplan.studies.planning.inputs import plan_inputs
from gpuplan.studies.probing.advice import ServiceRows, probe_advice


def probe_file(path: Path, request: ProbeRequest, *, around: PlanRequest) -> ProbeAdvice:
    """The next best measurements of a plan file; overlays, store and calibration as given."""
    return probe(read_plan(path), request, around=around)


def probe(answer: Answer, query: ProbeRequest, *, around: PlanRequest) -> ProbeAdvice:
    """What a short run of each row is worth to the plan."""
    request = replace(
        same_request(answer),
        overlays=around.overlays,
        store=around.store,
        basis=around.basis,
    )
    if query.seed is not None:
        request = replace(request, seed=query.seed)
    inputs = plan_inputs(request)
    groups = solved_services(inputs)
    if isinstance(groups, tuple):
        problems = [Problem("plan", line, "plan again with gpuplan plan") for line in groups]
        raise InfeasibleError(answer.name, problems)
    services = [
        ServiceRows(inputs, sizing, compared_rows(inputs, group, sizing))
        for group in groups
        for sizing in group.sizings
    ]
    return probe_advice(answer, services, query)
