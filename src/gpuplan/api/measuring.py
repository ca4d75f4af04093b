"""Verbs of the user's own runs: which to make, what they say of the model, and the plan after."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.domain.requests.plan import PlanBasis, PlanRequest

if TYPE_CHECKING:
    from gpuplan.domain.calibration.runs import CalibrationOutcome
    from gpuplan.domain.plan.probe import ProbeAdvice, ProbeRequest


def calibrate(
    paths: Sequence[Path], *, given: Mapping[str, str] | None = None, out: Path | None = None
) -> "CalibrationOutcome":
    """The inference model refitted to a user's own runs; written to a file where one is named."""
    from gpuplan.studies.validation.calibrate import calibrate as verb
    from gpuplan.studies.validation.calibrate import write_calibration

    outcome = verb(paths, given=given)
    if out is not None:
        write_calibration(outcome, out)
    return outcome


def probe(
    plan_file: Path,
    request: "ProbeRequest | None" = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
    calibration: Path | None = None,
) -> "ProbeAdvice":
    """The short benchmark runs that reduce the risk of a plan most per dollar."""
    from gpuplan.domain.plan.probe import ProbeRequest
    from gpuplan.pipeline.probe import probe_file as verb

    around = PlanRequest(
        target="",
        today=date.today(),
        overlays=tuple(overlays),
        store=store,
        basis=PlanBasis(calibration),
    )
    return verb(plan_file, request or ProbeRequest(), around=around)
