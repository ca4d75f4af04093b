"""The planner's answer: the plan with its explanation, or what stands in the way of any."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from gpuplan.domain.plan.answer import Answer, Explanation, PlannedLoad, PlanProvenance
from gpuplan.domain.plan.sizing import LittleClosure, Sized, Sizing
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.stages import begin
from gpuplan.studies.explanation.explain import explained
from gpuplan.studies.explanation.rejected import rejected_of
from gpuplan.studies.planning.chosen import weak_prices
from gpuplan.studies.planning.groups import SolvedGroup, whole_plan, whole_proof
from gpuplan.studies.planning.inputs import PlanInputs


def planned_answer(inputs: PlanInputs, groups: Sequence[SolvedGroup]) -> Answer:
    """The plan of all groups, with its reasons, alternatives and ranges."""
    begin("comparing with other fleets, prices and loads")
    sizings = [sizing for group in groups for sizing in group.sizings]
    bare = infeasible_answer(inputs, sizings, ())
    weak = [note for group in groups for note in weak_prices(group.choice)]
    answer = replace(
        bare,
        plan=whole_plan(inputs.scenario, groups),
        load=tuple(_load(inputs.scenario, s, _chosen(groups, s)) for s in sizings),
        assumptions=(*bare.assumptions, *weak),
        proof=whole_proof(groups),
    )
    return explained(answer, inputs, groups)


def infeasible_answer(
    inputs: PlanInputs, sizings: Sequence[Sizing], conflicts: tuple[str, ...]
) -> Answer:
    """What is known without a plan, and the conflicts that leave none."""
    return Answer(
        name=inputs.scenario.name,
        plan=None,
        alternatives=(),
        rejected=tuple(r for sizing in sizings for r in rejected_of(sizing, inputs.market)),
        assumptions=_assumptions(inputs, sizings),
        load=tuple(_load(inputs.scenario, sizing, None) for sizing in sizings),
        explanation=Explanation(conflicts=conflicts),
        uncertainty=None,
        charts=(),
        proof=None,
        provenance=PlanProvenance(
            package_version=_package_version(),
            catalog_sha256=inputs.catalog.content_hash,
            scenario_sha256=inputs.scenario.sha256,
            seed=inputs.request.seed,
            as_of=inputs.request.today.isoformat(),
            scenario=inputs.tree,
        ),
    )


def _package_version() -> str:
    try:
        return version("gpuplan")
    except PackageNotFoundError:
        return "not installed"  # run from its source tree


def _assumptions(inputs: PlanInputs, sizings: Sequence[Sizing]) -> tuple[Assumption, ...]:
    notes = (
        *inputs.scenario.assumptions,
        *inputs.market.assumptions,
        *(note for sizing in sizings for note in sizing.assumptions),
    )
    return tuple(dict.fromkeys(notes))


def _chosen(groups: Sequence[SolvedGroup], sizing: Sizing) -> Sized | None:
    """The fleet that was chosen for the workload; None: it only runs where others leave room."""
    for group in groups:
        for option in group.choice.selection.chosen:
            if option.workload == sizing.workload:
                return group.choice.table.row_of(option).sized
    return None


def _load(scenario: Scenario, sizing: Sizing, chosen: Sized | None) -> PlannedLoad:
    """What the workload asks for, and how long its requests stay on the fleet that was chosen."""
    work = scenario.workload(sizing.workload)
    little = chosen.little if chosen else None
    peak, mean = sizing.demand.peak_requests_per_s, sizing.demand.mean_requests_per_s
    if sizing.demand.n_users is not None and little is not None:
        # Users of a closed loop ask as fast as they are answered.
        peak = little.requests_per_s
        mean = peak * sizing.demand.hours.mean_frac
    return PlannedLoad(
        workload=sizing.workload,
        kind=work.kind if work else "",
        model=(work.model.name or "") if work and work.model else "",
        peak_requests_per_s=peak,
        mean_requests_per_s=mean,
        residence_s=little.residence_s if little else None,
        n_in_flight=little.residence_s * peak if little and peak else None,
        lines=(*sizing.demand.lines, *_little_lines(little)),
    )


def _little_lines(little: LittleClosure | None) -> Iterator[str]:
    """Little's law, closed by a count that does not use it."""
    if little is not None:
        yield (
            f"Little's law in the simulation: {little.requests_per_s:.3g} requests/s x "
            f"{little.residence_s:.3g} s = {little.n_in_flight:.3g} in flight; "
            f"counted: {little.n_counted:.3g}"
        )
