"""Verbs on what runs: diagnose, score, forecast, replan, watch."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest, Diagnosis, ScoreLimits
    from gpuplan.domain.telemetry.forecast import ForecastRequest, Outlook
    from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
    from gpuplan.domain.telemetry.replan import Replanned, ReplanRequest
    from gpuplan.domain.telemetry.top import TopFrame
    from gpuplan.domain.telemetry.watching import WatchPoint, WatchReading, WatchRequest
    from gpuplan.errors import Problem


def diagnose(
    source: "Path | ServerAccess",
    request: "DiagnoseRequest | None" = None,
    *,
    window: "TimeWindow | None" = None,
) -> "Diagnosis":
    """What telemetry says: bands, peaks, causes with evidence, waste, and what helps."""
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
    from gpuplan.errors import InputError, one
    from gpuplan.pipeline.diagnose import diagnose_file, diagnose_server

    asked = request or DiagnoseRequest()
    if isinstance(source, Path):
        return diagnose_file(source, asked)
    if window is None:
        raise one(InputError, "diagnose", "window", "missing", "say from when to when")
    return diagnose_server(source, window, asked)


def diagnose_text(text: str, request: "DiagnoseRequest | None" = None) -> "Diagnosis":
    """The same, of a text: a pasted table, a scrape."""
    from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
    from gpuplan.pipeline.diagnose import diagnose_text as verb

    return verb(text, request or DiagnoseRequest())


def diagnose_sheet(found: "Diagnosis") -> "Sheet":
    """A diagnosis, ready to show."""
    from gpuplan.report.telemetry.diagnosis import diagnose_sheet as verb

    return verb(found)


def score(found: "Diagnosis", limits: "ScoreLimits") -> "tuple[Problem, ...]":
    """Every limit that a fleet breaks."""
    from gpuplan.pipeline.diagnose import score as verb

    return verb(found, limits)


def score_sheet(found: "Diagnosis", broken: "tuple[Problem, ...]") -> "Sheet":
    """A score, ready to show."""
    from gpuplan.report.telemetry.diagnosis import score_sheet as verb

    return verb(found, broken)


def forecast(source: Path, request: "ForecastRequest | None" = None) -> "Outlook":
    """Demand ahead with its range and record, and when to order."""
    from gpuplan.domain.telemetry.forecast import ForecastRequest
    from gpuplan.pipeline.forecast import outlook_of_file as verb

    return verb(source, request or ForecastRequest())


def forecast_sheet(found: "Outlook") -> "Sheet":
    """A forecast, ready to show."""
    from gpuplan.report.telemetry.forecast import forecast_sheet as verb

    return verb(found)


def watch_look(
    request: "WatchRequest", kept: "Sequence[WatchPoint]", *, now_s: float
) -> "tuple[WatchReading, tuple[WatchPoint, ...]]":
    """One look of a watch: what is, what to do, and the past to keep."""
    from gpuplan.pipeline.watch import look as verb

    return verb(request, kept, now_s=now_s)


def autoscaler_manifest(kind: str, *, target: str, server: str) -> str:
    """An autoscaler that follows the published recommendation, as YAML."""
    from gpuplan.report.telemetry.autoscaler import autoscaler_manifest as verb

    return verb(kind, target=target, server=server)


def replan(plan_file: Path, telemetry: Path, request: "ReplanRequest | None" = None) -> "Replanned":
    """A plan held against what happened: drift, the new plan, and whether to move."""
    from gpuplan.domain.telemetry.replan import ReplanRequest
    from gpuplan.pipeline.replan import replan_files as verb

    return verb(plan_file, telemetry, request or ReplanRequest())


def replan_sheet(found: "Replanned") -> "Sheet":
    """A replan, ready to show."""
    from gpuplan.report.plan.replanning import replan_sheet as verb

    return verb(found)


def top_frames(path: Path, *, n_frames: int) -> "Iterator[TopFrame]":
    """A recording as frames for a screen."""
    from gpuplan.pipeline.top import recorded_frames as verb

    return verb(path, n_frames)


def top_live(access: "ServerAccess", *, now_s: float, back_s: float, step_s: float) -> "TopFrame":
    """A live server as one frame for a screen."""
    from gpuplan.pipeline.top import live_frame as verb

    return verb(access, now_s=now_s, back_s=back_s, step_s=step_s)


def reclaim_patches(found: "Diagnosis") -> str:
    """Marks for pods that hold accelerators and do nothing, as YAML to try; never a kill."""
    from gpuplan.report.telemetry.reclaim import reclaim_patches as verb

    return verb(found)
