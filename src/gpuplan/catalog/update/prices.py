"""Prices made fresh, in: a source and a store; out: a report of what was replaced and what stayed.

Each cloud stands alone: its file is fetched, parsed and checked whole before it replaces anything,
and a failure leaves what was there. gpuhunt, an optional extra, brings more clouds and downloads by
itself; what it returns is checked like any source.
"""

import importlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuplan.catalog.offers import listed_offers
from gpuplan.catalog.update import skypilot
from gpuplan.catalog.update.clean import FLAT, IMPLAUSIBLE, Cleaned, clean
from gpuplan.catalog.update.fetch import FetchError, Limits, check_base_url, fetch_bytes
from gpuplan.catalog.update.models import SAME_FRAC, keep_history, moved_prices
from gpuplan.catalog.update.rows import PriceRow, RawRow
from gpuplan.catalog.update.store import is_stored, price_file, source_label, write_prices
from gpuplan.domain.money.market import CloudUpdate, Offer, UpdateReport, UpdateState
from gpuplan.errors import CatalogError, InputError, Problem, one

LIMITS = Limits(max_bytes=64_000_000, total_s=120.0)
FETCH = partial(fetch_bytes, limits=LIMITS)
COLLAPSE_FRAC = 0.5
MAX_IMPLAUSIBLE_FRAC = 0.2
MAX_TRIES = 3  # of a source that never answers
STAYS = "the prices in use stay as they are"


SOURCE = "gpuhunt"
# Our name of a cloud, and gpuhunt's: those that SkyPilot's files lack or have not priced lately.
PROVIDERS = {
    "azure": "azure",
    "crusoe": "crusoe",
    "cudo": "cudo",
    "nebius": "nebius",
    "oci": "oci",
    "vast": "vastai",
    "vultr": "vultr",
}


