"""`gpuplan catalog`: the facts, their sources, findings, your own facts, and updated ones."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan import api
from gpuplan.cli.command import Form, add_to, group
from gpuplan.cli.options import Overlay, Store, arg, opt, user_store
from gpuplan.cli.output import busy, emit
from gpuplan.errors import CatalogError

if TYPE_CHECKING:
    from gpuplan.domain.requests.requests import UpdateRequest

FILTER = "Filter"
SOURCE = "Sources"
app = group("List, show, check, overlay and update the facts.")

Kind = Annotated[
    str,
    arg(
        "Kind of facts: accelerators, servers, network, storage, mig, models, offers, discounts, "
        "regions, software or sources."
    ),
]
Item = Annotated[str, arg("Accelerator, server, component or model.")]
Accelerator = Annotated[str | None, opt(FILTER, "Only offers with this accelerator.")]
Cloud = Annotated[str | None, opt(FILTER, "Only offers of this cloud provider.")]
Region = Annotated[str | None, opt(FILTER, "Only offers in this region.")]
File = Annotated[Path, arg("Catalog overlay file (YAML).")]
Clouds = Annotated[
    list[str] | None, opt(SOURCE, "Only prices of this cloud provider; repeatable.", "--cloud")
]
Models = Annotated[
    list[str] | None, opt(SOURCE, "Model whose config.json is fetched; repeatable.", "--model")
]
PriceUrl = Annotated[str | None, opt(SOURCE, "Base URL of the price tables.")]
ModelUrl = Annotated[str | None, opt(SOURCE, "Base URL of the model configs.")]
Folder = Annotated[
    Path | None,
    opt(SOURCE, "Price tables on disk (a checkout of the catalog) instead of a URL.", "--from"),
]
Plans = Annotated[list[Path] | None, opt(SOURCE, "Saved plan to price anew; repeatable.", "--plan")]
Gpuhunt = Annotated[bool, opt(SOURCE, "Live prices through gpuhunt (an extra) instead.")]
Force = Annotated[bool, opt(SOURCE, "Accept a price table that has lost most of its rows.")]
Timeout = Annotated[float, opt(SOURCE, "Timeout of each file, seconds.", min=1.0)]


def list_items(
    form: Form,
    kind: Kind = "accelerators",
    accelerator: Accelerator = None,
    cloud: Cloud = None,
    region: Region = None,
    overlay: Overlay = None,
    store: Store = None,
) -> None:
    """List all items of one kind."""
    sheet = api.catalog_list(
        kind,
        accelerator=accelerator,
        cloud=cloud,
        region=region,
        overlays=overlay or [],
        store=user_store(store),
    )
    emit(sheet, form)


def show(item: Item, form: Form, overlay: Overlay = None, store: Store = None) -> None:
    """Show one item: each fact with its source, rejected facts, and where it is for rent."""
    sheet = api.catalog_show(item, overlays=overlay or [], store=user_store(store))
    emit(sheet, form)


def check(form: Form, overlay: Overlay = None, store: Store = None) -> None:
    """Run the integrity rules; exits with code 5 when a fact is unsound."""
    today = datetime.now(tz=UTC).date()
    findings = api.catalog_check(today=today, overlays=overlay or [], store=user_store(store))
    emit(api.findings_sheet(findings, store=user_store(store)), form)
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(CatalogError.exit_code)


def overlay(file: File, form: Form) -> None:
    """Check your own facts, and show what they would change."""
    emit(api.catalog_overlay(file), form)


def update(
    form: Form,
    cloud: Clouds = None,
    model: Models = None,
    price_url: PriceUrl = None,
    model_url: ModelUrl = None,
    folder: Folder = None,
    plan: Plans = None,
    gpuhunt: Gpuhunt = False,
    force: Force = False,
    timeout: Timeout = 60.0,
    store: Store = None,
) -> None:
    """Update prices and model configs from their sources; unsound data changes nothing."""
    from gpuplan.domain.requests.requests import UpdateRequest

    request = UpdateRequest(
        clouds=tuple(cloud or ()),
        models=tuple(model or ()),
        price_url=price_url,
        model_url=model_url,
        folder=folder,
        plans=tuple(plan or ()),
        is_through_gpuhunt=gpuhunt,
        is_forced=force,
        timeout_s=timeout,
    )
    _update(request, user_store(store), form)


def _update(request: "UpdateRequest", store: Path, form: Form) -> None:
    """Fetch, and show what became of it."""
    today = datetime.now(tz=UTC).date()
    with busy("fetching"):
        report = api.catalog_update(request, store=store, today=today)
    emit(api.update_sheet(report), form)
    if not report.names("updated") and not report.names("unchanged"):
        raise typer.Exit(CatalogError.exit_code)


add_to(app, "list", list_items)
add_to(app, "show", show)
add_to(app, "check", check)
add_to(app, "overlay", overlay)
add_to(app, "update", update)
