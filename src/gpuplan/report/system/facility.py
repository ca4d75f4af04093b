"""A place as a sheet: draws at every level, racks, caps, cooling, objections; and its checklist."""

from collections.abc import Sequence
from typing import Any

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.domain.system.facility import (
    CapChoice,
    ChecklistItem,
    FacilityPlan,
    PowerLevel,
    UpsSize,
)
from gpuplan.domain.system.findings import Finding
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import KW


def facility_sheet(plan: FacilityPlan) -> Sheet:
    """The place, ready to show."""
    facility = plan.level("facility")
    head = (
        f"{plan.n_nodes} machines in {plan.n_racks} racks, {plan.fit.n_nodes} in each; "
        f"{plan.level('machines').max_w / KW:.1f} kW, {facility.max_w / KW:.1f} kW with cooling"
    )
    tables = [_levels(plan.levels)]
    tables += [_caps(plan.caps)] if plan.caps else []
    tables += [_findings(plan.findings)] if plan.findings else []
    return Sheet(
        document=facility_document(plan),
        tables=tuple(tables),
        head=head,
        remarks=(("Assumed:", assumption_lines(plan.assumptions)),),
    )


def facility_document(plan: FacilityPlan) -> dict[str, Any]:
    """The place for machines."""
    binding = plan.fit.binding
    return {
        "schema_version": SCHEMA_VERSION,
        "machine": plan.node.name,
        "n_machines": plan.n_nodes,
        "n_racks": plan.n_racks,
        "n_machines_per_rack": plan.fit.n_nodes,
        "rack_limit": None if binding is None else {"name": binding.name, "text": binding.text},
        "rack_usable_w": plan.fit.usable_w,
        "rack_used_w": plan.fit.used_w,
        "pue": plan.pue_ratio,
        "levels": [_level(level) for level in plan.levels],
        "cooling": {
            "heat_w": plan.cooling.heat_w,
            "air_w": plan.cooling.air_w,
            "liquid_w": plan.cooling.liquid_w,
            "btu_per_h": plan.cooling.btu_per_h,
            "tons": plan.cooling.tons,
            "air_m3_per_s": plan.cooling.air_m3_per_s,
        },
        "ups": None if plan.ups is None else _ups(plan.ups),
        "caps": [_cap(choice) for choice in plan.caps],
        "slots": [
            {"rack": s.rack, "bottom_u": s.bottom_u, "height_u": s.height_u, "name": s.name}
            for s in plan.slots
        ],
        "findings": [finding_document(finding) for finding in plan.findings],
        "assumptions": assumptions_document(plan.assumptions),
    }


def checklist_markdown(items: Sequence[ChecklistItem], *, title: str) -> str:
    """Boxes to tick before machines arrive, by topic."""
    lines = [f"# {title}", ""]
    for topic in dict.fromkeys(item.topic for item in items):
        lines += [f"## {topic}", ""]
        lines += [
            f"- [ ] **{item.item}**: {item.value} ({item.why})"
            for item in items
            if item.topic == topic
        ]
        lines.append("")
    return "\n".join(lines)


def _level(level: PowerLevel) -> dict[str, Any]:
    return {
        "level": level.level,
        "idle_w": level.idle_w,
        "typical_w": level.typical_w,
        "max_w": level.max_w,
    }


def _ups(ups: UpsSize) -> dict[str, Any]:
    return {
        "load_w": ups.load_w,
        "load_va": ups.load_va,
        "bridge_s": ups.bridge_s,
        "energy_j": ups.energy_j,
        "n_modules": ups.n_modules,
        "module_w": ups.module_w,
    }


def _cap(choice: CapChoice) -> dict[str, Any]:
    cost = choice.slowdown_ratio
    return {
        "cap_w": choice.cap_w,
        "node_w": choice.node_w,
        "n_machines_per_rack": choice.fit.n_nodes,
        "slowdown": None if cost is None else {"low": cost.low, "mid": cost.mid, "high": cost.high},
        "accepted": choice.is_accepted,
        "reason": choice.reason,
    }


def finding_document(finding: Finding) -> dict[str, str]:
    """An objection."""
    return {
        "severity": finding.severity,
        "rule": finding.rule,
        "where": finding.where,
        "what": finding.what,
        "fix": finding.fix,
    }


def _levels(levels: Sequence[PowerLevel]) -> Table:
    rows = tuple(
        (level.level, _kw(level.idle_w), _kw(level.typical_w), _kw(level.max_w)) for level in levels
    )
    columns = ("of", "idle kW", "typical kW", "highest kW")
    return Table(title="Power", columns=columns, rows=rows, right=columns[1:])


def _caps(caps: Sequence[CapChoice]) -> Table:
    rows = tuple(
        (
            f"{choice.cap_w:.0f}",
            _kw(choice.node_w),
            _slower(choice),
            "yes" if choice.is_accepted else "no",
            choice.reason,
        )
        for choice in caps
    )
    columns = ("cap W", "machine kW", "slower", "one more fits", "because")
    return Table(title="Power caps", columns=columns, rows=rows, right=columns[:2])


def _slower(choice: CapChoice) -> str:
    cost = choice.slowdown_ratio
    return "unknown" if cost is None else f"{cost.low - 1:.0%} to {cost.high - 1:.0%}"


def _findings(findings: Sequence[Finding]) -> Table:
    rows = tuple((f.severity, f.where, f.what, f.fix) for f in findings)
    return Table(title="Objections", columns=("", "where", "what", "what helps"), rows=rows)


def _kw(power_w: float) -> str:
    return f"{power_w / KW:.2f}"
