"""Services and runs together as one plan, and the proof of the whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce

from gpuplan.domain.plan.answer import ChosenPlan, PlanProof, SloResult, SloResults
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.studies.planning.chosen import Part, carbon_kg_per_month, chosen_plan
from gpuplan.studies.planning.jobs import job_behind, job_promise
from gpuplan.studies.planning.shared import shared_uses


def whole_plan(scenario: Scenario, parts: Sequence[Part]) -> ChosenPlan:
    """All pools, one bill; a run counts by the months that it takes."""
    plans = [_with_deadlines(scenario, part) for part in parts]
    limits = shared_uses([part.choice for part in parts])
    return replace(reduce(_joined, plans), limits=limits)


def _with_deadlines(scenario: Scenario, part: Part) -> ChosenPlan:
    plan = chosen_plan(part.choice)
    plan = replace(
        plan,
        carbon_kg_per_month=carbon_kg_per_month(part.choice, scenario),
        replays=part.replays,
    )
    if not part.choice.is_jobs:
        return plan
    promises = tuple(_deadlines(scenario, part))
    cost = _run_cost(plan, part)
    slo = SloResults(is_kept=all(p.is_kept for p in promises), promises=promises)
    return replace(plan, slo=slo, cost_usd_per_month=cost)


def _deadlines(scenario: Scenario, part: Part) -> Iterator[SloResult]:
    for option in part.choice.selection.chosen:
        job = job_behind(part.sizings, option)
        promise = job_promise(scenario, job) if job else None
        if promise is not None:
            yield promise


def _run_cost(plan: ChosenPlan, part: Part) -> Estimate:
    """The month's cost, as dear or cheap as the run may be long or short."""
    jobs = [job_behind(part.sizings, option) for option in part.choice.selection.chosen]
    longest = max((job for job in jobs if job), key=lambda job: job.wall_s.value, default=None)
    cost = plan.cost_usd_per_month
    if longest is None:
        return cost
    wall = longest.wall_s
    return Estimate(
        value=cost.value,
        low=cost.low * wall.low / wall.value,
        high=cost.high * wall.high / wall.value,
        tier=cost.tier,
    )


def _joined(first: ChosenPlan, second: ChosenPlan) -> ChosenPlan:
    return ChosenPlan(
        pools=first.pools + second.pools,
        cost_usd_per_month=_sum(first.cost_usd_per_month, second.cost_usd_per_month),
        power_w=_sum(first.power_w, second.power_w),
        slo=SloResults(
            is_kept=first.slo.is_kept and second.slo.is_kept,
            promises=first.slo.promises + second.slo.promises,
        ),
        cost_lines=first.cost_lines + second.cost_lines,
        limits=first.limits + second.limits,
        once_usd=first.once_usd + second.once_usd,
        total_usd=first.total_usd + second.total_usd,
        span_s=max(first.span_s, second.span_s),
        energy_j_per_month=(first.energy_j_per_month or 0.0) + (second.energy_j_per_month or 0.0),
        carbon_kg_per_month=_known_sum(first.carbon_kg_per_month, second.carbon_kg_per_month),
        replays=first.replays + second.replays,
    )


def _known_sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _sum(first: Estimate, second: Estimate) -> Estimate:
    return Estimate(
        value=first.value + second.value,
        low=first.low + second.low,
        high=first.high + second.high,
        tier=first.tier,
    )


def whole_proof(parts: Sequence[Part]) -> PlanProof:
    """Bills and bounds add up."""
    proofs = [part.choice.selection.proof for part in parts]
    bill = sum(part.choice.selection.worth_usd for part in parts)
    is_cost = all(proof.objective == "cost" for proof in proofs)
    bound = sum(proof.bound for proof in proofs) if is_cost else bill
    return PlanProof(
        objective=proofs[0].objective,
        bill_usd=bill,
        bound_usd=min(bound, bill),
        gap_frac=max(proof.gap_frac for proof in proofs),
        n_rounds=max(part.n_rounds for part in parts),
        status=", ".join(dict.fromkeys(proof.status for proof in proofs)),
    )
