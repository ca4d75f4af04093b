"""Verbs of what stands around accelerators: check a system, design around a plan; their files."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.system.check import SystemCheck
    from gpuplan.domain.system.designed import DesignedPlan


def check(path: Path, changes: tuple[str, ...] = ()) -> "SystemCheck":
    """What a described system lacks, in order, and what would balance it.

    Changes such as "site.software.cuda=13.0" are set before it is judged.
    """
    from datetime import date

    from gpuplan.studies.system_check.judge import check as verb

    return verb(path, changes=changes, month=date.today().isoformat()[:7])


def check_change_sheet(before: "SystemCheck", after: "SystemCheck") -> "Sheet":
    """What a change mends, brings and leaves, ready to show."""
    from gpuplan.report.system.change import change_sheet as verb

    return verb(before, after)


def refuse_system(checked: "SystemCheck") -> None:
    """Raise ViolationError where the system is rejected."""
    from gpuplan.studies.system_check.judge import refuse_system as verb

    verb(checked)


def check_sheet(checked: "SystemCheck") -> "Sheet":
    """A judged system, ready to show."""
    from gpuplan.report.system.check import check_sheet as verb

    return verb(checked)


def checklist_text(checked: "SystemCheck") -> str:
    """What to see to before machines arrive, as Markdown."""
    from gpuplan.report.system.files import checklist_text as verb

    return verb(checked)


def fabric_svg(checked: "SystemCheck") -> str:
    """The first network as a drawing."""
    from gpuplan.report.system.files import fabric_drawing as verb

    return verb(checked)


def rack_svg(checked: "SystemCheck") -> str:
    """The racks as a drawing."""
    from gpuplan.report.system.files import rack_drawing as verb

    return verb(checked)


def design(path: Path) -> "DesignedPlan":
    """A plan file with everything around it: hosts, network, place, money by month, carbon."""
    from gpuplan.studies.whole_design.assemble import design as verb

    return verb(path)


def refuse_design(designed: "DesignedPlan") -> None:
    """Raise ViolationError where something around the plan cannot be."""
    from gpuplan.studies.whole_design.assemble import refuse_design as verb

    verb(designed)


def design_sheet(designed: "DesignedPlan") -> "Sheet":
    """A designed plan, ready to show."""
    from gpuplan.report.system.design import design_sheet as verb

    return verb(designed)


def statement_csv(designed: "DesignedPlan") -> str:
    """The plan's bill by month as comma-separated values."""
    from gpuplan.report.system.design import statement_csv as verb

    return verb(designed)


def design_fabric_svg(designed: "DesignedPlan") -> str:
    """The plan's network as a drawing."""
    from gpuplan.report.system.design import design_fabric_svg as verb

    return verb(designed)


def design_rack_svg(designed: "DesignedPlan") -> str:
    """The plan's racks as a drawing."""
    from gpuplan.report.system.design import design_rack_svg as verb

    return verb(designed)


def design_ways_svg(designed: "DesignedPlan") -> str:
    """Renting against owning over the share of hours in use, as a chart."""
    from gpuplan.report.system.ownership import ways_svg as verb

    return verb(designed)


def design_checklist(designed: "DesignedPlan") -> str:
    """What to see to before the plan's machines arrive, as Markdown."""
    from gpuplan.report.system.design import design_checklist as verb

    return verb(designed)
