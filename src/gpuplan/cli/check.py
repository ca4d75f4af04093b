"""`gpuplan check` and `design`: is a system balanced, powered and cooled; all around a plan."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gpuplan import api
from gpuplan.cli.command import OUTPUT, Form
from gpuplan.cli.options import ANALYSIS, arg, opt
from gpuplan.cli.output import busy, check_writable, deliver

if TYPE_CHECKING:
    from gpuplan.cli.output import FileToWrite

SystemFile = Annotated[Path, arg("Scenario with owned servers, site and workloads (YAML).")]
PlanFile = Annotated[Path, arg("Plan file, written by `gpuplan plan … --out plan.yaml`.")]
WhatIf = Annotated[
    list[str] | None,
    opt(ANALYSIS, "Scenario key to change, e.g. site.software.cuda=13.0; repeatable.", "--what-if"),
]
Statement = Annotated[
    Path | None, opt(OUTPUT, "Monthly cost statement to write (CSV).", "--statement")
]
Checklist = Annotated[
    Path | None, opt(OUTPUT, "Checklist before servers are delivered, to write (Markdown).")
]
Fabric = Annotated[Path | None, opt(OUTPUT, "Drawing of the network to write (SVG).", "--fabric")]
Racks = Annotated[Path | None, opt(OUTPUT, "Drawing of the racks to write (SVG).", "--racks")]
RentOrBuy = Annotated[
    Path | None, opt(OUTPUT, "Chart of renting against owning to write (SVG).", "--rent-or-buy")
]
Files = tuple[tuple[Path | None, Callable[[Any], str]], ...]


def check(
    file: SystemFile,
    form: Form,
    what_if: WhatIf = None,
    checklist: Checklist = None,
    fabric: Fabric = None,
    racks: Racks = None,
) -> None:
    """Check a system, present or intended: bottlenecks in order, power, cooling, hosts, network.

    Exits with code 4 when the system is rejected; with --what-if, after the change.
    """
    check_writable(checklist, fabric, racks)
    with busy("checking"):
        checked = api.check(file, tuple(what_if or ()))
        before = api.check(file) if what_if else None
    files = ((checklist, api.checklist_text), (fabric, api.fabric_svg), (racks, api.rack_svg))
    sheet = api.check_change_sheet(before, checked) if before else api.check_sheet(checked)
    deliver(sheet, form, _targets(files, checked))
    api.refuse_system(checked)


def design(
    file: PlanFile,
    form: Form,
    statement: Statement = None,
    fabric: Fabric = None,
    racks: Racks = None,
    rent_or_buy: RentOrBuy = None,
    checklist: Checklist = None,
) -> None:
    """Design what surrounds a plan: hosts, storage, network, site, spares, monthly cost, carbon.

    Exits with code 4 when a part of it is infeasible.
    """
    check_writable(statement, fabric, racks, rent_or_buy, checklist)
    with busy("designing"):
        designed = api.design(file)
    files = (
        (statement, api.statement_csv),
        (fabric, api.design_fabric_svg),
        (racks, api.design_rack_svg),
        (rent_or_buy, api.design_ways_svg),
        (checklist, api.design_checklist),
    )
    deliver(api.design_sheet(designed), form, _targets(files, designed))
    api.refuse_design(designed)


def _targets(files: Files, result: object) -> "list[FileToWrite]":
    return [(target, partial(text_of, result), "") for target, text_of in files]
