"""What new prices change, in: rows fetched, offers in use, saved plans; out: what moved, how much.

A file of prices that is replaced stays in the store's history, under the day of its prices.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuplan.catalog.update.fetch import NOT_FOUND, FetchError, Limits
from gpuplan.catalog.update.rows import PriceRow
from gpuplan.catalog.update.store import PRICES, price_file, write_whole
from gpuplan.domain.money.market import Offer, PlanMove, PriceMove

HISTORY = "history"
SAME_FRAC = 2e-3


def moved_prices(rows: Iterable[PriceRow], present: Sequence[Offer]) -> tuple[PriceMove, ...]:
    """Machines that cost otherwise than before, the largest change first; new ones are none."""
    had = {(o.shape.name, o.shape.ram_bytes, o.region): o for o in present}
    moves = []
    for row in rows:
        offer = had.get((row.shape.name, row.shape.ram_bytes, row.region))
        if offer and abs(row.usd_per_h / offer.usd_per_h - 1) > SAME_FRAC:
            moves.append(
                PriceMove(
                    cloud=offer.cloud,
                    instance=offer.instance,
                    region=offer.region,
                    old_usd_per_h=offer.usd_per_h,
                    new_usd_per_h=row.usd_per_h,
                )
            )
    return tuple(sorted(moves, key=lambda move: -abs(move.change_frac)))


def keep_history(store: Path, cloud: str) -> None:
    """Copy the cloud's fetched prices, where there are any, before others replace them."""
    path = price_file(store, cloud)
    if path.is_file():
        content = path.read_bytes()
        last = content.decode("utf-8", "replace").rstrip().rpartition("\n")[2].split(",")
        day = last[-2] if len(last) > 1 else "unknown"
        write_whole(store / HISTORY / PRICES / f"{cloud} {day}.csv", content)


def folder_fetch(folder: Path, base_url: str, limits: Limits) -> Callable[[str], bytes]:
    """Files below a folder in place of those below an address: a checkout of the same tables."""

    def fetch(url: str) -> bytes:
        path = folder / url.removeprefix(base_url.rstrip("/") + "/")
        try:
            if path.stat().st_size > limits.max_bytes:
                raise FetchError(str(path), f"refused: more than {limits.max_bytes} bytes")
            return path.read_bytes()
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise FetchError(str(path), why, status=NOT_FOUND) from error

    return fetch


def moved_plan(name: str, document: Mapping[str, Any], moves: Sequence[PriceMove]) -> PlanMove:
    """What a saved plan costs a month as it was saved, and at the new prices of its machines."""
    new = {(m.cloud, m.instance, m.region): m.new_usd_per_h / m.old_usd_per_h for m in moves}
    pools = (document.get("plan") or {}).get("pools") or ()
    bought = [purchase for pool in pools for purchase in pool.get("purchases") or ()]
    before = after = 0.0
    for purchase in bought:
        usd = float(purchase.get("usd_per_month") or 0.0)
        key = tuple(purchase.get(part) or "" for part in ("cloud", "offer", "region"))
        before += usd
        after += usd * new.get(key, 1.0)  # type: ignore[arg-type]
    return PlanMove(plan=name, old_usd_per_month=before, new_usd_per_month=after)
