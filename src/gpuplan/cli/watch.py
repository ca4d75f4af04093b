"""`gpuplan watch`, and how every verb reaches a Prometheus server."""

import gc
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from gpuplan.cli.command import OUTPUT
from gpuplan.cli.options import SERVER, SLO, UsdPerH, arg, opt, option
from gpuplan.errors import InputError, one
from gpuplan.units import HOUR, MS

if TYPE_CHECKING:
    from gpuplan.domain.telemetry.monitoring import LiveSource, ServerAccess

SERVICE = "Service"
# Commands look for garbage rarely; what runs for days looks as often as Python itself does.
LONG_LIVED = (700, 10, 10)
Matcher = Annotated[str, opt(SERVER, 'Label matcher that selects series, e.g. namespace="prod".')]
HttpHeaders = Annotated[
    list[str] | None, opt(SERVER, "HTTP header to send, NAME: VALUE; repeatable.")
]


class WatchOptions(NamedTuple):
    """Options of the command, in the order of its help."""

    url: Annotated[str, arg("URL of the Prometheus server.")]
    listen: str = option(
        SERVICE, "HOST:PORT that serves /metrics and /healthz.", default="127.0.0.1:9817"
    )
    interval_s: float = option(
        SERVICE, "Seconds between two evaluations.", "--interval-s", default=60.0, min=1
    )
    state: Path | None = option(SERVICE, "State file that carries history over restarts.")
    iterations: int | None = option(SERVICE, "Number of evaluations before it exits.", min=1)
    look_back_s: float = option(
        SERVER, "Seconds of history per evaluation.", "--look-back-s", default=1800.0, min=60
    )
    step_s: float = option(
        SERVER, "Seconds between two samples (step).", "--step-s", default=30.0, min=1
    )
    matcher: Matcher = ""
    usd_per_h: UsdPerH = None
    slo_ttft_ms: float | None = option(
        SLO, "Target of time to first token (TTFT), ms, for recall.", "--slo-ttft-ms", min=0
    )
    manifest: str | None = option(OUTPUT, "Autoscaler manifest to print instead: keda or hpa.")
    target: str = option(OUTPUT, "Deployment that the manifest scales.", default="inference")


def watch(options: WatchOptions) -> None:
    """Watch a Prometheus server; serve recommendations as metrics.

    Secrets come from GPUPLAN_TOKEN, or GPUPLAN_USER and GPUPLAN_PASSWORD.
    """
    if options.manifest is not None:
        from gpuplan import api

        kind, target = options.manifest, options.target
        url = server_access(options.url).public_url
        typer.echo(api.autoscaler_manifest(kind, target=target, server=url), nl=False)
        return
    from gpuplan.domain.telemetry.monitoring import WatchRequest
    from gpuplan.server.watch import Watch, run

    host, port = _address(options.listen)
    ttft_ms = options.slo_ttft_ms
    request = WatchRequest(
        # A look ends before the reading of the one before is stale.
        access=server_access(
            options.url, matcher=options.matcher, n_tries=2, total_s=max(10.0, options.interval_s)
        ),
        every_s=options.interval_s,
        look_back_s=options.look_back_s,
        step_s=options.step_s,
        usd_per_h=options.usd_per_h,
        ttft_limit_s=None if ttft_ms is None else ttft_ms * MS,
    )
    gc.set_threshold(*LONG_LIVED)
    run(Watch(request, state=options.state), host=host, port=port, n_looks=options.iterations)


def server_access(url: str, **settings: Any) -> "ServerAccess":
    """A server and the secrets that the environment holds for it."""
    from gpuplan.domain.telemetry.monitoring import ServerAccess

    return ServerAccess(
        url=url,
        token=os.environ.get("GPUPLAN_TOKEN", ""),
        user=os.environ.get("GPUPLAN_USER", ""),
        password=os.environ.get("GPUPLAN_PASSWORD", ""),
        **settings,
    )


def telemetry_source(source: str, *, hours: float, step_s: float) -> "Path | LiveSource":
    """A telemetry file, or the last hours of a Prometheus server's URL."""
    from gpuplan.domain.telemetry.monitoring import LiveSource, TimeWindow

    if not source.startswith(("http://", "https://")):
        return Path(source)
    window = TimeWindow.until(time.time(), look_back_s=hours * HOUR, step_s=step_s)
    return LiveSource(access=server_access(source), window=window)


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        what = f"{listen!r} is not an address"
        raise one(InputError, "watch", "--listen", what, "write HOST:PORT")
    return host, int(port)
