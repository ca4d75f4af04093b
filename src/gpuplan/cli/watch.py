"""`gpuplan watch`: a service that looks at Prometheus and publishes recommendations."""

import os
from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str, typer.Argument(help="Address of the Prometheus server.")]
Listen = Annotated[str, typer.Option(help="HOST:PORT of /metrics and /healthz.")]
Every = Annotated[float, typer.Option("--every-s", min=1, help="Between two looks.")]
Back = Annotated[float, typer.Option("--look-back-s", min=60, help="How far each look reaches.")]
Step = Annotated[float, typer.Option("--step-s", min=1, help="Between samples.")]
State = Annotated[Path | None, typer.Option(help="File that keeps the past over restarts.")]
Matcher = Annotated[str, typer.Option(help='Narrows series, e.g. namespace="prod".')]
UsdPerH = Annotated[float | None, typer.Option("--usd-per-h", min=0, help="Of one accelerator.")]
Ttft = Annotated[float | None, typer.Option("--slo-ttft-ms", min=0, help="For recall.")]
Looks = Annotated[int | None, typer.Option(min=1, help="Stop after so many looks.")]
Manifest = Annotated[
    str | None, typer.Option(help="Print an autoscaler that uses the metrics: keda or hpa; end.")
]
Target = Annotated[str, typer.Option(help="Of the manifest: the Deployment to scale.")]


def watch(
    url: Url,
    listen: Listen = "127.0.0.1:9817",
    every_s: Every = 60.0,
    look_back_s: Back = 1800.0,
    step_s: Step = 30.0,
    state: State = None,
    matcher: Matcher = "",
    usd_per_h: UsdPerH = None,
    slo_ttft_ms: Ttft = None,
    looks: Looks = None,
    manifest: Manifest = None,
    target: Target = "inference",
) -> None:
    """Look at a monitoring server every minute; serve what it means as metrics.

    Secrets come from GPUPLAN_TOKEN, or GPUPLAN_USER and GPUPLAN_PASSWORD.
    """
    if manifest is not None:
        from gpuplan import api

        typer.echo(api.autoscaler_manifest(manifest, target=target, server=url), nl=False)
        return
    from gpuplan.domain.telemetry.monitoring import ServerAccess
    from gpuplan.domain.telemetry.watching import WatchRequest
    from gpuplan.server.watch import Watch, run

    host, port = _address(listen)
    access = ServerAccess(
        url=url, matcher=matcher, n_tries=2,
        token=os.environ.get("GPUPLAN_TOKEN", ""), user=os.environ.get("GPUPLAN_USER", ""),
        password=os.environ.get("GPUPLAN_PASSWORD", ""),
    )  # fmt: skip
    asked = WatchRequest(
        access=access, every_s=every_s, look_back_s=look_back_s, step_s=step_s,
        usd_per_h=usd_per_h, ttft_limit_s=None if slo_ttft_ms is None else slo_ttft_ms / 1e3,
    )  # fmt: skip
    typer.echo(f"serving http://{host}:{port}/metrics and /healthz", err=True)
    run(Watch(asked, state=state), host=host, port=port, n_looks=looks)


def _address(listen: str) -> tuple[str, int]:
    from gpuplan.errors import InputError, one

    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise one(InputError, "watch", "--listen", f"got {listen!r}", "write HOST:PORT")
    return host, int(port)
