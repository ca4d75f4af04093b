"""Files of a checked system or a design: checklist, drawings of networks and racks, the bill."""

import csv
import io
from collections.abc import Sequence

from gpuplan.domain.system.check import SystemCheck
from gpuplan.domain.system.designed import DesignedPlan
from gpuplan.domain.system.facility import ChecklistItem, FacilityPlan
from gpuplan.domain.system.parts import FabricPlan
from gpuplan.errors import InputError, one
from gpuplan.report.system.fabric_svg import fabric_svg
from gpuplan.report.system.facility import checklist_markdown
from gpuplan.report.system.rack_svg import rack_svg


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
    for line in statement.lines:
        writer.writerow([line.category, line.name, line.source, *_dollars(line.cents)])
    writer.writerow(["all", "", "", *_dollars(statement.cents_by_month)])
    return out.getvalue()


def _dollars(cents: Sequence[int]) -> list[str]:
    """By month, and their sum."""
    return [f"{value / 100:.2f}" for value in (*cents, sum(cents))]
