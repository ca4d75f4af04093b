"""Parts that a checked system and a design share: hosts, storage, networks, spares, findings."""

from collections.abc import Iterable, Sequence

from gpuplan.domain.ranges import Range
from gpuplan.domain.sheet import Table
from gpuplan.domain.system.findings import Finding
from gpuplan.domain.system.parts import DataTransfer, FabricPlan, HostLine, SpareNeed, TierChoice
from gpuplan.report.document import Document, pick, pick_each
from gpuplan.report.table import table
from gpuplan.units import DAY, GBIT, HOUR, KW, TB

ORDER = {"error": 0, "warning": 1, "note": 2}


def moved_document(moved: DataTransfer) -> Document:
    """A dataset on its way."""
    return {
        **pick(moved, "dataset_bytes", "there_s", "back_s", "egress_usd"),
        "faster": [{"line": line, "there_s": seconds} for line, seconds in moved.faster],
    }


def tier_document(choice: TierChoice) -> Document:
    """One kind of storage in its size."""
    return pick(choice, "n_units", "usd", tier="tier.name", decided_by="reason")


def fabric_document(plan: FabricPlan) -> Document:
    """A network with its parts."""
    return {
        **pick(plan, "purpose", "usd", "efficiency_frac", switch="switch.name"),
        **pick(plan, switch_typical_w="typical_w", switch_max_w="max_w"),
        **pick(plan.counts, "kind", leaf="n_leaf", spine="n_spine", core="n_core"),
        **pick(plan.counts, ports_per_node="n_ports_per_node"),
        "oversubscription": plan.counts.oversubscription_ratio,
        "port_gbit_per_s": plan.port_bytes_per_s / GBIT,
        "cables": [
            {
                **pick(run, "between", "longest_m", "medium", n="n_cables"),
                "part": run.link.name if run.link else None,
            }
            for run in plan.runs
        ],
    }


def host_documents(lines: Iterable[HostLine]) -> list[Document]:
    """The parts of a host."""
    return pick_each(lines, "part", "unit", "reason", needed="n_needed", usable="n_given")


def spare_document(need: SpareNeed) -> Document:
    """Spare nodes."""
    return {
        **pick(need, "n_spares", "kept_frac", n_machines="n_nodes"),
        "mtbf_h": need.node_mtbf_s / HOUR,
        "repair_h": need.repair_s / HOUR,
        "machine_availability_frac": need.availability_frac,
    }


def finding_documents(findings: Iterable[Finding]) -> list[Document]:
    """Findings in the order given."""
    return pick_each(findings, "severity", "rule", "where", "what", "fix")


def findings_table(findings: Sequence[Finding]) -> Table:
    """Findings, the gravest first."""
    columns = {
        "severity": lambda f: f.severity,
        "where": lambda f: f.where,
        "finding": lambda f: f.what,
        "fix": lambda f: f.fix,
    }
    return table("Findings", gravest_first(findings), columns)


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes."""
    return sorted(findings, key=lambda finding: ORDER[finding.severity])


def moves_table(moves: Iterable[DataTransfer]) -> Table:
    """Datasets on their way."""
    columns = {
        ">dataset (TB)": lambda m: f"{m.dataset_bytes / TB:,.0f}",
        ">transfer (h)": lambda m: f"{m.there_s / HOUR:.1f}",
        "on faster links": lambda m: ", ".join(f"{x}: {s / HOUR:.1f} h" for x, s in m.faster),
        ">back (h)": lambda m: f"{m.back_s / HOUR:.1f}",
        ">egress ($)": lambda m: usd_text(m.egress_usd),
    }
    return table("Moving data", moves, columns)


def hosts_table(name: str, lines: Iterable[HostLine]) -> Table:
    """The parts of one host."""
    columns = {
        "part": lambda line: line.part,
        ">needed": lambda line: f"{line.n_needed:,.1f}",
        ">usable": lambda line: "not described" if line.n_given is None else f"{line.n_given:,.1f}",
        "unit": lambda line: line.unit,
        "reason": lambda line: line.reason,
    }
    return table(f"Host: {name}", lines, columns)


def networks_table(plans: Iterable[FabricPlan]) -> Table:
    """Networks, one a row."""
    columns = {
        "network": lambda p: p.purpose,
        "topology": lambda p: f"{p.counts.kind}, {ports_text(p)} per node",
        "leaf + spine + core": lambda p: (
            f"{p.counts.n_leaf} + {p.counts.n_spine} + {p.counts.n_core}"
        ),
        ">cables": lambda p: str(p.counts.n_cables),
        ">oversubscription": lambda p: f"{p.counts.oversubscription_ratio:.1f}",
        ">kW": lambda p: "unknown" if p.max_w is None else f"{p.max_w / KW:.1f}",
        ">efficiency": lambda p: (
            "unknown" if p.efficiency_frac is None else f"{p.efficiency_frac:.0%}"
        ),
        ">$": lambda p: usd_text(p.usd),
    }
    return table("Networks", plans, columns)


def ports_text(plan: FabricPlan) -> str:
    """The ports of a node with their speed."""
    return f"{plan.counts.n_ports_per_node} × {plan.port_bytes_per_s / GBIT:.0f} Gbit/s"


def spares_table(needs: Iterable[SpareNeed]) -> Table:
    """Spare nodes, one group a row."""
    columns = {
        ">nodes": lambda n: str(n.n_nodes),
        ">spares": lambda n: str(n.n_spares),
        ">node MTBF (days)": lambda n: f"{n.node_mtbf_s / DAY:.0f}",
        ">repair (days)": lambda n: f"{n.repair_s / DAY:g}",
        ">probability that all run": lambda n: f"{n.kept_frac:.1%}",
    }
    return table("Spares", needs, columns)


def usd_text(usd: Range | None) -> str:
    """Dollars, as a range where they are one."""
    if usd is None:
        return "unknown"
    return f"{usd.mid:,.0f}" if usd.is_exact else f"{usd.low:,.0f}–{usd.high:,.0f}"