def update_from_gpuhunt(
    store: Path,
    *,
    today: date,
    providers: Sequence[str] = tuple(PROVIDERS),
    force: bool = False,
    query: Callable[..., Iterable[Any]] | None = None,
) -> UpdateReport:
    """Fetch these providers' prices by gpuhunt and keep those that are sound."""
    _check_providers(providers)
    ask = query or _query()
    present = offers_in_use(store)

    def rows_of(cloud: str) -> list[RawRow]:
        try:
            return [_row(item) for item in ask(provider=PROVIDERS[cloud], min_gpu_count=1)]
        except (OSError, RuntimeError) as error:
            raise FetchError(SOURCE, f"{type(error).__name__}: {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise one(CatalogError, SOURCE, cloud, what, "update gpuhunt") from error

    source = source_label(SOURCE, today)
    parts = update_each(
        store, providers, rows_of, present=present, label=(today, source), force=force
    )
    raise_if_offline(parts, SOURCE)
    return UpdateReport(fetched_on=today, source=SOURCE, parts=parts)


def _check_providers(providers: Sequence[str]) -> None:
    problems = [
        Problem("clouds", f"got {name!r}", f"one of {', '.join(PROVIDERS)}")
        for name in providers
        if name not in PROVIDERS
    ]
    if problems:
        raise InputError("catalog update", problems)


def _query() -> Callable[..., Iterable[Any]]:
    try:
        module = importlib.import_module("gpuhunt")
    except ImportError:
        raise one(
            InputError,
            "catalog update",
            SOURCE,
            "not installed",
            'run pip install "gpuplan[gpuhunt]"',
        ) from None

    def ask(**filters: object) -> list[Any]:
        try:
            return list(module.query(**filters))
        except module.GPUHuntError as error:
            raise RuntimeError(str(error)) from error

    return ask


def _row(item: Any) -> RawRow:
    """One item; on-demand and spot prices come as items of their own and meet when cleaned."""
    price = float(item.price)
    memory = "" if item.gpu_memory is None else f"-{item.gpu_memory:g}GB"
    name = str(item.gpu_name or "")
    return RawRow(
        instance=str(item.instance_name),
        accelerator=f"{name}{memory}" if name in ("A100", "V100") else name,
        n_accelerators=float(item.gpu_count),
        n_vcpu=float(item.cpu),
        ram_gib=float(item.memory),
        region=str(item.location),
        usd_per_h=None if item.spot else price,
        spot_usd_per_h=price if item.spot else None,
    )


def update_prices(
    store: Path,
    *,
    today: date,
    clouds: Sequence[str] | None = None,
    base_url: str = skypilot.BASE_URL,
    force: bool = False,
    fetch: Callable[[str], bytes] = FETCH,
) -> UpdateReport:
    """Fetch the clouds' prices and keep those that are sound; CatalogError if none was reached."""
    check_base_url(base_url)
    wanted = tuple(clouds) if clouds is not None else skypilot.CLOUDS
    _check_clouds(wanted)

    def rows_of(cloud: str) -> list[RawRow]:
        if cloud in skypilot.STALE_THERE:
            why = skypilot.STALE_THERE[cloud]
            raise one(CatalogError, skypilot.SOURCE, cloud, why, "ours are newer")
        return skypilot.parse(cloud, _text(cloud, base_url, fetch))

    present = offers_in_use(store)
    source = source_label(skypilot.SOURCE, today)
    parts = update_each(store, wanted, rows_of, present=present, label=(today, source), force=force)
    raise_if_offline(parts, urlsplit(base_url).netloc)
    return UpdateReport(fetched_on=today, source=base_url, parts=parts)


def offers_in_use(store: Path) -> tuple[Offer, ...]:
    """What plans use today; a damaged store must not keep an update from mending it."""
    try:
        return listed_offers(store)
    except CatalogError:
        return listed_offers()


def update_each(
    store: Path,
    clouds: Iterable[str],
    rows_of: Callable[[str], list[RawRow]],
    *,
    present: Iterable[Offer],
    label: tuple[date, str],
    force: bool,
) -> tuple[CloudUpdate, ...]:
    """What became of each cloud; one cloud's failure never touches another's prices."""
    by_cloud: dict[str, list[Offer]] = {}
    for offer in present:
        if offer.n_accelerators:
            by_cloud.setdefault(offer.cloud, []).append(offer)
    parts: list[CloudUpdate] = []
    for cloud in clouds:
        if len(parts) >= MAX_TRIES and all(part.state == "failed" for part in parts):
            parts.append(_part(cloud, "failed", f"not tried, the source is out of reach; {STAYS}"))
            continue
        try:
            cleaned = clean(cloud, rows_of(cloud))
            parts.append(
                _keep(
                    store, cloud, cleaned, present=by_cloud.get(cloud, []), label=label, force=force
                )
            )
        except FetchError as error:
            parts.append(_part(cloud, "failed", f"{error}; {STAYS}"))
        except CatalogError as error:
            why = "; ".join(str(problem) for problem in error.problems[:3])
            parts.append(_part(cloud, "refused", f"{why}; {STAYS}"))
    return tuple(parts)


def _keep(
    store: Path,
    cloud: str,
    cleaned: Cleaned,
    *,
    present: Sequence[Offer],
    label: tuple[date, str],
    force: bool,
) -> CloudUpdate:
    n_rows, n_dropped = len(cleaned.rows), sum(cleaned.dropped.values())
    doubt = _doubt(cleaned, len(present))
    if doubt and not (force and n_rows):
        return _part(cloud, "refused", f"{doubt}; {STAYS}", n_rows=n_rows, n_dropped=n_dropped)
    if _is_same(cleaned.rows, present):
        # The source states no date: prices that did not move are as old as they were.
        if not is_stored(present[0]):  # a damaged or outdated file would outlive its mending
            price_file(store, cloud).unlink(missing_ok=True)
        day = max(offer.price_date for offer in present)
        detail = f"same prices as those of {day.isoformat()}, whose date stands"
        return _part(cloud, "unchanged", detail, n_rows=n_rows, n_dropped=n_dropped)
    moves = moved_prices(cleaned.rows, present)
    keep_history(store, cloud)
    write_prices(store, cloud, cleaned.rows, day=label[0], source=label[1])
    detail = f"{n_rows} prices, {len(moves)} moved"
    detail += f"; forced although {doubt}" if doubt else ""
    part = _part(cloud, "updated", detail, n_rows=n_rows, n_dropped=n_dropped)
    return replace(part, moves=moves)


def _doubt(cleaned: Cleaned, n_present: int) -> str:
    """Why a file that parses is still not believed; empty if it is."""
    n_rows = len(cleaned.rows)
    n_odd = cleaned.dropped.get(IMPLAUSIBLE, 0) + cleaned.dropped.get(FLAT, 0)
    if n_rows == 0:
        return "no usable price in it"
    if n_rows < COLLAPSE_FRAC * n_present:
        return f"only {n_rows} prices where there were {n_present}"
    if n_odd > MAX_IMPLAUSIBLE_FRAC * (n_rows + n_odd):
        return f"{n_odd} of {n_rows + n_odd} prices are implausible"
    return ""


def _is_same(rows: Sequence[PriceRow], present: Sequence[Offer]) -> bool:
    """Whether every price is the one in use, but for the rounding of the tables."""
    had = {(o.shape.name, o.shape.ram_bytes, o.region): o for o in present}
    return len(rows) == len(present) and all(
        (offer := had.get((row.shape.name, row.shape.ram_bytes, row.region))) is not None
        and math.isclose(row.usd_per_h, offer.usd_per_h, rel_tol=SAME_FRAC)
        and math.isclose(row.spot_usd_per_h or 0, offer.spot_usd_per_h or 0, rel_tol=SAME_FRAC)
        for row in rows
    )


def _text(cloud: str, base_url: str, fetch: Callable[[str], bytes]) -> str:
    """The cloud's file in the newest layout that has it."""
    paths = skypilot.paths(cloud)
    for path in paths:
        url = base_url.rstrip("/") + "/" + path
        try:
            body = fetch(url)
        except FetchError as error:
            if error.is_missing and path != paths[-1]:
                continue
            raise
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError as error:
            raise CatalogError(
                cloud, [Problem("body", f"no UTF-8 text ({error.reason})", "a CSV file")]
            ) from None
    raise FetchError(base_url, "no layout to ask for")


def _part(
    cloud: str, state: UpdateState, detail: str, *, n_rows: int = 0, n_dropped: int = 0
) -> CloudUpdate:
    return CloudUpdate(name=cloud, state=state, n_rows=n_rows, n_dropped=n_dropped, detail=detail)


def _check_clouds(clouds: Sequence[str]) -> None:
    known = (*skypilot.CLOUDS, *skypilot.STALE_THERE)
    problems = [
        Problem("clouds", f"got {cloud!r}", f"one of {', '.join(sorted(known))}")
        for cloud in clouds
        if cloud not in known
    ]
    if problems:
        raise InputError("catalog update", problems)


def raise_if_offline(parts: Sequence[CloudUpdate], source: str) -> None:
    """Nothing at all was reached: that is no update, and the user must know."""
    if parts and all(part.state == "failed" for part in parts):
        fix = "go online and try again; the packaged catalog stays in use"
        problems = [Problem(part.name, part.detail, fix) for part in parts[:3]]
        raise CatalogError(f"catalog update from {source}", problems)
