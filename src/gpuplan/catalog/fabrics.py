"""What joins rented servers, in: the table of fabrics; out: shapes with the network they state."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from gpuplan.csv_rows import noun_from, packaged_rows
from gpuplan.domain.money.market import InstanceShape, OfferFabric
from gpuplan.units import GBIT

Row = tuple[re.Pattern[str], OfferFabric, float | None]


def with_fabric(shape: InstanceShape) -> InstanceShape:
    """The shape with its published fabric; unchanged where no source states one."""
    for pattern, fabric, bytes_per_s in _fabrics().get(shape.cloud, ()):
        if pattern.fullmatch(shape.name):
            rate = bytes_per_s or shape.network_bytes_per_s
            return replace(shape, network_bytes_per_s=rate, fabric=fabric) if rate else shape
    return shape


@cache
def _fabrics() -> Mapping[str, tuple[Row, ...]]:
    """Rows of the table by cloud; the first whose pattern is the whole name holds."""
    found: dict[str, tuple[Row, ...]] = {}
    for row in packaged_rows("gpuplan.catalog", "data/offers_fabrics.csv"):
        fabric = noun_from(OfferFabric, row)
        rate = float(row["gbit_per_s"]) * GBIT if row["gbit_per_s"] else None
        found[row["cloud"]] = (
            *found.get(row["cloud"], ()),
            (re.compile(row["instance"]), fabric, rate),
        )
    return found
