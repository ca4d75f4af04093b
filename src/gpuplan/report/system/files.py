"""Files of a checked system or a design: checklist, drawings of networks and racks, the bill.

Racks as a drawing: machines in their slots, draw of each rack against what it may draw.
"""

import csv
import io
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from gpuplan.domain.system.check import SystemCheck
from gpuplan.domain.system.designed import DesignedPlan
from gpuplan.domain.system.facility import ChecklistItem, FacilityPlan, RackSlot
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.errors import InputError, one
from gpuplan.report.charts.svg import box, drawing, label, line
from gpuplan.report.system.fabric_svg import fabric_svg
from gpuplan.report.system.facility import checklist_markdown
from gpuplan.units import KW

UNIT_PX, RACK_W, GAP, TOP, LEFT = 9.0, 150.0, 40.0, 80.0, 40.0
PER_LINE = 6
MOST_RACKS = 24
USUAL_U = 42  # drawn where no slot is higher


def checklist_text(checked: SystemCheck) -> str:
    """Boxes to tick before nodes arrive; needs a described site."""
    return _checklist(checked.around.checklist, checked.name)


def design_checklist(designed: DesignedPlan) -> str:
    """Boxes to tick before nodes arrive."""
    return _checklist(designed.checklist, designed.name)


def _checklist(items: Sequence[ChecklistItem], name: str) -> str:
    if not items:
        fix = "describe site.rack or site.power_kw"
        raise one(InputError, name, "checklist", "no site is described", fix)
    return checklist_markdown(items, title=f"Before installation: {name}")


def fabric_drawing(checked: SystemCheck) -> str:
    """The compute network as it stands; where there is none, the first."""
    return _fabric(checked.around.fabrics, checked.name, "describe site.network")


def design_fabric_svg(designed: DesignedPlan) -> str:
    """The compute network, else the first one that was designed."""
    plans = [plan for made in designed.groups for plan in made.networks]
    return _fabric(plans, designed.name, "plan nodes of your own: rented ones come with a network")


def _fabric(plans: Sequence[FabricPlan], name: str, fix: str) -> str:
    if not plans:
        raise one(InputError, name, "fabric", "there is no network to draw", fix)
    return fabric_svg(next((p for p in plans if p.purpose.startswith("compute")), plans[0]))


def rack_drawing(checked: SystemCheck) -> str:
    """Every rack with its nodes; needs a described site and nodes of known height."""
    return _racks(checked.around.facilities, checked.name)


def design_rack_svg(designed: DesignedPlan) -> str:
    """The racks of the first group that stands on the user's site."""
    plans = [made.facility for made in designed.groups if made.facility is not None]
    return _racks(plans, designed.name)


def _racks(plans: Sequence[FacilityPlan], name: str) -> str:
    known = [plan for plan in plans if plan.slots]
    if not known:
        fix = "describe site.rack, and name nodes that the catalog knows"
        raise one(InputError, name, "racks", "no heights are known", fix)
    return rack_svg(known[0])


def statement_csv(designed: DesignedPlan) -> str:
    """Every line of the bill, a column for each month, in dollars; month 0 is today."""
    statement = designed.money.statement
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    months = [f"month {m}" for m in range(statement.n_months + 1)]
    writer.writerow(["cause", "for", "price from", *months, "all"])
    for row in statement.lines:
        writer.writerow([row.category, row.name, row.source, *_dollars(row.cents)])
    writer.writerow(["all", "", "", *_dollars(statement.cents_by_month)])
    return out.getvalue()


def _dollars(cents: Sequence[int]) -> list[str]:
    """By month, and their sum."""
    return [f"{value / 100:.2f}" for value in (*cents, sum(cents))]


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
