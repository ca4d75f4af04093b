"""`gpuplan explain`, `verify`, `diff` and `report`: what a plan file says, and whether it is so.

`gpuplan probe`: the short benchmark runs that are worth most to a plan.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from gpuplan import api
from gpuplan.cli.command import OUTPUT, Form
from gpuplan.cli.options import (
    ANALYSIS,
    Calibration,
    Overlay,
    Store,
    arg,
    opt,
    option,
    user_store,
)
from gpuplan.cli.output import busy, emit, write_whole


class ProbeOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    file: Annotated[Path, arg("Plan file, written by `gpuplan plan … --out plan.yaml`.")]
    n_most: int = option(
        ANALYSIS, "Maximum number of runs to propose.", "--runs", default=3, min=1, max=3
    )
    n_months: float = option(
        ANALYSIS, "Months that the decision stands.", "--months", default=12.0, min=0.1, max=120
    )
    budget_usd: float | None = option(
        ANALYSIS, "Maximum cost of all runs, USD.", "--budget-usd", min=0
    )
    overlay: Overlay = None
    store: Store = None
    calibration: Calibration = None


File = Annotated[Path, arg("Plan file, written by `gpuplan plan … --out plan.yaml`.")]
Before = Annotated[Path, arg("Plan file, or a table of measured runs (CSV).")]
Other = Annotated[
    Path, arg("Newer plan file, costs exported by OpenCost (JSON), or newer runs (CSV).")
]
Tolerance = Annotated[
    float, opt(ANALYSIS, "Change of a measured figure that is no regression, 0.05 is 5 %.", min=0)
]
PageOut = Annotated[
    Path | None, opt(OUTPUT, "File to write; the plan's name with .html by default.", "--out")
]


class ReportForm(StrEnum):
    """Formats of a report."""

    HTML = "html"
    MD = "md"
    JSON = "json"
    CSV = "csv"
    XLSX = "xlsx"


def explain(file: File, form: Form) -> None:
    """Explain a plan: why this one, why not the others, where each number comes from."""
    emit(api.explain_sheet(api.explain(file)), form)


def learn(
    source: Annotated[Path, arg("Plan file (YAML), or telemetry in any format of `diagnose`.")],
    form: Form,
) -> None:
    """Learn from a plan or telemetry: takeaways, lessons, pitfalls, questions."""
    emit(api.learn_sheet(api.learn(source)), form)


def verify(file: File, form: Form, overlay: Overlay = None, store: Store = None) -> None:
    """Verify a plan with an independent checker; exit with code 4 on any disagreement."""
    found = api.verify(file, overlays=overlay or (), store=user_store(store))
    emit(api.verified_sheet(found), form)
    api.refuse_disagreement(str(file), found.checks, "make the plan anew with gpuplan plan")


def diff(file: Before, other: Other, form: Form, tolerance: Tolerance = 0.05) -> None:
    """Compare two plans, a plan with its actual cost (OpenCost), or two measured runs (CSV).

    Of runs, versions that changed are named; a figure that got worse beyond the tolerance exits
    with code 4.
    """
    if file.suffix == other.suffix == ".csv":
        found = api.compare_runs(file, other, tolerance)
        emit(api.runs_sheet(found), form)
        return api.refuse_regression(found)
    if other.suffix == ".json":
        return emit(api.actual_sheet(api.diff_costs(file, other)), form)
    old, new = api.diff(file, other)
    return emit(api.diff_sheet(old, new), form)


def report(
    file: File,
    out: PageOut = None,
    to: Annotated[
        ReportForm | None, opt(OUTPUT, "Format; by default the one that --out ends with, or HTML.")
    ] = None,
    charts: Annotated[
        Path | None, opt(OUTPUT, "Folder for each chart as SVG and PNG.", "--charts")
    ] = None,
) -> None:
    """Write a plan as a page for who decides: cost, risks, next steps, reasons, charts."""
    kind = to or _kind_of(out)
    target = out if out is not None else file.with_suffix(f".{kind}")
    write_whole(target, api.report(file, kind))
    typer.echo(f"wrote {target}", err=True)
    if charts is None:
        return
    charts.mkdir(parents=True, exist_ok=True)
    for name, content in api.report_charts(file):
        write_whole(charts / name, content)
        typer.echo(f"wrote {charts / name}", err=True)


def _kind_of(out: Path | None) -> ReportForm:
    ending = out.suffix.lstrip(".").lower() if out is not None else ""
    return ReportForm(ending) if ending in list(ReportForm) else ReportForm.HTML


def probe(options: ProbeOptions, form: Form) -> None:
    """Find the short benchmark runs that reduce the risk of a plan most per dollar."""
    from gpuplan.domain.plan.probe import ProbeRequest
    from gpuplan.domain.requests.typed import request_of

    request = request_of(ProbeRequest, options)
    with busy("weighing measurements"):
        found = api.probe(
            options.file,
            request,
            overlays=options.overlay or (),
            store=user_store(options.store),
            calibration=options.calibration,
        )
    emit(api.probe_sheet(found), form)
