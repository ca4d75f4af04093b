"""`gpuplan top`: a fleet on one screen, live or recorded."""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gpuplan import api
from gpuplan.cli.options import SERVER, arg, opt
from gpuplan.cli.watch import server_access

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from gpuplan.domain.columns import Floats
    from gpuplan.domain.telemetry.monitoring import TopFrame

SCREEN = "Screen"
Source = Annotated[str, arg("Telemetry file, or the URL of a Prometheus server.")]
Interval = Annotated[float, opt(SCREEN, "Seconds between two screens.", "--interval-s", min=0.05)]
Frames = Annotated[int, opt(SCREEN, "Number of screens of a recording.", min=1)]
Once = Annotated[bool, opt(SCREEN, "Print the last screen and exit.", "--once")]
Back = Annotated[float, opt(SERVER, "Seconds of history to read.", "--look-back-s", min=60)]
Step = Annotated[float, opt(SERVER, "Seconds between two samples (step).", "--step-s", min=1)]
TRAIL = " ▁▂▃▄▅▆▇█"
HEAD_ROWS = 8  # of a screen that are no device
TABLE_ROWS = 4  # of a table that are no row
FIGURE_COLUMNS = 58  # that figures of a device take, with the space between them
STYLE = {"waste": "blue", "under-used": "cyan", "good": "green", "hot": "yellow", "overload": "red"}


def top(
    source: Source,
    interval_s: Interval = 1.0,
    frames: Frames = 60,
    once: Once = False,
    look_back_s: Back = 600.0,
    step_s: Step = 15.0,
) -> None:
    """Show a fleet live or recorded: devices and engines by utilization; Ctrl-C quits."""
    from rich.console import Console

    is_live = source.startswith(("http://", "https://"))
    shown = _live(source, look_back_s, step_s) if is_live else _recorded(source, frames)
    console = Console()
    if once or not sys.stdout.isatty():
        last = next(shown) if is_live else list(shown)[-1]
        console.print(_screen(last, rows=64, columns=console.size.width))
        return
    from rich.live import Live

    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            for frame in shown:
                size = console.size
                shape = _screen(frame, rows=size.height - HEAD_ROWS, columns=size.width)
                live.update(shape, refresh=True)
                time.sleep(interval_s)
    except KeyboardInterrupt:
        return


def _recorded(source: str, frames: int) -> "Iterator[TopFrame]":
    return api.top_frames(Path(source), n_frames=frames)


def _live(source: str, back_s: float, step_s: float) -> "Iterator[TopFrame]":
    access = server_access(source, n_tries=2)
    while True:
        yield api.top_live(access, now_s=time.time(), back_s=back_s, step_s=step_s)


def _screen(frame: "TopFrame", *, rows: int, columns: int) -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    when = f"{frame.at_s:,.0f} s"
    if frame.at_s >= 1e9:
        when = datetime.fromtimestamp(frame.at_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    mean = "" if frame.mean_frac is None else f"  mean utilization {frame.mean_frac:.0%}"
    n_devices = f", {frame.n_devices} devices" if frame.n_devices else ""
    parts: list[RenderableType] = [
        Text(f"{when}{mean}{n_devices}", style="bold"),
        Text(frame.headline),
    ]
    n_engines = min(len(frame.engines), max(rows // 3, 3)) if frame.devices else max(rows, 4)
    if frame.devices:
        n_rows = max(rows - (n_engines + TABLE_ROWS if frame.engines else 0), 4)
        parts.append(_devices(frame, n_rows, columns))
        parts += _more(frame.n_devices - min(n_rows, len(frame.devices)), "devices")
    if frame.engines:
        parts.append(_engines(frame, n_engines))
        parts += _more(len(frame.engines) - n_engines, "engines")
    return Group(*parts)


def _more(n_hidden: int, what: str) -> "list[RenderableType]":
    return [f"and {n_hidden} more {what}"] if n_hidden > 0 else []


def _devices(frame: "TopFrame", rows: int, columns: int) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("device", "util", "", "SM", "tensor", "memory", "power", "temp"):
        table.add_column(name, justify="left" if name in ("device", "") else "right", no_wrap=True)
    names = max((len(device.name) for device in frame.devices[:rows]), default=6)
    n_trail = max(columns - FIGURE_COLUMNS - max(names, 6), 0)
    for device in frame.devices[:rows]:
        style = STYLE.get(device.band, "")
        trail = device.trail_frac[-n_trail:] if n_trail else device.trail_frac[:0]
        table.add_row(
            device.name,
            Text(_share(device.use_frac), style=style),
            Text(_trail(trail), style=style),
            _share(device.sm_frac),
            _share(device.tensor_frac),
            _share(device.memory_frac),
            "" if device.power_w is None else f"{device.power_w:.0f} W",
            "" if device.heat_c is None else f"{device.heat_c:.0f} °C",
        )
    return table


def _engines(frame: "TopFrame", rows: int) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("engine", "running", "waiting", "KV cache", "tokens/s"):
        table.add_column(name, justify="left" if name == "engine" else "right", no_wrap=True)
    for engine in frame.engines[:rows]:
        table.add_row(
            engine.name,
            _count(engine.n_running),
            _count(engine.n_waiting),
            _share(engine.cache_frac),
            _count(engine.output_tokens_per_s),
        )
    return table


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _trail(values: "Floats") -> str:
    return "".join(
        TRAIL[min(8, max(0, round(float(v) * 8)))] if v == v else " "  # noqa: PLR0124 NaN
        for v in values
    )
