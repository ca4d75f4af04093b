"""Prices of more clouds through gpuhunt, in: its catalog; out: the same checked files in the store.

gpuhunt is an optional extra that downloads by itself; what it returns is checked like any source.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from gpuplan.catalog.update.fetch import FetchError
from gpuplan.catalog.update.prices import offers_in_use, raise_if_offline, update_each
from gpuplan.catalog.update.rows import RawRow
from gpuplan.catalog.update.store import source_label
from gpuplan.domain.money.market import UpdateReport
from gpuplan.errors import CatalogError, InputError, Problem, one

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
