"""Prices of more clouds through gpuhunt, in: its catalog; out: the same checked files in the store.

gpuhunt is an optional extra that downloads by itself; what it returns is checked like any source.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from gpuplan.catalog.update.prices import offers_in_use, update_each
from gpuplan.catalog.update.rows import RawRow
from gpuplan.catalog.update.store import source_label
from gpuplan.domain.market import UpdateReport
from gpuplan.errors import CatalogError, InputError, one

SOURCE = "gpuhunt"
FAULTS = (OSError, ValueError, TypeError, AttributeError, RuntimeError)
# gpuhunt's name of a provider, and ours. It covers Azure, which SkyPilot's files no longer do.
PROVIDERS = {"azure": "azure", "nebius": "nebius", "crusoe": "crusoe", "vultr": "vultr"}


def update_from_gpuhunt(
    store: Path,
    *,
    today: date,
    providers: Sequence[str] = tuple(PROVIDERS),
    force: bool = False,
    query: Callable[..., Iterable[Any]] | None = None,
) -> UpdateReport:
    """Fetch these providers' prices by gpuhunt and keep those that are sound."""
    ask = query or _query()
    present = offers_in_use(store)

    def rows_of(provider: str) -> list[RawRow]:
        try:
            return [_row(item) for item in ask(provider=provider, min_gpu_count=1)]
        except FAULTS as error:
            raise one(CatalogError, SOURCE, provider, f"{type(error).__name__}: {error}",
                      "go online and try again") from error  # fmt: skip

    source = source_label(SOURCE, today)
    parts = update_each(store, providers, rows_of, present=present, label=(today, source),
                        force=force)  # fmt: skip
    return UpdateReport(fetched_on=today, source=SOURCE, parts=parts)


def _query() -> Callable[..., Iterable[Any]]:
    try:
        module = importlib.import_module("gpuhunt")
    except ImportError:
        raise one(InputError, "catalog update", SOURCE, "not installed",
                  'run pip install "gpuplan[gpuhunt]"') from None  # fmt: skip

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
