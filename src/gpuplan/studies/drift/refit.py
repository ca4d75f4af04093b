"""What telemetry teaches the model for the next plan: latencies that came out longer than said.

A service that is slower than its plan at the planned load, or below it, shows a fault of the model,
not of the load. The next plan is then made for a limit that is shorter by the same ratio.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedLoad
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.domain.telemetry.replan import Drift, Observed

Ratios = Mapping[str, float]


def latency_ratios(
    plan: ChosenPlan, load: PlannedLoad, known: Observed, *, tolerance_frac: float
) -> dict[str, float]:
    """Observed over planned by target ("ttft", "tpot" …), where the load cannot explain it."""
    planned, came = load.peak_requests_per_s, known.peak_requests_per_s
    if planned is None or came is None or came > planned * (1.0 + tolerance_frac):
        return {}
    observed = {
        "ttft": known.ttft_p95_s,
        "tpot": known.tpot_p95_s,
        "itl": known.tpot_p95_s,
        "e2e": known.e2e_p95_s,
    }
    found = {}
    for target in plan.slo.promises:
        metric = target.what.split(" ")[0]
        value, reached = observed.get(metric), target.reached_s
        if target.workload != load.workload or "p95" not in target.what:
            continue
        if value is None or reached is None or reached.value <= 0:
            continue
        if value > reached.high * (1.0 + tolerance_frac):
            found[metric] = value / reached.value
    return found


def tightened(slo: Mapping[str, Any], ratios: Ratios) -> dict[str, Any]:
    """The limits to plan for, so that the corrected latencies keep the promised ones."""
    changed = dict(slo)
    for metric, ratio in ratios.items():
        key = f"{metric}_p95_ms"
        if isinstance(changed.get(key), int | float):
            changed[key] = changed[key] / ratio
    return changed


def corrected(request: PlanRequest, load: PlannedLoad, ratios: Ratios) -> PlanRequest:
    """The request with limits that allow for what the model gets wrong."""
    tree = dict(request.tree or {})
    tree["workloads"] = [
        work | {"slo": tightened(work["slo"], ratios)}
        if work["name"] == load.workload and ratios and isinstance(work.get("slo"), dict)
        else work
        for work in tree["workloads"]
    ]
    return replace(request, tree=tree)


def assumed(ratios: Ratios) -> list[Assumption]:
    """The corrections as the report names them."""
    return [
        Assumption(
            what=f"correction of {metric} p95",
            value=f"x {ratio:.3g}",
            why="observed over planned at a load that the plan was made for; the limit to plan "
            "for is divided by it",
            change="telemetry of a later time, or `gpuplan calibrate` with runs of this service",
        )
        for metric, ratio in ratios.items()
    ]


def version_drifts(old: Answer, new: Answer) -> list[Drift]:
    """Where the two plans come from different programs or prices: a reason to compare with care."""
    pairs = (
        ("planner's version", old.provenance.package_version, new.provenance.package_version),
        ("catalog", old.provenance.catalog_sha256[:12], new.provenance.catalog_sha256[:12]),
    )
    return [
        Drift(what=what, planned=before, observed=now, change_ratio=1.0, is_beyond=False)
        for what, before, now in pairs
        if before != now
    ]


def power_drift(plan: ChosenPlan, known: Observed, *, tolerance_frac: float) -> list[Drift]:
    """Boards alone must not draw more than the computers at their peak."""
    planned = plan.power_w
    if known.power_w is None or planned is None:
        return []
    return [
        Drift(
            what="power (boards, against computers at the peak)",
            planned=f"{planned.value / 1e3:,.3g} kW",
            observed=f"{known.power_w / 1e3:,.3g} kW",
            change_ratio=known.power_w / planned.value,
            is_beyond=known.power_w > planned.high * (1.0 + tolerance_frac),
        )
    ]
