"""Counts of a plan, in: its document and facts; out: checks of numbers, nodes and policy.

Limits of the scenario, in: what the plan takes; out: checks that no violation is hidden.
"""

import math
import re
from collections.abc import Iterator

from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.units import KW
from gpuplan.verification.claims import (
    EXACT,
    Document,
    at_least,
    at_most,
    equal,
    fraction_of,
    is_cpu,
    is_number,
    leaves,
    n_per_replica,
    pools_of,
    purchases_of,
    same,
    same_verdict,
)

ROUNDING = 1e-6


ZERO_FLEET = re.compile(r"^0 (x|×|replica|node)")
SHARES = ("kept_frac", "worst_kept_frac", "paid_frac", "peak_frac", "mean_frac", "safe_frac")
GPUS = "accelerators"


def count_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """No figure is absent, no count is zero, replicas fit into what is bought."""
    yield from _figure_checks(document)
    for pool in pools_of(document):
        yield from _pool_checks(pool)
    yield from _bought_checks(document)
    yield from _policy_checks(document, facts)


def _figure_checks(document: Document) -> Iterator[Check]:
    """Every number is finite and every share of something is between nothing and all of it."""
    figures = [(path, value) for path, value in leaves(document) if is_number(value)]
    lost = [path for path, value in figures if not math.isfinite(value)]
    yield same("figures: all finite", ", ".join(lost[:3]), "")
    wide = [
        path
        for path, value in figures
        if path.rsplit(".", 1)[-1] in SHARES and not -EXACT <= value <= 1.0 + 1e-6
    ]
    yield same("figures: shares between 0 and 1", ", ".join(wide[:3]), "")
    texts = [value for _, value in leaves(document.get("alternatives")) if isinstance(value, str)]
    empty = [text for text in texts if ZERO_FLEET.match(text) and "owned" not in text]
    yield same("figures: no fleet of nothing", ", ".join(empty[:3]), "")


def _pool_checks(pool: Document) -> Iterator[Check]:
    name = f"pool {pool['workload']}"
    yield at_least(f"{name}: replicas", pool["n_replicas"], 1, "replicas")
    spare = pool["n_spare_replicas"]
    yield at_most(f"{name}: spares are replicas", spare, pool["n_replicas"] - 1, "replicas")
    if is_cpu(pool):
        return
    needed = pool["n_replicas"] * n_per_replica(pool) * fraction_of(pool)
    if pool["purchases"] or not pool.get("share"):
        claimed = pool["n_accelerators"]
        yield at_least(f"{name}: accelerators of its replicas", claimed, needed, GPUS)


def _bought_checks(document: Document) -> Iterator[Check]:
    """Every pool has its accelerators in nodes that somebody pays for."""
    for line in purchases_of(document):
        yield at_least(f"nodes of {line['offer']}", line["n_nodes"], 1, "nodes")
    kinds = {str(pool["accelerator"]) for pool in pools_of(document) if not is_cpu(pool)}
    for kind in sorted(kinds):
        mine = [pool for pool in pools_of(document) if pool["accelerator"] == kind]
        lines = [line for pool in mine for line in pool["purchases"]]
        bought = sum(line["n_nodes"] * line["n_accelerators_per_node"] for line in lines)
        used = sum(pool["n_accelerators"] for pool in mine)
        is_one = len(mine) == 1 or [each.get("role") for each in mine] == ["prefill", "decode"]
        is_alone = is_one and all(line["paid_frac"] > 1.0 - 1e-6 for line in lines)
        name = f"{kind}: accelerators in bought nodes"
        if is_alone:
            yield equal(name, used, bought, GPUS)
        elif sum(bool(pool["purchases"]) for pool in mine) == len(mine):
            yield at_most(name, used, bought, GPUS)


def _policy_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Only what the scenario allows is used."""
    policy = facts.scenario.policy
    used = {str(pool["accelerator"]) for pool in pools_of(document)}
    barred = {name for name in used if facts.allowed and name not in facts.allowed}
    barred |= used & facts.forbidden
    yield same("policy: accelerators", ", ".join(sorted(barred)), "")
    clouds = {line["cloud"] for line in purchases_of(document) if line["cloud"]}
    never = {cloud.lower() for cloud in policy.clouds.forbidden}
    only = {cloud.lower() for cloud in policy.clouds.allowed}
    other = {c for c in clouds if c.lower() in never or (only and c.lower() not in only)}
    yield same("policy: clouds", ", ".join(sorted(other)), "")
    bought = {line["purchase"] for line in purchases_of(document)}
    spot = "spot" if "spot" in bought and "spot" not in policy.purchases else ""
    yield same("policy: spot capacity", spot, "")


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
    retained = purchases_of(document)
    count = sum(line["n_nodes"] * line["n_accelerators_per_node"] for line in retained)
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
