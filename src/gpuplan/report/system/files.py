"""Files of a judged system: checklist, drawings of networks and racks."""

from gpuplan.domain.system.check import SystemCheck
from gpuplan.errors import InputError, one
from gpuplan.report.system.fabric_svg import fabric_svg
from gpuplan.report.system.facility import checklist_markdown
from gpuplan.report.system.rack_svg import rack_svg


def checklist_text(checked: SystemCheck) -> str:
    """Boxes to tick before machines arrive; needs a described place."""
    items = checked.around.checklist
    if not items:
        fix = "describe site.rack or site.power_kw"
        raise one(InputError, checked.name, "checklist", "no place is described", fix)
    return checklist_markdown(items, title=f"Before installation: {checked.name}")


def fabric_drawing(checked: SystemCheck) -> str:
    """The compute network as it stands; where there is none, the first."""
    fabrics = checked.around.fabrics
    if not fabrics:
        fix = "describe site.network"
        raise one(InputError, checked.name, "fabric", "no network is described", fix)
    plan = next((plan for plan in fabrics if plan.purpose == "compute"), fabrics[0])
    return fabric_svg(plan)


def rack_drawing(checked: SystemCheck) -> str:
    """Every rack with its machines; needs a described place and machines of known height."""
    plans = [plan for plan in checked.around.facilities if plan.slots]
    if not plans:
        fix = "describe site.rack, and name machines that the catalog knows"
        raise one(InputError, checked.name, "racks", "no heights are known", fix)
    return rack_svg(plans[0])
