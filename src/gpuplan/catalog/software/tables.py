"""Which software fits which hardware, in: the package's tables; out: a SoftwareMatrix."""

from functools import cache
from typing import Any

from gpuplan.csv_rows import noun_from, packaged_rows
from gpuplan.domain.hardware.software import (
    Architecture,
    DriverBranch,
    DriverNeed,
    FrameworkSupport,
    PackagePins,
    SoftwareMatrix,
    TorchRelease,
    Wheel,
)


@cache
def read_software() -> SoftwareMatrix:
    """The matrix as shipped."""
    return SoftwareMatrix(
        architectures=_table("arch", Architecture, id="arch"),
        drivers=tuple(_driver(row) for row in _rows("cuda")),
        torch=_table("torch", TorchRelease, default_cuda="pypi_cuda"),
        wheels=tuple(_wheel(row) for row in _rows("wheels")),
        packages=_table("packages", PackagePins),
        frameworks=_table("frameworks", FrameworkSupport),
        branches=_table("drivers", DriverBranch, number="branch"),
    )


def _driver(row: dict[str, str]) -> DriverNeed:
    oldest = {"linux": row["min_linux_driver"], "windows": row["min_windows_driver"]}
    is_minor_floor = row["kind"] == "minor-compatibility"
    return noun_from(DriverNeed, row | oldest, is_minor_floor=is_minor_floor)


def _wheel(row: dict[str, str]) -> Wheel:
    archs, ptx = [], None
    for text in row["archs"].split():
        number, _, kind = text.partition("+")
        major, minor = number.split(".")
        archs.append((int(major), int(minor)))
        if kind == "PTX":
            ptx = archs[-1]
    return noun_from(Wheel, row, archs=tuple(archs), ptx=ptx)


def _table(table: str, noun: Any, **columns: str) -> tuple[Any, ...]:
    """A noun for each row; `columns` are those that are called otherwise than their fields."""
    rows = (row | {field: row[name] for field, name in columns.items()} for row in _rows(table))
    return tuple(noun_from(noun, row) for row in rows)


def _rows(name: str) -> tuple[dict[str, str], ...]:
    return packaged_rows("gpuplan.catalog", f"data/software_{name}.csv")
