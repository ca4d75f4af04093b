"""The user's folder of fetched prices, in: checked rows; out: whole files, and offers read back.

Files appear by rename only: a reader sees the old file or the new one, never a part of one.
"""

import csv
import io
import math
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from gpuplan.catalog.update.rows import (
    SHAPE_COLUMNS,
    PriceRow,
    number_cell,
    shape_cells,
    shape_from,
)
from gpuplan.domain.money.market import Offer
from gpuplan.errors import CatalogError, one
from gpuplan.files import write_file

PRICES = "prices"
COLUMNS = ("cloud", *SHAPE_COLUMNS, "region", "usd_per_h", "spot_usd_per_h", "price_date", "source")


def source_label(source: str, day: date) -> str:
    """How a fetched price names where it is from: its date is the day of fetching."""
    return f"{source} fetched {day.isoformat()}"


def is_stored(offer: Offer) -> bool:
    """Whether the offer was fetched into a store, not shipped with the package."""
    return " fetched " in offer.source


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file by this content in one step; on any failure the old file stays."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content, is_lasting=True)
    except OSError as error:
        raise one(
            CatalogError,
            str(path),
            "store",
            f"cannot be written ({error.strerror or error})",
            "choose a folder that you may write to",
        ) from error


def write_prices(
    store: Path, cloud: str, rows: Iterable[PriceRow], *, day: date, source: str
) -> Path:
    """Keep a cloud's prices; machine and price stand in one file, so they change together."""
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows:
        usd, spot = number_cell(row.usd_per_h), number_cell(row.spot_usd_per_h)
        cells = shape_cells(row.shape)
        table.writerow([cloud, *cells, row.region, usd, spot, day.isoformat(), source])
    path = price_file(store, cloud)
    write_whole(path, text.getvalue().encode())
    return path


def price_file(store: Path, cloud: str) -> Path:
    """Where a cloud's fetched prices are kept."""
    return store / PRICES / f"{cloud}.csv"


def read_stored_offers(store: Path) -> dict[str, tuple[Offer, ...]]:
    """The fetched offers by cloud; a damaged file is an error that says how to repair it."""
    paths = sorted((store / PRICES).glob("*.csv"))
    return {path.stem: _read_file(path) for path in paths if not path.name.startswith(".")}


def _read_file(path: Path) -> tuple[Offer, ...]:
    try:
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        if not rows or tuple(rows[0]) != COLUMNS:
            raise ValueError("line 1: other columns than expected")
        return tuple(_offer(cells) for cells in rows[1:])
    except (OSError, ValueError, CatalogError, csv.Error) as error:
        raise one(
            CatalogError,
            str(path),
            "stored prices",
            f"cannot be read ({error})",
            "run `gpuplan catalog update`, or delete the file to use the packaged prices",
        ) from error


def _offer(cells: list[str]) -> Offer:
    cloud, *shape, region, usd_per_h, spot_usd_per_h, day, source = cells
    usd = _price(usd_per_h)
    return Offer(
        shape=shape_from(cloud, shape),
        region=region,
        usd_per_h=usd,
        spot_usd_per_h=_price(spot_usd_per_h) if spot_usd_per_h else None,
        price_date=date.fromisoformat(day),
        source=source,
    )


def _price(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"price {text}")
    return value
