"""The verbs: one function each, the same in Python and on the command line.

The only module that the doors use. Each verb loads its rooms when it is called, so that asking
for help costs nothing.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.domain.requests import FitRequest

if TYPE_CHECKING:
    from gpuplan.domain.fit import Fit, Survey
    from gpuplan.domain.sheet import Sheet


def fit(
    model: str, on: str, request: FitRequest | None = None, *, overlays: Sequence[Path] = ()
) -> "Fit":
    """Does this model fit on this accelerator, and with what room to spare."""
    from gpuplan.pipeline.fit import fit as verb

    return verb(model, on, request or FitRequest(), overlays=overlays)


def survey(
    model: str, request: FitRequest | None = None, *, overlays: Sequence[Path] = ()
) -> "Survey":
    """Where this model fits: every accelerator of the catalog, fewest devices first."""
    from gpuplan.pipeline.fit import survey as verb

    return verb(model, request or FitRequest(), overlays=overlays)


def fit_sheet(answer: "Fit") -> "Sheet":
    """A fit, ready to show."""
    from gpuplan.report.fit import fit_sheet as verb

    return verb(answer)


def survey_sheet(found: "Survey") -> "Sheet":
    """A survey, ready to show."""
    from gpuplan.report.fit import survey_sheet as verb

    return verb(found)


def to_csv(sheet: "Sheet") -> str:
    """The tables of a sheet as comma-separated values."""
    from gpuplan.report.table import to_csv as verb

    return verb(sheet)


def to_markdown(sheet: "Sheet") -> str:
    """The tables of a sheet in Markdown."""
    from gpuplan.report.table import to_markdown as verb

    return verb(sheet)
