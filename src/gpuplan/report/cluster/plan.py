"""A planned cluster as a document and tables, in the keys of every other plan."""

from collections.abc import Sequence

from gpuplan.domain.cluster.plan import ClusterPlan, FleetRow, MissedTarget, PlannedNodes
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.cluster.sheet import bill_table, cluster_sheet, quota_rows, span, wait_table
from gpuplan.report.document import Document, pick, pick_each, result_sheet
from gpuplan.report.formats import count, kw, percent, plural, usd
from gpuplan.report.table import table
from gpuplan.units import HOUR, HOURS_PER_MONTH

MISSED = ("kind", "who", "wait_p90_s", "target_p90_s", "short_accelerator_s", "met_frac", "n_jobs")
ROW = ("kind", "fleet", "policy", "quotas", "usd_per_month", "tightest_team", "tightest_ratio")


def cluster_plan_sheet(found: ClusterPlan) -> Sheet:
    """The plan ready to show; without one, what would make it."""
    run = found.simulation
    tables = [
        _nodes_table(found),
        *(() if run is None else (wait_table("Waits by team", run.by_team), _quota_table(found))),
        _fleet_table("What binds", found.binding),
        _fleet_table("Alternatives", found.alternatives),
        *(() if run is None else (bill_table(run),)),
        _rejected_table(found),
    ]
    remarks = [("What would help, smallest first:", found.relaxations)]
    return result_sheet(
        _body(found), tables, head=_head(found), remarks=remarks, assumptions=found.assumptions
    )


def _head(found: ClusterPlan) -> str:
    chosen, name = found.chosen, found.described.name
    if chosen is None:
        helps = f" Smallest change that helps: {found.relaxations[0]}." if found.relaxations else ""
        return f"No fleet within the limits of “{name}” meets every target.{helps}"
    fleet = " + ".join(
        f"{plural(one.n_nodes, 'node')} of {one.n_accelerators_per_node} × {one.accelerator}"
        for one in found.nodes
        if one.n_nodes
    )
    odds = found.odds
    sure = "" if odds.met_frac is None else f" in {percent(odds.met_frac)} of streams like it"
    rules = found.described.policy if found.simulation is None else found.simulation.cluster.policy
    return (
        f"Run “{name}” on {fleet} ({rules.order}, {rules.blocking}): "
        f"{usd(chosen.usd_per_month)}/month; every target met on the trace{' and' if sure else ''}"
        f"{sure}."
    )


def _body(found: ClusterPlan) -> Document:
    return {
        "kind": "gpuplan-cluster-plan",
        "feasible": found.chosen is not None,
        "gap": None,  # a search by simulation proves no bound
        "name": found.described.name,
        "plan": None if found.chosen is None else _plan(found, found.chosen),
        "alternatives": [_row(row) for row in found.alternatives],
        "rejected": pick_each(found.rejected, "candidate", "reason", "relaxation"),
        "binding": [_row(row) for row in found.binding],
        "relaxations": list(found.relaxations),
        "uncertainty": pick(found.odds, "n_draws", "asked_frac", "met_frac")
        | {"on_trace_usd_per_month": found.odds.on_trace_usd_per_month},
    }


def _plan(found: ClusterPlan, chosen: FleetRow) -> Document:
    run = found.simulation
    used = [one for one in found.nodes if one.n_nodes]
    watts = [one.n_nodes * one.node_max_w for one in used if one.node_max_w is not None]
    return {
        "pools": [_pool(found, one) for one in used],
        "cost_usd_per_month": _cost(used),
        "power_w": {"value": None, "low": None, "high": sum(watts)} if watts else None,
        "slo": {
            "is_kept": not chosen.missed,
            "promises": []
            if run is None
            else pick_each(run.by_team, "name", "target_p90_s", "wait_p90_s"),
        },
        "policy": {}
        if run is None
        else pick(run.cluster.policy, "order", "blocking", "placement", "preempts"),
        "quotas": [] if run is None else quota_rows(run.cluster),
        "bills": [] if run is None else cluster_sheet(run).document["bills"],
        "utilization": {} if run is None else cluster_sheet(run).document["utilization"],
    }


