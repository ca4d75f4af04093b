"""Racks as a drawing: machines in their slots, draw of each rack against what it may draw."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from gpuplan.domain.system.facility import FacilityPlan, RackSlot
from gpuplan.report.charts.svg import box, drawing, label, line
from gpuplan.units import KW

UNIT_PX, RACK_W, GAP, TOP, LEFT = 9.0, 150.0, 40.0, 80.0, 40.0
PER_LINE = 6
MOST_RACKS = 24
USUAL_U = 42  # drawn where no slot is higher


def rack_svg(plan: FacilityPlan) -> str:
    """Every rack, up to two dozen; what is left out is said."""
    n_racks = 1 + max(slot.rack for slot in plan.slots)
    shown = min(n_racks, MOST_RACKS)
    height_u = max(USUAL_U, *(slot.bottom_u + slot.height_u - 1 for slot in plan.slots))
    rows = -(-shown // PER_LINE)
    row_h = height_u * UNIT_PX + 70
    parts = [label((LEFT, 30), _caption(plan, n_racks, shown), size=16)]
    for rack in range(shown):
        x = LEFT + (rack % PER_LINE) * (RACK_W + GAP)
        y = TOP + (rack // PER_LINE) * row_h
        slots = [slot for slot in plan.slots if slot.rack == rack]
        parts += _rack(plan, slots, (x, y), height_u=height_u)
    width = LEFT + max(4, min(shown, PER_LINE)) * (RACK_W + GAP)
    return drawing(width, TOP + rows * row_h, title=_caption(plan, n_racks, shown), parts=parts)


def _caption(plan: FacilityPlan, n_racks: int, shown: int) -> str:
    text = f"{plan.n_nodes} x {plan.node.name} in {n_racks} racks"
    return text if shown == n_racks else f"{text}, {shown} drawn"


def _rack(
    plan: FacilityPlan, slots: Sequence[RackSlot], place: tuple[float, float], *, height_u: int
) -> list[Element]:
    x, y = place
    whole = height_u * UNIT_PX
    parts = box(place, (RACK_W, whole), fill="#f8fafc")
    for unit in range(5, height_u, 5):
        at = y + whole - unit * UNIT_PX
        parts.append(line((x, at), (x + RACK_W, at), width=0.4))
        parts.append(label((x - 6, at + 4), str(unit), anchor="end", size=9))
    for slot in slots:
        top = y + whole - (slot.bottom_u + slot.height_u - 1) * UNIT_PX
        size = (RACK_W - 8, slot.height_u * UNIT_PX - 2)
        parts += box((x + 4, top + 1), size, fill="#bfdbfe", text=slot.name)
    rack = slots[0].rack + 1 if slots else 0
    drawn = len(slots) * plan.node.max_w / KW
    usable = plan.fit.usable_w
    limit = "" if usable is None else f" of {usable / KW:.1f}"
    parts.append(label((x, y + whole + 18), f"rack {rack}: {drawn:.1f}{limit} kW"))
    return parts
