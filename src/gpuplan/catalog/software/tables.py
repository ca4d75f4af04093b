"""Which software fits which hardware, in: the package's tables; out: a SoftwareMatrix."""

import csv
from functools import cache
from importlib.resources import files

from gpuplan.domain.hardware.software import (
    Architecture,
    DriverBranch,
    DriverNeed,
    FrameworkSupport,
    PackagePins,
    SoftwareMatrix,
    TorchRelease,
    Version,
    Wheel,
    version,
)


@cache
def read_software() -> SoftwareMatrix:
    """The matrix as shipped."""
    return SoftwareMatrix(
        architectures=tuple(_architecture(row) for row in _rows("software_arch.csv")),
        drivers=tuple(_driver(row) for row in _rows("software_cuda.csv")),
        torch=tuple(_torch(row) for row in _rows("software_torch.csv")),
        wheels=tuple(_wheel(row) for row in _rows("software_wheels.csv")),
        packages=tuple(_pins(row) for row in _rows("software_packages.csv")),
        frameworks=tuple(_support(row) for row in _rows("software_frameworks.csv")),
        branches=tuple(_branch(row) for row in _rows("software_drivers.csv")),
    )


def _architecture(row: dict[str, str]) -> Architecture:
    return Architecture(
        id=row["arch"],
        family=row["family"],
        precisions=frozenset(row["precisions"].split()),
        first_cuda=_optional(row["first_cuda"]),
        last_cuda=_optional(row["last_cuda"]),
        examples=row["examples"],
        source=row["source"],
    )


def _driver(row: dict[str, str]) -> DriverNeed:
    return DriverNeed(
        cuda=version(row["cuda"]),
        is_minor_floor=row["kind"] == "minor-compatibility",
        linux=version(row["min_linux_driver"]),
        windows=_optional(row["min_windows_driver"]),
        source=row["source"],
    )


def _branch(row: dict[str, str]) -> DriverBranch:
    return DriverBranch(
        number=int(row["branch"]), kind=row["kind"], ends=row["ends"], source=row["source"]
    )


def _torch(row: dict[str, str]) -> TorchRelease:
    return TorchRelease(
        torch=version(row["torch"]),
        python=row["python"],
        stable_cuda=tuple(version(text) for text in row["stable_cuda"].split()),
        experimental_cuda=tuple(version(text) for text in row["experimental_cuda"].split()),
        rocm=row["rocm"],
        default_cuda=_optional(row["pypi_cuda"]),
        source=row["source"],
    )


def _wheel(row: dict[str, str]) -> Wheel:
    archs, ptx = [], None
    for text in row["archs"].split():
        number, _, kind = text.partition("+")
        major, minor = number.split(".")
        archs.append((int(major), int(minor)))
        if kind == "PTX":
            ptx = archs[-1]
    return Wheel(
        cuda=version(row["cuda"]),
        platform=row["platform"],
        archs=tuple(archs),
        ptx=ptx,
        is_sure=row["sure"] == "yes",
        source=row["source"],
    )


def _pins(row: dict[str, str]) -> PackagePins:
    return PackagePins(
        package=row["package"],
        version=version(row["version"]),
        python=row["python"],
        torch=row["torch"],
        source=row["source"],
    )


def _support(row: dict[str, str]) -> FrameworkSupport:
    return FrameworkSupport(
        framework=row["framework"],
        what=row["what"],
        archs=tuple(row["archs"].split()),
        is_sure=row["sure"] == "yes",
        note=row["note"],
        source=row["source"],
    )


def _optional(text: str) -> Version | None:
    return version(text) if text else None


def _rows(name: str) -> list[dict[str, str]]:
    path = files("gpuplan.catalog").joinpath("data", name)
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
