"""What joins rented servers, in: the table of fabrics; out: shapes with the network they state."""

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import cast

from gpuplan.domain.money.market import FabricKind, InstanceShape, OfferFabric
from gpuplan.units import GBIT

Row = tuple[re.Pattern[str], OfferFabric, float | None]


def with_fabric(shape: InstanceShape) -> InstanceShape:
    """The shape with its published fabric; unchanged where no source states one."""
    for pattern, fabric, bytes_per_s in _fabrics().get(shape.cloud, ()):
        if pattern.fullmatch(shape.name):
            rate = bytes_per_s or shape.network_bytes_per_s
            return (
                shape if rate is None else replace(shape, network_bytes_per_s=rate, fabric=fabric)
            )
    return shape


@cache
def _fabrics() -> Mapping[str, tuple[Row, ...]]:
    """Rows of the table by cloud; the first whose pattern is the whole name holds."""
    path = files("gpuplan.catalog").joinpath("data", "offers_fabrics.csv")
    found: dict[str, tuple[Row, ...]] = {}
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        fabric = OfferFabric(
            kind=cast(FabricKind, row["kind"]), placement=row["placement"], source=row["source"]
        )
        rate = float(row["gbit_per_s"]) * GBIT if row["gbit_per_s"] else None
        found[row["cloud"]] = (
            *found.get(row["cloud"], ()),
            (re.compile(row["instance"]), fabric, rate),
        )
    return found
