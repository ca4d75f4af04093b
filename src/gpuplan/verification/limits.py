"""Limits of the scenario, in: what the plan takes; out: checks that no violation is hidden."""

from collections.abc import Iterator

from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.units import KW
from gpuplan.verification.claims import (
    Document,
    at_most,
    fraction_of,
    n_per_replica,
    pools_of,
    purchases_of,
    same_verdict,
)

ROUNDING = 1e-6


def limit_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Each limit that the scenario sets: kept, or shown as violated."""
    plan, scenario = document["plan"], facts.scenario
    for row in plan["limits"]:
        is_kept = row["used_frac"] <= 1.0 + ROUNDING
        yield same_verdict(f"limit {row['name']}: verdict", row["is_kept"], is_kept)
    shown = {row["name"].partition(" in ")[0] for row in plan["limits"] if not row["is_kept"]}
    for name, used, most, unit in _uses(document, scenario):
        if most is not None and name not in shown:
            yield at_most(f"limit {name}", used, most, unit, tolerance=ROUNDING)
    yield from _quota_checks(document, scenario)
    yield from _team_checks(document, scenario)
    yield from _owned_checks(document, scenario)


def _uses(document: Document, scenario: Scenario) -> Iterator[tuple[str, float, float | None, str]]:
    plan, budget, site = document["plan"], scenario.budget, scenario.site
    is_run = any(work.is_training for work in scenario.workloads)
    cost = plan["cost_usd_per_month"]["value"]
    if not is_run:
        yield "budget.usd_per_month", cost, budget.usd_per_month, "USD/month"
    yield "budget.total_usd", plan["total_usd"], budget.total_usd, "USD"
    yield "budget.capex_usd", plan["once_usd"], budget.capex_usd, "USD"
    held = purchases_of(document)
    count = sum(line["n_nodes"] * line["n_accelerators_per_node"] for line in held)
    most = scenario.policy.n_accelerators_max
    yield "policy.max_accelerators", count, most, "accelerators"
    if site is not None and site.power_w is not None and plan["power_w"]:
        owned = [x["purchase"] not in ("owned", "existing", "buy") for x in purchases_of(document)]
        if not any(owned):
            pue = (site.pue_ratio or 1.0) if site.is_facility_power else 1.0
            yield "site.power_kw", plan["power_w"]["value"] / KW, site.power_w / pue / KW, "kW"


def _quota_checks(document: Document, scenario: Scenario) -> Iterator[Check]:
    """Nodes of a stated offer within its quota."""
    quotas = {o.name: o.n_nodes_max for o in scenario.prices.offers if o.n_nodes_max is not None}
    for offer, most in quotas.items():
        used = sum(x["n_nodes"] for x in purchases_of(document) if x["offer"] == offer)
        if used:
            yield at_most(f"quota of {offer}", used, most, "nodes")


def _team_checks(document: Document, scenario: Scenario) -> Iterator[Check]:
    """Accelerators of a team's workloads within its quota."""
    for team in scenario.teams:
        mine = {work.name for work in scenario.workloads if work.team == team.name}
        pools = [pool for pool in pools_of(document) if pool["workload"] in mine]
        used = sum(pool["n_replicas"] * n_per_replica(pool) * fraction_of(pool) for pool in pools)
        if used and team.n_accelerators_quota is not None:
            name = f"quota of team {team.name}"
            yield at_most(name, used, team.n_accelerators_quota, "accelerators")


def _owned_checks(document: Document, scenario: Scenario) -> Iterator[Check]:
    """No more existing nodes than there are."""
    there = sum(nodes.n_nodes for nodes in scenario.owned)
    used = sum(x["n_nodes"] for x in purchases_of(document) if x["purchase"] == "existing")
    if used:
        yield at_most("existing nodes", used, there, "nodes")
