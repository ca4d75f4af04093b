"""`gpuplan probe`: the short benchmark runs that are worth most to a plan."""

from pathlib import Path
from typing import Annotated, NamedTuple

from gpuplan.cli.options import (
    ANALYSIS,
    Calibration,
    Json,
    Output,
    Overlay,
    Store,
    arg,
    opt,
    user_store,
)
from gpuplan.cli.output import Form, busy, chosen, emit


class ProbeOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    file: Annotated[Path, arg("Plan file, written by `gpuplan plan … --out plan.yaml`.")]
    runs: Annotated[int, opt(ANALYSIS, "Maximum number of runs to propose.", min=1, max=3)] = 3
    months: Annotated[
        float, opt(ANALYSIS, "Months that the decision stands.", min=0.1, max=120)
    ] = 12.0
    budget_usd: Annotated[
        float | None, opt(ANALYSIS, "Maximum cost of all runs, USD.", "--budget-usd", min=0)
    ] = None
    overlay: Overlay = None
    store: Store = None
    calibration: Calibration = None
    output: Output = Form.TABLE
    as_json: Json = False


def probe(options: ProbeOptions) -> None:
    """Find the short benchmark runs that reduce the risk of a plan most per dollar."""
    from gpuplan import api
    from gpuplan.domain.plan.probe import ProbeRequest

    request = ProbeRequest(
        n_most=options.runs, n_months=options.months, budget_usd=options.budget_usd
    )
    with busy("weighing measurements"):
        found = api.probe(
            options.file,
            request,
            overlays=options.overlay or (),
            store=user_store(options.store),
            calibration=options.calibration,
        )
    emit(api.probe_sheet(found), chosen(options.output, as_json=options.as_json))
