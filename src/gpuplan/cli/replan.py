"""`gpuplan replan`: a plan held against what happened, and what to change."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Out, Output
from gpuplan.cli.output import Form, busy, chosen, emit

PlanFile = Annotated[Path, typer.Argument(help="The plan that runs: `gpuplan plan … --out`.")]
Source = Annotated[Path, typer.Argument(help="Telemetry of its service.")]
Workload = Annotated[str | None, typer.Option(help="Which service, where there are several.")]
Tolerance = Annotated[float, typer.Option(min=0, help="Beyond the plan's own range: drift.")]
Hysteresis = Annotated[float, typer.Option(min=0, max=1, help="A saving that a move must bring.")]
Budget = Annotated[int | None, typer.Option("--max-change", min=1, help="Accelerators at once.")]
Growth = Annotated[float, typer.Option(help="To plan ahead for, e.g. 0.08.")]
Seed = Annotated[int, typer.Option(min=0, help="Of the sizing runs.")]


def replan(
    plan_file: PlanFile,
    source: Source,
    workload: Workload = None,
    tolerance: Tolerance = 0.20,
    hysteresis: Hysteresis = 0.05,
    max_change: Budget = None,
    growth: Growth = 0.0,
    seed: Seed = 0,
    out: Out = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """New plan, difference and advice; ends with 6 where reality drifted from the plan."""
    from gpuplan import api
    from gpuplan.cli.scenario import write_whole
    from gpuplan.domain.telemetry.replan import ReplanRequest

    asked = ReplanRequest(
        workload=workload, tolerance_frac=tolerance, hysteresis_frac=hysteresis,
        max_added_accelerators=max_change, growth_frac_per_month=growth, seed=seed,
        as_of=datetime.now(tz=UTC).date().isoformat(),
    )  # fmt: skip
    with busy("planning again"):
        found = api.replan(plan_file, source, asked)
    emit(api.replan_sheet(found), chosen(output, as_json=as_json))
    if out is not None:
        write_whole(out, api.plan_text(found.new))
        typer.echo(f"wrote {out}", err=True)
    if found.has_drifted:
        raise typer.Exit(6)
