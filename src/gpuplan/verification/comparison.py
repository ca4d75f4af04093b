"""Rows of the comparison, in: a plan's document; out: checks of counts, prices and bounds.

Every row is a fleet that somebody could choose, so it is held to the plan's own standard: replicas
fit into accelerators, cost per token is the bill over the tokens, and no row beats physics.
"""

from collections.abc import Iterator

from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.units import MONTH
from gpuplan.verification.claims import (
    Document,
    at_least,
    at_most,
    equal,
    fraction_of,
    is_cpu,
    n_engines_per_replica,
    n_per_replica,
    pools_of,
    same,
    same_money,
)
from gpuplan.verification.physics import element_bytes

MILLION = 1e6
PER_TOKEN = 1e-3  # of a cost per token: printed from a bill in whole cents


def comparison_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Every row with a fleet, the chosen one against the plan, and the fleets of other odds."""
    for place, row in enumerate(document.get("comparison") or ()):
        if not row["n_replicas"]:
            continue
        flat = {**row, **(row["layout"] or {})}
        name = f"comparison {place + 1} ({row['accelerator']} {row['precision']})"
        yield from _row_checks(name, flat, document, facts)
        if row["is_chosen"]:
            yield from _chosen_checks(name, flat, document)
    yield from _risk_checks(document)


def _row_checks(name: str, row: Document, document: Document, facts: PlanFacts) -> Iterator[Check]:
    if not is_cpu(row):
        n_each = n_engines_per_replica(row) * n_per_replica(row)
        needed = row["n_replicas"] * n_each * fraction_of(row)
        yield at_least(f"{name}: accelerators", row["n_accelerators"], needed, "accelerators")
    yield from _token_checks(name, row, document, facts)
    card = facts.accelerators.get(str(row["accelerator"]))
    model = facts.models.get(row["workload"])
    if card is None or model is None or is_cpu(row) or row.get("share"):
        return
    weights = model.main.n_active_params * element_bytes(row["precision"])
    least_s = weights / (n_per_replica(row) * card.memory.bytes_per_s)
    for what, value in row["latency"].items():
        if what.startswith("tpot"):
            yield at_least(f"{name} {what}: reading the weights once", value, least_s, "s")


def _token_checks(
    name: str, row: Document, document: Document, facts: PlanFacts
) -> Iterator[Check]:
    """Cost per million output tokens: the bill over the offered load's own tokens."""
    workload = facts.scenario.workload(row["workload"])
    load = next((x for x in document["load"] if x["workload"] == row["workload"]), None)
    claimed, rate = row["usd_per_million_tokens"], load and load["mean_requests_per_s"]
    is_growing = facts.scenario.growth.per_month_frac.mid != 0.0
    if claimed is None or not rate or is_growing or workload is None:
        return
    if is_closed(workload) and not row["is_chosen"]:
        return  # clients of a closed loop ask each fleet as fast as it answers
    if isinstance(workload.work, Serving) and len(facts.scenario.workloads) == 1:
        tokens = rate * workload.work.request.output.mean_tokens * MONTH
        found = row["usd_per_month"] / tokens * MILLION
        named = f"{name}: cost per million output tokens"
        yield equal(named, claimed, found, "USD", tolerance=PER_TOKEN)


def is_closed(workload: Workload) -> bool:
    """The workload is so many clients, not a rate."""
    work = workload.work
    return isinstance(work, Serving) and work.arrivals.n_concurrent is not None


def _chosen_checks(name: str, row: Document, document: Document) -> Iterator[Check]:
    """The chosen row is the plan."""
    pools = pools_of(document)
    if len(pools) != 1 and [pool.get("role") for pool in pools] != ["prefill", "decode"]:
        return  # rows of several workloads are priced each as if it stood alone
    kind = pools[0]["accelerator"]
    yield same(f"{name}: is the plan's accelerator", row["accelerator"], kind)
    claimed = row["n_replicas"] * n_engines_per_replica(row)
    found = sum(pool["n_replicas"] for pool in pools)
    yield equal(f"{name}: is the plan's replicas", claimed, found, "replicas")
    cost = document["plan"]["cost_usd_per_month"]["value"]
    yield same_money(f"{name}: costs what the plan costs", row["usd_per_month"], cost)


def _risk_checks(document: Document) -> Iterator[Check]:
    """Fleets of other odds: dearer by what is said, and as likely as their level."""
    cost = document["plan"]["cost_usd_per_month"]["value"]
    for row in (document.get("risk") or {}).get("fleets", ()):
        if row["usd_per_month"] is None:
            continue
        name = f"odds of {row['level_frac']:.0%} ({row['fleet']})"
        extra, dearer = row["extra_usd_per_month"], row["usd_per_month"] - cost
        if len(document["load"]) == 1:
            yield same_money(f"{name}: difference from the plan", extra, dearer)
        if row["probability_frac"] is not None:
            level = row["level_frac"]
            yield at_most(f"{name}: reach their level", level, row["probability_frac"], "")
