"""`gpuplan diagnose` and `score`: what telemetry says, and whether limits are met."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gpuplan import api
from gpuplan.cli.command import OUTPUT, Form
from gpuplan.cli.options import (
    ANALYSIS,
    MODEL,
    SERVER,
    SLO,
    UsdPerH,
    accelerators_in,
    arg,
    opt,
    option,
)
from gpuplan.cli.output import busy, check_writable, deliver, emit
from gpuplan.cli.watch import HttpHeaders, Matcher, server_access
from gpuplan.errors import InputError, ViolationError, one
from gpuplan.units import HOUR

if TYPE_CHECKING:
    from gpuplan.cli.output import FileToWrite
    from gpuplan.domain.telemetry.diagnosis import BandEdges, DiagnoseRequest, Diagnosis

LIMITS = "Limits"
TERMINAL = "-"
Share = float | None
Source = Annotated[str, arg("Telemetry file, - for standard input, or a Prometheus server's URL.")]
On = Annotated[
    str | None, accelerators_in(MODEL, "Accelerator type, where the telemetry names none.")
]
Ttft = Annotated[
    float | None,
    opt(SLO, "Target of time to first token (TTFT), ms; recall counts it.", "--slo-ttft-ms", min=0),
]
Beta = Annotated[
    float, opt(ANALYSIS, "Beta of F-beta: weight of recall over precision.", "--beta", min=0.01)
]
Hours = Annotated[float, opt(SERVER, "Hours of history to read.", min=0.01)]
Step = Annotated[float, opt(SERVER, "Seconds between two samples (step).", "--step-s", min=0.1)]
Pool = Annotated[
    int | None,
    opt(MODEL, "GPUs in the pool, where the telemetry does not tell.", "--devices", min=1),
]
Bands = Annotated[
    str | None,
    opt(ANALYSIS, "Edges of the bands, percent: waste, good from, good to, overload, 30,70,90,95."),
]
FailOn = Annotated[
    str | None, opt(LIMITS, "Lowest severity that is a violation: note, waste, slow or fault.")
]


class DiagnoseOptions(NamedTuple):
    """Options of `diagnose`, in the order of its help."""

    source: Source
    accelerator: On = None
    expected_devices: Pool = None
    model: str | None = option(MODEL, "Model that is served, for MFU and MBU.")
    usd_per_h: UsdPerH = None
    ttft_limit_ms: Ttft = None
    beta_ratio: Beta = 1.0
    bands: Bands = None
    hours: Hours = 1.0
    step_s: Step = 30.0
    matcher: Matcher = ""
    header: HttpHeaders = None
    ca_file: str = option(SERVER, "CA certificate file to trust (PEM).", "--ca-file", default="")
    cert_file: str = option(SERVER, "Client certificate file (PEM).", "--cert-file", default="")
    key_file: str = option(SERVER, "Client key file (PEM).", "--key-file", default="")
    reclaim: Path | None = option(
        OUTPUT, "Dry-run patches for idle pods to write (YAML).", "--reclaim"
    )
    chart: str | None = option(
        OUTPUT,
        "Heat-map by team, node, GPU and time, throughput against demand: "
        "- for the terminal, FILE.svg, .html, .png or .txt.",
    )


class ScoreOptions(NamedTuple):
    """Options of `score`, in the order of its help."""

    source: Source
    accelerator: On = None
    expected_devices: Pool = None
    usd_per_h: UsdPerH = None
    ttft_limit_ms: Ttft = None
    beta_ratio: Beta = 1.0
    bands: Bands = None
    min_precision: Share = option(
        LIMITS, "Minimum precision (useful share of paid GPU time).", min=0, max=1
    )
    min_recall: Share = option(
        LIMITS, "Minimum recall (share of work done within SLO).", min=0, max=1
    )
    max_peak_utilization: Share = option(
        LIMITS, "Maximum utilization in the peak minute, 0 to 1.", min=0, max=1
    )
    min_mean_utilization: Share = option(LIMITS, "Minimum mean utilization, 0 to 1.", min=0, max=1)
    max_waste: Share = option(LIMITS, "Maximum waste, USD per month.")
    fail_on: FailOn = None
    hours: Hours = 1.0
    step_s: Step = 30.0


def diagnose(options: DiagnoseOptions, form: Form) -> None:
    """Diagnose telemetry: utilization bands, peaks, waste, causes, and what helps.

    Secrets of a server come from GPUPLAN_TOKEN, or GPUPLAN_USER and GPUPLAN_PASSWORD.
    """
    server: dict[str, object] = {
        "matcher": options.matcher,
        "ca_file": options.ca_file,
        "client_cert": (options.cert_file, options.key_file),
        "headers": _headers(options.header or []),
    }
    picture = _picture_kind(options.chart)
    chart = Path(options.chart) if options.chart not in (None, TERMINAL) else None
    check_writable(options.reclaim, chart)
    found = _diagnosis(options, server)
    note = ": a dry run, nothing is stopped"
    files: list[FileToWrite] = [
        (options.reclaim, lambda: api.reclaim_patches(found), note),
        (chart, lambda: _pictures(found, picture), ""),
    ]
    deliver(api.diagnose_sheet(found), form, files)
    if options.chart == TERMINAL:
        typer.echo(_pictures(found, picture), err=form is not Form.TABLE)


def _pictures(found: "Diagnosis", kind: str) -> str | bytes:
    if kind == "png":
        return api.svg_png(api.telemetry_pictures(found))
    return api.telemetry_pictures(found, kind)


def _picture_kind(chart: str | None) -> str:
    """How the pictures are written; InputError where the ending says nothing."""
    if chart in (None, TERMINAL):
        return "txt"
    kind = Path(chart or "").suffix.removeprefix(".")
    if kind not in ("svg", "html", "png", "txt"):
        fix = "use - for the terminal, or a file that ends in .svg, .html, .png or .txt"
        raise one(InputError, "diagnose", "--chart", f"{chart} has no known format", fix)
    return kind


def score(options: ScoreOptions, form: Form) -> None:
    """Score telemetry against limits; exits with code 4 when one is violated."""
    from gpuplan.domain.telemetry.diagnosis import ScoreLimits

    if options.fail_on not in (None, "note", "waste", "slow", "fault"):
        what, fix = f"unknown value {options.fail_on!r}", "use note, waste, slow or fault"
        raise one(InputError, "score", "--fail-on", what, fix)
    found = _diagnosis(options, {})
    limits = ScoreLimits(
        precision_frac=options.min_precision,
        recall_frac=options.min_recall,
        peak_frac=options.max_peak_utilization,
        mean_least_frac=options.min_mean_utilization,
        waste_usd_per_month=options.max_waste,
        worst=options.fail_on,  # type: ignore[arg-type]
    )
    violated = api.score(found, limits)
    emit(api.score_sheet(found, violated), form)
    if violated:
        raise typer.Exit(ViolationError.exit_code)


def _request(options: DiagnoseOptions | ScoreOptions) -> "DiagnoseRequest":
    from gpuplan.domain.requests.typed import request_of
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest

    return request_of(DiagnoseRequest, options, edges=_edges(options.bands))


def _edges(text: str | None) -> "BandEdges | None":
    """Edges of one's own; InputError unless four percentages rise."""
    from gpuplan.domain.telemetry.diagnosis import BandEdges

    if text is None:
        return None
    try:
        waste, good, hot, full = (float(part) / 100 for part in text.split(","))
    except ValueError:
        waste, good, hot, full = 1.0, 0.0, 0.0, 0.0
    if not 0 < waste < good < hot < full <= 1:
        fix = "write four rising percentages, e.g. 30,70,90,95"
        raise one(InputError, "diagnose", "--bands", f"{text!r} are no edges", fix)
    return BandEdges(waste_frac=waste, good_frac=good, hot_frac=hot, overload_frac=full)


def _diagnosis(options: DiagnoseOptions | ScoreOptions, server: dict[str, object]) -> "Diagnosis":
    from gpuplan.domain.telemetry.monitoring import TimeWindow

    source, request = options.source, _request(options)
    if source == "-":
        return api.diagnose_text(sys.stdin.read(), request)
    if source.startswith(("http://", "https://")):
        now_s = time.time()
        begin_s = now_s - options.hours * HOUR
        window = TimeWindow(begin_s=begin_s, end_s=now_s, step_s=options.step_s)
        with busy("reading the server"):
            return api.diagnose(server_access(source, **server), request, window=window)
    with busy("reading telemetry"):
        return api.diagnose(Path(source), request)


def _headers(lines: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = [line.partition(":") for line in lines]
    wrong = [line for line, (_, colon, _) in zip(lines, pairs, strict=True) if not colon]
    if wrong:
        what = f"{wrong[0]!r} is not a header"
        raise one(InputError, "diagnose", "--header", what, "write NAME: VALUE")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)
