"""The rows that prices pass through: as a source prints them, and as we keep them."""

import math
from typing import NamedTuple, cast

from gpuplan.catalog.fabrics import with_fabric
from gpuplan.domain.money.market import InstanceShape, PriceBasis
from gpuplan.errors import CatalogError, one
from gpuplan.units import GBIT, GIB


class RawRow(NamedTuple):
    """One line of a source; None where the source leaves it blank."""

    instance: str
    accelerator: str  # the source's own name; empty for a machine without
    n_accelerators: float
    n_vcpu: float | None
    ram_gib: float | None
    region: str
    usd_per_h: float | None
    spot_usd_per_h: float | None
    network_gbit_per_s: float | None = None
    basis: PriceBasis = "on-demand"
    note: str = ""


class PriceRow(NamedTuple):
    """One machine in one region at one price, ready to be kept."""

    shape: InstanceShape
    region: str
    usd_per_h: float
    spot_usd_per_h: float | None


SHAPE_COLUMNS = (
    "instance",
    "accelerators",
    "n_accelerators",
    "n_vcpu",
    "ram_gib",
    "network_gbit_per_s",
    "basis",
    "note",
)


def shape_cells(shape: InstanceShape) -> list[str]:
    """The machine as the cells of SHAPE_COLUMNS."""
    ram = None if shape.ram_bytes is None else shape.ram_bytes / GIB
    network = None if shape.network_bytes_per_s is None else shape.network_bytes_per_s / GBIT
    return [
        shape.name,
        "|".join(shape.accelerators),
        number_cell(shape.n_accelerators),
        number_cell(shape.n_vcpu),
        number_cell(ram),
        number_cell(network),
        "" if shape.basis == "on-demand" else shape.basis,
        shape.note,
    ]


def shape_from(cloud: str, cells: list[str]) -> InstanceShape:
    """The machine that the cells of SHAPE_COLUMNS describe."""
    name, accelerators, n_accelerators, n_vcpu, ram_gib, network, basis, note = cells
    if basis not in ("", "on-demand", "bid-floor", "accelerator-only"):
        raise one(
            CatalogError,
            "prices",
            f"{cloud} {name}",
            f"basis {basis!r}",
            "on-demand, bid-floor or accelerator-only",
        )
    shape = InstanceShape(
        cloud=cloud,
        name=name,
        accelerators=tuple(accelerators.split("|")) if accelerators else (),
        n_accelerators=float(n_accelerators),
        n_vcpu=int(n_vcpu) if n_vcpu else None,
        ram_bytes=float(ram_gib) * GIB if ram_gib else None,
        network_bytes_per_s=float(network) * GBIT if network else None,
        basis=cast(PriceBasis, basis or "on-demand"),
        note=note,
    )
    return with_fabric(shape)


def number_cell(value: float | None) -> str:
    """Shortest text that reads back as the number to eight figures; empty for None."""
    if value is None:
        return ""
    if not math.isfinite(value):
        raise one(CatalogError, "prices", "a number", f"got {value}", "must be finite")
    return f"{value:.8g}"
