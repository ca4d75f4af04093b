"""`gpuplan explain`, `diff` and `report`: what a plan file says, to people."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Output
from gpuplan.cli.output import Form, chosen, emit

File = Annotated[Path, typer.Argument(help="A plan that `gpuplan plan … --out` wrote.")]
Other = Annotated[Path, typer.Argument(help="The newer plan.")]
PageOut = Annotated[
    Path | None, typer.Option("--out", help="File to write; plan.html beside the plan by default.")
]


def explain(file: File, output: Output = Form.TABLE, as_json: Json = False) -> None:
    """Why this plan, and why not the others."""
    from gpuplan import api

    emit(api.explain_sheet(api.explain(file)), chosen(output, as_json=as_json))


def diff(file: File, other: Other, output: Output = Form.TABLE, as_json: Json = False) -> None:
    """What changed between two plans, and which inputs moved it."""
    from gpuplan import api

    old, new = api.diff(file, other)
    emit(api.diff_sheet(old, new), chosen(output, as_json=as_json))


def report(file: File, out: PageOut = None) -> None:
    """Write one self-contained page of the plan: answer, cost, reasons, charts."""
    from gpuplan import api
    from gpuplan.cli.scenario import write_whole

    target = out if out is not None else file.with_suffix(".html")
    write_whole(target, api.report(file))
    typer.echo(f"wrote {target}", err=True)
