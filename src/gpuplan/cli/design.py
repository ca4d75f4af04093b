"""`gpuplan design`: everything around a plan, and its whole bill by month."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Output
from gpuplan.cli.output import Form, busy, chosen, emit

File = Annotated[Path, typer.Argument(help="A plan that `gpuplan plan … --out` wrote.")]
Account = Annotated[Path | None, typer.Option("--statement", help="Write the bill by month (CSV).")]
Checklist = Annotated[
    Path | None, typer.Option(help="Write what to see to before machines arrive (Markdown).")
]
FabricDrawing = Annotated[Path | None, typer.Option("--fabric", help="Draw the network (SVG).")]
WaysChart = Annotated[Path | None, typer.Option("--ways", help="Draw rent against own (SVG).")]
RackDrawing = Annotated[Path | None, typer.Option("--racks", help="Draw the racks (SVG).")]


def design(
    file: File,
    statement: Account = None,
    fabric: FabricDrawing = None,
    racks: RackDrawing = None,
    ways: WaysChart = None,
    checklist: Checklist = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Hosts, storage, network, place, spares, money by month and carbon of a plan.

    Ends with 4 when something around the plan cannot be.
    """
    from gpuplan import api
    from gpuplan.cli.scenario import write_whole

    with busy("designing"):
        designed = api.design(file)
    # Files first: a reader that has seen enough must not cost them.
    texts = (
        (statement, api.statement_csv), (fabric, api.design_fabric_svg),
        (racks, api.design_rack_svg), (ways, api.design_ways_svg),
        (checklist, api.design_checklist),
    )  # fmt: skip
    for target, text_of in texts:
        if target is not None:
            write_whole(target, text_of(designed))
            typer.echo(f"wrote {target}", err=True)
    emit(api.design_sheet(designed), chosen(output, as_json=as_json))
    api.refuse_design(designed)
