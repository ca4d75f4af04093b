"""Verbs on facts: what fits, what the catalog knows, what a scenario says."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.domain.requests.requests import FitRequest, TrainingRequest, UpdateRequest

if TYPE_CHECKING:
    from datetime import date

    from gpuplan.domain.inference.fit import Fit, Survey
    from gpuplan.domain.money.market import UpdateReport
    from gpuplan.domain.scenario.scenario import Scenario
    from gpuplan.domain.sheet import Sheet
    from gpuplan.domain.system.findings import Finding
    from gpuplan.domain.training.fit import TrainingFit


def fit(
    model: str,
    on: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Fit":
    """Does this model fit on this accelerator, and with what room to spare."""
    from gpuplan.studies.fit import fit as verb

    return verb(model, on, request or FitRequest(), overlays=overlays, store=store)


def survey(
    model: str,
    request: FitRequest | None = None,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Survey":
    """Where this model fits: every accelerator of the catalog, fewest devices first."""
    from gpuplan.studies.fit import survey as verb

    return verb(model, request or FitRequest(), overlays=overlays, store=store)


def training_fit(
    model: str,
    on: str,
    request: TrainingRequest,
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "TrainingFit":
    """Does this training job fit, and with what room to spare."""
    from gpuplan.studies.fit import training_fit as verb

    return verb(model, on, request, overlays=overlays, store=store)


def training_sheet(answer: "TrainingFit") -> "Sheet":
    """A training fit, ready to show."""
    from gpuplan.report.prediction.training_fit import training_sheet as verb

    return verb(answer)


def fit_sheet(answer: "Fit") -> "Sheet":
    """A fit, ready to show."""
    from gpuplan.report.prediction.fit import fit_sheet as verb

    return verb(answer)


def survey_sheet(found: "Survey") -> "Sheet":
    """A survey, ready to show."""
    from gpuplan.report.prediction.fit import survey_sheet as verb

    return verb(found)


def catalog_list(
    kind: str,
    *,
    accelerator: str | None = None,
    cloud: str | None = None,
    region: str | None = None,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> "Sheet":
    """Everything of one kind that the catalog knows."""
    from gpuplan.pipeline.catalog import list_items as verb

    return verb(
        kind, accelerator=accelerator, cloud=cloud, region=region, overlays=overlays, store=store
    )


def catalog_show(item: str, *, overlays: Sequence[Path] = (), store: Path | None = None) -> "Sheet":
    """One item with the source of every number."""
    from gpuplan.pipeline.catalog import show_item as verb

    return verb(item, overlays=overlays, store=store)


def catalog_check(
    *, today: "date", overlays: Sequence[Path] = (), store: Path | None = None
) -> "tuple[Finding, ...]":
    """Every objection of the integrity rules."""
    from gpuplan.pipeline.catalog import check as verb

    return verb(today=today, overlays=overlays, store=store)


def catalog_overlay(path: Path) -> "Sheet":
    """What a user's overlay file changes."""
    from gpuplan.pipeline.catalog import overlay as verb

    return verb(path)


def catalog_update(request: UpdateRequest, *, store: Path, today: "date") -> "UpdateReport":
    """Fresh prices and model configs into the user's folder."""
    from gpuplan.pipeline.update import update as verb

    return verb(request, store=store, today=today)


def findings_sheet(findings: "Sequence[Finding]") -> "Sheet":
    """Findings, ready to show."""
    from gpuplan.pipeline.catalog import findings_sheet as verb

    return verb(findings)


def update_sheet(report: "UpdateReport") -> "Sheet":
    """What an update changed, ready to show."""
    from gpuplan.report.catalog.update import update_sheet as verb

    return verb(report)


def scenario_template(kind: str) -> str:
    """A commented scenario that is valid as written."""
    from gpuplan.pipeline.scenario import template as verb

    return verb(kind)


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    from gpuplan.pipeline.scenario import schema as verb

    return verb()


def read_scenario(path: Path) -> "Scenario":
    """A scenario file as a value, or every fault of it at once."""
    from gpuplan.pipeline.scenario import read as verb

    return verb(path)


def scenario_sheet(scenario: "Scenario", name: str) -> "Sheet":
    """A scenario, ready to show."""
    from gpuplan.report.plan.scenario import scenario_sheet as verb

    return verb(scenario, name)
