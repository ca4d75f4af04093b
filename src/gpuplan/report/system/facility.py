"""A site as a sheet: power at every level, racks, power caps, cooling, findings; its checklist."""

from collections.abc import Iterator, Sequence

from gpuplan.domain.sheet import Table
from gpuplan.domain.system.facility import CapChoice, ChecklistItem, FacilityPlan
from gpuplan.report.document import Document, pick, pick_each, result_document
from gpuplan.report.system.parts import finding_documents
from gpuplan.report.table import table
from gpuplan.units import KW, MM


def facility_document(plan: FacilityPlan) -> Document:
    """The site for machines."""
    heat = ("heat_w", "air_w", "liquid_w", "btu_per_h", "tons", "air_m3_per_s")
    units = ("cfm", "n_units", "unit_w")
    ups = ("load_w", "load_va", "bridge_s", "energy_j", "n_modules", "module_w")
    body = {
        **pick(plan, "n_racks", machine="node.name", n_machines="n_nodes", pue="pue_ratio"),
        **pick(plan.fit, n_machines_per_rack="n_nodes", rack_usable_w="usable_w"),
        "rack_used_w": plan.fit.used_w,
        "rack_limit": plan.fit.binding and pick(plan.fit.binding, "name", "text"),
        "levels": pick_each(plan.levels, "level", "idle_w", "typical_w", "max_w"),
        "cooling": pick(plan.cooling, *heat, *units),
        "ups": plan.ups and pick(plan.ups, *ups),
        "caps": [_cap(choice) for choice in plan.caps],
        "largest_cap": plan.largest_cap and _cap(plan.largest_cap),
        "physical": _physical(plan),
        "slots": pick_each(plan.slots, "rack", "bottom_u", "height_u", "name"),
        "findings": finding_documents(plan.findings),
    }
    return result_document(body, assumptions=plan.assumptions)


def _physical(plan: FacilityPlan) -> Document:
    depth_m = plan.node.depth_m
    return {
        "kg_per_rack": plan.rack_weight_kg,
        "kg_per_machine": plan.node.weight_kg,
        "depth_mm": None if depth_m is None else depth_m / MM,
        "depth_mm_limit": plan.fit.depth_m / MM,
    }


def _cap(choice: CapChoice) -> Document:
    cost = choice.slowdown_ratio
    return {
        **pick(choice, "cap_w", "node_w", "reason", n_machines_per_rack="fit.n_nodes"),
        "slowdown": cost and pick(cost, "low", "mid", "high"),
        "accepted": choice.is_accepted,
    }


def checklist_markdown(items: Sequence[ChecklistItem], *, title: str) -> str:
    """Boxes to tick before nodes arrive, by topic."""
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


def facility_tables(plan: FacilityPlan) -> Iterator[Table]:
    """Power at every level, and what capping it costs."""
    levels = {
        "level": lambda x: "all servers" if x.level == "machines" else x.level,
        ">idle (kW)": lambda x: _kw(x.idle_w),
        ">typical (kW)": lambda x: _kw(x.typical_w),
        ">max (kW)": lambda x: _kw(x.max_w),
    }
    caps = {
        ">cap (W)": lambda c: f"{c.cap_w:.0f}",
        ">node (kW)": lambda c: _kw(c.node_w),
        ">slowdown": _slowdown,
        "one more node fits": lambda c: "yes" if c.is_accepted else "no",
        "reason": lambda c: c.reason,
    }
    yield table("Power", plan.levels, levels)
    yield table("Power caps", plan.caps, caps)


def _slowdown(choice: CapChoice) -> str:
    cost = choice.slowdown_ratio
    return "unknown" if cost is None else f"{cost.low - 1:.0%} to {cost.high - 1:.0%}"


def _kw(power_w: float) -> str:
    return f"{power_w / KW:.2f}"
