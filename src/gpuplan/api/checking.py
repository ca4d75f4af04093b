"""Verbs of checking a described system: check, its sheet, its drawings, its checklist."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.system import SystemCheck


def check(path: Path) -> "SystemCheck":
    """What a described system lacks, in order, and what would balance it."""
    from gpuplan.pipeline.check import check as verb

    return verb(path)


def refuse_system(checked: "SystemCheck") -> None:
    """Raise ViolationError where the system is rejected."""
    from gpuplan.pipeline.check import refuse_system as verb

    verb(checked)


def check_sheet(checked: "SystemCheck") -> "Sheet":
    """A judged system, ready to show."""
    from gpuplan.report.check import check_sheet as verb

    return verb(checked)


def checklist_text(checked: "SystemCheck") -> str:
    """What to see to before machines arrive, as Markdown."""
    from gpuplan.report.check_files import checklist_text as verb

    return verb(checked)


def fabric_svg(checked: "SystemCheck") -> str:
    """The first network as a drawing."""
    from gpuplan.report.check_files import fabric_drawing as verb

    return verb(checked)


def rack_svg(checked: "SystemCheck") -> str:
    """The racks as a drawing."""
    from gpuplan.report.check_files import rack_drawing as verb

    return verb(checked)
