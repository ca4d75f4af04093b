"""`gpuplan check`: is a described system balanced, fed, powered and cooled; a gate."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Output
from gpuplan.cli.output import Form, busy, chosen, emit

File = Annotated[
    Path, typer.Argument(help="A scenario with owned machines, site and workloads (YAML).")
]
Checklist = Annotated[
    Path | None, typer.Option(help="Write what to see to before machines arrive (Markdown).")
]
FabricDrawing = Annotated[Path | None, typer.Option("--fabric", help="Draw the network (SVG).")]
WhatIf = Annotated[
    list[str] | None,
    typer.Option("--what-if", help="key=value to set anew, e.g. site.software.cuda=13.0; repeat."),
]
RackDrawing = Annotated[Path | None, typer.Option("--racks", help="Draw the racks (SVG).")]


def check(
    file: File,
    checklist: Checklist = None,
    fabric: FabricDrawing = None,
    racks: RackDrawing = None,
    what_if: WhatIf = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Judge a system, present or intended: bottlenecks in order, power, cooling, hosts, network.

    Ends with 4 when the system is rejected; with --what-if, when it is after the change.
    """
    from gpuplan import api
    from gpuplan.cli.scenario import write_whole

    with busy("checking"):
        checked = api.check(file, tuple(what_if or ()))
        before = api.check(file) if what_if else None
    # Files first: a reader that has seen enough must not cost them.
    texts = ((checklist, api.checklist_text), (fabric, api.fabric_svg), (racks, api.rack_svg))
    for target, text_of in texts:
        if target is not None:
            write_whole(target, text_of(checked))
            typer.echo(f"wrote {target}", err=True)
    sheet = api.check_change_sheet(before, checked) if before else api.check_sheet(checked)
    emit(sheet, chosen(output, as_json=as_json))
    api.refuse_system(checked)
