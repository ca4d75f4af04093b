"""`gpuplan diagnose` and `score`: what telemetry says, and whether limits are kept."""

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.cli.options import Json, Output
from gpuplan.cli.output import Form, busy, chosen, emit
from gpuplan.cli.scenario import write_whole

if TYPE_CHECKING:
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest, Diagnosis

Source = Annotated[
    str, typer.Argument(help="A file, - for standard input, or the address of a Prometheus server.")
]
On = Annotated[str | None, typer.Option("--on", help="Accelerator, where the source names none.")]
UsdPerH = Annotated[float | None, typer.Option("--usd-per-h", min=0, help="Of one accelerator.")]
Ttft = Annotated[
    float | None, typer.Option("--slo-ttft-ms", min=0, help="Recall counts what came within it.")
]
Beta = Annotated[float, typer.Option(min=0.01, help="How much a miss weighs against waste.")]
Hours = Annotated[float, typer.Option(min=0.01, help="Of a server: how far back.")]
Step = Annotated[float, typer.Option("--step-s", min=0.1, help="Of a server: between samples.")]
Matcher = Annotated[str, typer.Option(help='Of a server: narrows series, e.g. namespace="a".')]
Header = Annotated[list[str] | None, typer.Option(help="Of a server: NAME: VALUE.")]
Ca = Annotated[str, typer.Option("--ca-file", help="Of a server: authority to trust.")]
Cert = Annotated[str, typer.Option("--cert-file", help="Of a server: client certificate.")]
Key = Annotated[str, typer.Option("--key-file", help="Of a server: its key.")]
ReclaimOut = Annotated[
    Path | None, typer.Option("--reclaim", help="Write dry-run patches for idle pods (YAML).")
]
MinPrecision = Annotated[float | None, typer.Option(min=0, max=1, help="0 to 1, at least.")]
MinRecall = Annotated[float | None, typer.Option(min=0, max=1, help="0 to 1, at least.")]
MaxPeak = Annotated[float | None, typer.Option(min=0, max=1, help="Peak minute, at most.")]
MinMean = Annotated[float | None, typer.Option(min=0, max=1, help="Mean use, at least.")]
MaxWaste = Annotated[float | None, typer.Option(help="USD a month, at most.")]
FailOn = Annotated[
    str | None, typer.Option(help="A verdict so grave breaks it: note, waste, slow or fault.")
]


def diagnose(
    source: Source,
    on: On = None,
    usd_per_h: UsdPerH = None,
    slo_ttft_ms: Ttft = None,
    beta: Beta = 1.0,
    hours: Hours = 1.0,
    step_s: Step = 30.0,
    matcher: Matcher = "",
    header: Header = None,
    ca_file: Ca = "",
    cert_file: Cert = "",
    key_file: Key = "",
    reclaim: ReclaimOut = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Bands, peaks, waste and causes of what monitoring saw, and what helps.

    Secrets for a server come from GPUPLAN_TOKEN, or GPUPLAN_USER and GPUPLAN_PASSWORD.
    """
    from gpuplan import api

    asked = _asked(on, usd_per_h, slo_ttft_ms, beta)
    server: dict[str, object] = {
        "matcher": matcher, "ca_file": ca_file, "cert_file": cert_file, "key_file": key_file,
        "headers": _headers(header or []),
    }  # fmt: skip
    found = _diagnosis(source, asked, hours=hours, step_s=step_s, server=server)
    if reclaim is not None:
        write_whole(reclaim, api.reclaim_patches(found))
        typer.echo(f"wrote {reclaim}: marks to try, nothing is stopped", err=True)
    emit(api.diagnose_sheet(found), chosen(output, as_json=as_json))


def score(
    source: Source,
    on: On = None,
    usd_per_h: UsdPerH = None,
    slo_ttft_ms: Ttft = None,
    beta: Beta = 1.0,
    min_precision: MinPrecision = None,
    min_recall: MinRecall = None,
    max_peak: MaxPeak = None,
    min_mean: MinMean = None,
    max_waste: MaxWaste = None,
    fail_on: FailOn = None,
    hours: Hours = 1.0,
    step_s: Step = 30.0,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Hold telemetry against limits; ends with 4 where one is broken."""
    from gpuplan import api
    from gpuplan.domain.telemetry.diagnosis import ScoreLimits
    from gpuplan.errors import InputError, one

    if fail_on not in (None, "note", "waste", "slow", "fault"):
        fix = "use note, waste, slow or fault"
        raise one(InputError, "score", "--fail-on", f"got {fail_on!r}", fix)
    asked = _asked(on, usd_per_h, slo_ttft_ms, beta)
    found = _diagnosis(source, asked, hours=hours, step_s=step_s, server={})
    limits = ScoreLimits(
        precision_frac=min_precision, recall_frac=min_recall, peak_frac=max_peak,
        mean_least_frac=min_mean, waste_usd_per_month=max_waste, worst=fail_on,  # type: ignore[arg-type]
    )  # fmt: skip
    broken = api.score(found, limits)
    emit(api.score_sheet(found, broken), chosen(output, as_json=as_json))
    if broken:
        raise typer.Exit(4)


def _asked(
    on: str | None, usd_per_h: float | None, ttft_ms: float | None, beta: float
) -> "DiagnoseRequest":
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest

    return DiagnoseRequest(
        accelerator=on, usd_per_h=usd_per_h, beta_ratio=beta,
        ttft_limit_s=None if ttft_ms is None else ttft_ms / 1e3,
    )  # fmt: skip


def _diagnosis(
    source: str, asked: "DiagnoseRequest", *, hours: float, step_s: float, server: dict[str, object]
) -> "Diagnosis":
    from gpuplan import api
    from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow

    if source == "-":
        return api.diagnose_text(sys.stdin.read(), asked)
    if source.startswith(("http://", "https://")):
        now_s = time.time()
        window = TimeWindow(begin_s=now_s - hours * 3600.0, end_s=now_s, step_s=step_s)
        access = ServerAccess(
            url=source,
            token=os.environ.get("GPUPLAN_TOKEN", ""),
            user=os.environ.get("GPUPLAN_USER", ""),
            password=os.environ.get("GPUPLAN_PASSWORD", ""),
            **server,  # type: ignore[arg-type]
        )
        with busy("reading the server"):
            return api.diagnose(access, asked, window=window)
    with busy("reading telemetry"):
        return api.diagnose(Path(source), asked)


def _headers(lines: list[str]) -> tuple[tuple[str, str], ...]:
    from gpuplan.errors import InputError, one

    pairs = [line.partition(":") for line in lines]
    wrong = [line for line, (_, colon, _) in zip(lines, pairs, strict=True) if not colon]
    if wrong:
        raise one(InputError, "diagnose", "--header", f"got {wrong[0]!r}", "write NAME: VALUE")
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)
