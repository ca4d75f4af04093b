"""`gpuplan catalog`: the facts, their sources, their faults, your own, and fresh ones."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gpuplan.cli.options import Json, Output, Overlay, Store, user_store
from gpuplan.cli.output import Form, busy, chosen, emit
from gpuplan.errors import CatalogError

app = typer.Typer(
    help="List, show, check, overlay and update the facts.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

Kind = Annotated[
    str,
    typer.Argument(
        help="accelerators, servers, network, storage, mig, models, offers, discounts, regions, "
        "software or sources."
    ),
]
Item = Annotated[str, typer.Argument(help="An accelerator, server, part or model.")]
Accelerator = Annotated[str | None, typer.Option(help="Offers with this accelerator only.")]
Cloud = Annotated[str | None, typer.Option(help="Offers of this cloud only.")]
Region = Annotated[str | None, typer.Option(help="Offers in this region only.")]
File = Annotated[Path, typer.Argument(help="The overlay file (YAML).")]
Clouds = Annotated[
    list[str] | None, typer.Option("--cloud", help="Only this cloud's prices; may be repeated.")
]
Models = Annotated[
    list[str] | None, typer.Option("--model", help="Fetch this model's config; may be repeated.")
]
PriceUrl = Annotated[str | None, typer.Option(help="Another place for the price tables.")]
ModelUrl = Annotated[str | None, typer.Option(help="Another place for model configs.")]
Gpuhunt = Annotated[bool, typer.Option(help="Prices through gpuhunt (an extra) instead.")]
Force = Annotated[bool, typer.Option(help="Accept a table that has lost most of its rows.")]
Timeout = Annotated[float, typer.Option(min=1.0, help="Seconds for each file, in all.")]


@app.command("list")
def list_items(
    kind: Kind = "accelerators",
    accelerator: Accelerator = None,
    cloud: Cloud = None,
    region: Region = None,
    overlay: Overlay = None,
    store: Store = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """List everything of one kind."""
    from gpuplan import api

    sheet = api.catalog_list(
        kind,
        accelerator=accelerator,
        cloud=cloud,
        region=region,
        overlays=overlay or [],
        store=user_store(store),
    )
    emit(sheet, chosen(output, as_json=as_json))


@app.command("show")
def show(
    item: Item,
    overlay: Overlay = None,
    store: Store = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Show one item: every fact with its source, refused ones too, and where it is rented."""
    from gpuplan import api

    sheet = api.catalog_show(item, overlays=overlay or [], store=user_store(store))
    emit(sheet, chosen(output, as_json=as_json))


@app.command("check")
def check(
    overlay: Overlay = None,
    store: Store = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Run the integrity rules; ends with 5 when a fact is unsound."""
    from gpuplan import api

    today = datetime.now(tz=UTC).date()
    findings = api.catalog_check(today=today, overlays=overlay or [], store=user_store(store))
    emit(api.findings_sheet(findings), chosen(output, as_json=as_json))
    if any(finding.severity == "error" for finding in findings):
        raise typer.Exit(CatalogError.exit_code)


@app.command("overlay")
def overlay(file: File, output: Output = Form.TABLE, as_json: Json = False) -> None:
    """Check your own facts, and show what they would change."""
    from gpuplan import api

    emit(api.catalog_overlay(file), chosen(output, as_json=as_json))


@app.command("update")
def update(
    cloud: Clouds = None,
    model: Models = None,
    price_url: PriceUrl = None,
    model_url: ModelUrl = None,
    gpuhunt: Gpuhunt = False,
    force: Force = False,
    timeout: Timeout = 60.0,
    store: Store = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Refresh prices and model configs from their sources; what is unsound changes nothing."""
    from gpuplan import api
    from gpuplan.domain.requests.requests import UpdateRequest

    request = UpdateRequest(
        clouds=tuple(cloud or ()),
        models=tuple(model or ()),
        price_url=price_url,
        model_url=model_url,
        is_through_gpuhunt=gpuhunt,
        is_forced=force,
        timeout_s=timeout,
    )
    today = datetime.now(tz=UTC).date()
    with busy("fetching"):
        report = api.catalog_update(request, store=user_store(store), today=today)
    emit(api.update_sheet(report), chosen(output, as_json=as_json))
    if not report.names("updated") and not report.names("unchanged"):
        raise typer.Exit(CatalogError.exit_code)
