"""Top: recorded or live telemetry -> frames for a screen."""

from collections.abc import Iterator
from pathlib import Path

from gpuplan.diagnose.top import frame_at, headline, moments, until
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow, TopFrame
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import InputError, one
from gpuplan.observe.prometheus_live import read_prometheus
from gpuplan.observe.read import read_telemetry
from gpuplan.pipeline.diagnose import diagnose


def recorded_frames(path: Path, *, n_frames: int) -> Iterator[TopFrame]:
    """A recording as frames for a screen; the last is its end."""
    telemetry = read_telemetry(path)
    if not telemetry.series:
        raise one(InputError, str(path), "telemetry", "holds no series", "give samples over time")
    for at_s in moments(telemetry, n_frames):
        observed = until(telemetry, at_s)
        yield frame_at(observed, at_s, headline_of(observed))


def live_frame(access: ServerAccess, *, now_s: float, back_s: float, step_s: float) -> TopFrame:
    """A server, now."""
    window = TimeWindow.until(now_s, look_back_s=back_s, step_s=step_s)
    telemetry = read_prometheus(access, window)
    return frame_at(telemetry, now_s, headline_of(telemetry))


def headline_of(telemetry: Telemetry) -> str:
    """The gravest cause that is seen."""
    is_silent = not telemetry.series
    return headline(() if is_silent else diagnose(telemetry, DiagnoseRequest()).verdicts)