def _pool(found: ClusterPlan, one: PlannedNodes) -> Document:
    usd_per_month = one.n_nodes * one.node_usd_per_h.mid * HOURS_PER_MONTH
    return {
        "workload": found.described.name,
        **pick(one, "accelerator", "n_accelerators", "n_nodes", "n_nodes_now"),
        **pick(one, "n_accelerators_per_node", "speed_ratio", "source"),
        "usd_per_month": usd_per_month,
    }


def _cost(used: Sequence[PlannedNodes]) -> Document:
    """Of all nodes for a month, with the range of their prices."""

    def total(which: str) -> float:
        hourly = [one.n_nodes * float(getattr(one.node_usd_per_h, which)) for one in used]
        return HOURS_PER_MONTH * sum(hourly)

    return {"value": total("mid"), "low": total("low"), "high": total("high"), "tier": "simulated"}


def _row(row: FleetRow) -> Document:
    return {**pick(row, *ROW, "met_frac"), "missed": pick_each(row.missed, *MISSED)}


def _nodes_table(found: ClusterPlan) -> Table:
    return table(
        "Nodes",
        [one for one in found.nodes if one.n_nodes or one.n_nodes_now],
        {
            "GPU": lambda one: one.accelerator,
            ">nodes now": lambda one: count(one.n_nodes_now),
            ">nodes": lambda one: count(one.n_nodes),
            ">GPUs": lambda one: count(one.n_accelerators),
            ">speed": lambda one: f"{one.speed_ratio:g}",
            ">$/month": lambda one: usd(one.n_nodes * one.node_usd_per_h.mid * HOURS_PER_MONTH),
            ">max power": lambda one: kw(one.n_nodes * one.node_max_w) if one.node_max_w else "",
            "price": lambda one: one.source,
        },
    )


def _quota_table(found: ClusterPlan) -> Table:
    run = found.simulation
    now = {(row["team"], row["accelerator"]): row["quota"] for row in quota_rows(found.described)}
    return table(
        "Quotas",
        [] if run is None else quota_rows(run.cluster),
        {
            "team": lambda row: row["team"],
            "GPU": lambda row: row["accelerator"],
            ">quota now": lambda row: f"{now.get((row['team'], row['accelerator']), 0):g}",
            ">quota": lambda row: f"{row['quota']:g}",
            "cohort": lambda row: row["cohort"] or "",
        },
    )


def missed_text(missed: MissedTarget) -> str:
    """A missed target in a cell."""
    if missed.kind == "wait":
        wait, target = span(missed.wait_p90_s), span(missed.target_p90_s)
        return f"{missed.who} waits {wait} (p90), target {target}"
    if missed.kind == "deadline":
        return f"{percent(missed.met_frac)} of deadlines met"
    if missed.kind == "service":
        return f"services {count(missed.short_accelerator_s / HOUR)} GPU-hours short"
    return f"{plural(missed.n_jobs, 'job')} never start"


def _verdict(row: FleetRow) -> str:
    if row.missed:
        return "; ".join(missed_text(one) for one in row.missed)
    near = f"; {row.tightest_team} at {percent(row.tightest_ratio)}" if row.tightest_team else ""
    often = "" if row.met_frac is None else f", in {percent(row.met_frac)} of streams like it"
    often += f" (the others miss {row.often_missed})" if row.often_missed else ""
    return f"met on the trace{often}{near}"


def _change(row: FleetRow) -> str:
    """What is different, with the rules where they are not the described ones."""
    rules = [row.policy] if row.policy != "as described" else []
    rules += [f"quotas {row.quotas}"] if row.quotas not in ("as described", "none") else []
    return f"{row.kind}, {', '.join(rules)}" if rules else row.kind


def _fleet_table(title: str, rows: Sequence[FleetRow]) -> Table:
    return table(
        title,
        rows,
        {
            "change": _change,
            "nodes": lambda row: row.fleet,
            ">$/month": lambda row: usd(row.usd_per_month),
            "targets (closest team's p90 wait over its target)": _verdict,
        },
    )


def _rejected_table(found: ClusterPlan) -> Table:
    return table(
        "Rejected",
        found.rejected,
        {
            "candidate": lambda one: one.candidate,
            "reason": lambda one: one.reason,
            "what would change it": lambda one: one.relaxation,
        },
    )
