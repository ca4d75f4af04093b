"""The user's folder of fetched prices, in: checked rows; out: whole files, and offers read back.

Files appear by rename only: a reader sees the old file or the new one, never a part of one.
"""

import contextlib
import csv
import io
import math
import os
import tempfile
import time
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

PRICES = "prices"
LEFTOVER_S = 3600.0
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
        _replace(path, content)
    except OSError as error:
        raise one(
            CatalogError,
            str(path),
            "store",
            f"cannot be written ({error.strerror or error})",
            "choose a folder that you may write to",
        ) from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)  # others on the machine may read prices
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    _sync_folder(path.parent)
    _clear_leftovers(path)


def _clear_leftovers(path: Path) -> None:
    """Remove what runs that were killed left beside the file; a run under way is younger."""
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > LEFTOVER_S:
                leftover.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the rename last through a power cut, where the system allows to sync a folder."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


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
