"""Parts that a checked system and a design share: hosts, storage, networks, spares, findings."""

from collections.abc import Sequence
from typing import Any

from gpuplan.domain.ranges import Range
from gpuplan.domain.sheet import Table
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import DataTransfer, FabricPlan, HostLine, SpareNeed, TierChoice
from gpuplan.units import DAY, GBIT, HOUR, KW, TB

ORDER = {"error": 0, "warning": 1, "note": 2}


def moved_document(moved: DataTransfer) -> dict[str, Any]:
    """A dataset on its way."""
    return {
        "dataset_bytes": moved.dataset_bytes,
        "there_s": moved.there_s,
        "back_s": moved.back_s,
        "egress_usd": range_document(moved.egress_usd),
        "faster": [{"line": line, "there_s": seconds} for line, seconds in moved.faster],
    }


def tier_document(choice: TierChoice) -> dict[str, Any]:
    """One kind of storage in its size."""
    return {
        "tier": choice.tier.name,
        "n_units": choice.n_units,
        "decided_by": choice.reason,
        "usd": range_document(choice.usd),
    }


def fabric_document(plan: FabricPlan) -> dict[str, Any]:
    """A network with its parts."""
    counts = plan.counts
    return {
        "purpose": plan.purpose,
        "kind": counts.kind,
        "switch": plan.switch.name,
        "leaf": counts.n_leaf,
        "spine": counts.n_spine,
        "core": counts.n_core,
        "ports_per_node": counts.n_ports_per_node,
        "port_gbit_per_s": plan.port_bytes_per_s / GBIT,
        "oversubscription": counts.oversubscription_ratio,
        "cables": [
            {
                "between": run.between,
                "n": run.n_cables,
                "longest_m": run.longest_m,
                "medium": run.medium,
                "part": run.link.name if run.link else None,
            }
            for run in plan.runs
        ],
        "switch_typical_w": plan.typical_w,
        "switch_max_w": plan.max_w,
        "usd": range_document(plan.usd),
        "efficiency_frac": plan.efficiency_frac,
    }


def host_document(line: HostLine) -> dict[str, Any]:
    """One part of a host."""
    return {
        "part": line.part,
        "unit": line.unit,
        "needed": line.n_needed,
        "usable": line.n_given,
        "reason": line.reason,
    }


def spare_document(need: SpareNeed) -> dict[str, Any]:
    """Spare machines."""
    return {
        "n_machines": need.n_nodes,
        "n_spares": need.n_spares,
        "mtbf_h": need.node_mtbf_s / HOUR,
        "repair_h": need.repair_s / HOUR,
        "kept_frac": need.kept_frac,
        "machine_availability_frac": need.availability_frac,
    }


def range_document(usd: Range) -> dict[str, float]:
    """Low, middle and high."""
    return {"value": usd.mid, "low": usd.low, "high": usd.high}


def objections_table(findings: Sequence[Finding]) -> Table:
    """Objections, the gravest first."""
    rows = tuple((f.severity, f.where, f.what, f.fix) for f in gravest_first(findings))
    return Table(title="Objections", columns=("", "where", "what", "what helps"), rows=rows)


def moves_table(moves: Sequence[DataTransfer]) -> Table:
    """Datasets on their way."""
    rows = tuple(
        (
            f"{m.dataset_bytes / TB:,.0f} TB",
            f"{m.there_s / HOUR:.1f} h",
            ", ".join(f"{line}: {s / HOUR:.1f} h" for line, s in m.faster),
            f"{m.back_s / HOUR:.1f} h",
            usd_text(m.egress_usd),
        )
        for m in moves
    )
    columns = ("dataset", "there", "faster lines", "back", "egress USD")
    return Table(title="Moving data", columns=columns, rows=rows, right=("dataset", "there"))


def hosts_table(name: str, lines: Sequence[HostLine]) -> Table:
    """Parts of one host."""
    rows = tuple(
        (
            line.part,
            f"{line.n_needed:,.1f}",
            "not described" if line.n_given is None else f"{line.n_given:,.1f}",
            line.unit,
            line.reason,
        )
        for line in lines
    )
    columns = ("part", "needed", "usable", "unit", "because")
    return Table(title=f"Host: {name}", columns=columns, rows=rows, right=("needed", "usable"))


def networks_table(plans: Sequence[FabricPlan]) -> Table:
    """Networks, one a row."""
    rows = tuple(
        (
            plan.purpose,
            f"{plan.counts.kind}, {plan.counts.n_ports_per_node} x "
            f"{plan.port_bytes_per_s / GBIT:.0f} Gbit/s per node",
            f"{plan.counts.n_leaf} + {plan.counts.n_spine} + {plan.counts.n_core}",
            str(plan.counts.n_cables),
            f"{plan.counts.oversubscription_ratio:.1f}",
            "unknown" if plan.max_w is None else f"{plan.max_w / KW:.1f}",
            "not judged" if plan.efficiency_frac is None else f"{plan.efficiency_frac:.0%}",
            usd_text(plan.usd),
        )
        for plan in plans
    )
    columns = ("network", "kind", "leaf + spine + core", "cables", "over", "kW", "speed", "USD")
    return Table(title="Networks", columns=columns, rows=rows, right=columns[3:])


def spares_table(needs: Sequence[SpareNeed]) -> Table:
    """Spares, one group a row."""
    rows = tuple(
        (
            str(n.n_nodes),
            str(n.n_spares),
            f"{n.node_mtbf_s / DAY:.0f}",
            f"{n.repair_s / DAY:g}",
            f"{n.kept_frac:.1%}",
        )
        for n in needs
    )
    columns = ("machines", "spares", "days between failures of one", "days of repair", "kept")
    return Table(title="Spares", columns=columns, rows=rows, right=columns)


def usd_text(usd: Range | None) -> str:
    """Dollars for people, as a range where they are one."""
    if usd is None:
        return "unknown"
    return f"{usd.mid:,.0f}" if usd.is_exact else f"{usd.low:,.0f}–{usd.high:,.0f}"


def gravest_first(findings: Sequence[Finding]) -> list[Finding]:
    """Errors, warnings, notes."""
    return sorted(findings, key=lambda finding: ORDER[finding.severity])
