"""`gpuplan forecast`: what demand will be, and when to order."""

from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Output
from gpuplan.cli.output import Form, busy, chosen, emit

Source = Annotated[Path, typer.Argument(help="Telemetry: any file that `gpuplan diagnose` reads.")]
Metric = Annotated[
    str | None, typer.Option(help="What to forecast; the best of demand if left out.")
]
Hours = Annotated[float, typer.Option("--hours", min=0.1, max=168, help="How far ahead.")]
Step = Annotated[float | None, typer.Option("--step-s", min=1, help="Between values.")]
Devices = Annotated[int | None, typer.Option(min=1, help="Accelerators of the fleet.")]
Capacity = Annotated[float | None, typer.Option(help="Of the fleet, in the metric's unit.")]
Trigger = Annotated[float, typer.Option(min=0.01, max=1, help="Order when the peak reaches this.")]
Target = Annotated[float, typer.Option(min=0.01, max=1, help="Size new capacity for this use.")]
Lead = Annotated[float | None, typer.Option("--lead-weeks", min=0, help="From order to service.")]
Growth = Annotated[
    float | None, typer.Option(help="A month, e.g. 0.08; from the peaks if left out.")
]


def forecast(
    source: Source,
    metric: Metric = None,
    hours: Hours = 24.0,
    step_s: Step = None,
    devices: Devices = None,
    capacity: Capacity = None,
    trigger: Trigger = 0.85,
    target: Target = 0.80,
    lead_weeks: Lead = None,
    growth: Growth = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Demand ahead with its range, how the method did on the past, and when to order."""
    from gpuplan import api
    from gpuplan.domain.telemetry.forecast import ForecastRequest

    asked = ForecastRequest(
        metric=metric, horizon_s=hours * 3600.0, step_s=step_s, n_devices=devices,
        n_capacity=capacity, trigger_frac=trigger, target_frac=target,
        lead_s=None if lead_weeks is None else lead_weeks * 7 * 86400.0,
        growth_frac_per_month=growth,
    )  # fmt: skip
    with busy("looking back"):
        found = api.forecast(source, asked)
    emit(api.forecast_sheet(found), chosen(output, as_json=as_json))
