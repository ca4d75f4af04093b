"""SkyPilot's catalog files, in: the text of one cloud's vms.csv; out: raw rows."""

import csv
import io
import re
from collections.abc import Iterator, Mapping

from gpuplan.catalog.update.rows import RawRow
from gpuplan.csv_rows import words
from gpuplan.errors import CatalogError, one

BASE_URL = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/"
SOURCE = "skypilot-catalog"
# Its Azure file was last priced in 2024; ours come from a newer source.
STALE_THERE: Mapping[str, str] = {"azure": "the source's Azure prices date from 2024-08-19"}
CLOUDS = words("catalog", "skypilot_cloud")
COLUMNS = frozenset(
    {
        "InstanceType",
        "AcceleratorName",
        "AcceleratorCount",
        "vCPUs",
        "MemoryGiB",
        "Price",
        "SpotPrice",
        "Region",
    }
)
MAX_ROWS = 400_000

# GCP prices host and accelerators apart; the host's name tells how many it must carry.
GCP_HOSTS = (
    (re.compile(r"a2-(?:highgpu|megagpu)-(\d+)g"), "A100"),
    (re.compile(r"a2-ultragpu-(\d+)g"), "A100-80GB"),
    (re.compile(r"a3-highgpu-(\d+)g"), "H100"),
    (re.compile(r"a3-megagpu-(\d+)g"), "H100-MEGA"),
    (re.compile(r"a3-ultragpu-(\d+)g"), "H200"),
    (re.compile(r"a4-highgpu-(\d+)g"), "B200"),
)
GCP_SIZES = {
    "g2-standard-": ("L4", {4: 1, 8: 1, 12: 1, 16: 1, 32: 1, 24: 2, 48: 4, 96: 8}),
    "g4-standard-": ("RTXPRO6000", {48: 1, 96: 2, 192: 4, 384: 8}),
}
GCP_ATTACHED = frozenset({"T4", "P4", "P100", "V100"})  # join any N1 host, priced apart


def paths(cloud: str) -> tuple[str, ...]:
    """Where the cloud's file is, newest layout first."""
    return (f"catalogs/v8/{cloud}/vms.csv", f"catalogs/v7/{cloud}/vms.csv")


def parse(cloud: str, text: str) -> list[RawRow]:
    """The cloud's machines with accelerators; a malformed file is refused with its first fault."""
    lines = list(_records(cloud, text))
    if cloud == "gcp":
        return list(_gcp_rows(lines))
    return [_row(line) for line in lines if line["AcceleratorName"]]


def _records(cloud: str, text: str) -> Iterator[dict[str, str]]:
    if "\0" in text:
        raise _refusal(cloud, "line 1", "binary data", "a CSV file")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if not set(header) >= COLUMNS or len(set(header)) != len(header):
            shown = ",".join(header)[:80]
            raise _refusal(cloud, "line 1", f"header {shown!r}", f"must have {sorted(COLUMNS)}")
        for cells in reader:
            if len(cells) != len(header):
                raise _refusal(
                    cloud,
                    f"line {reader.line_num}",
                    f"{len(cells)} cells",
                    f"must have {len(header)}",
                )
            if reader.line_num > MAX_ROWS:
                raise _refusal(
                    cloud, f"line {reader.line_num}", "too many lines", f"at most {MAX_ROWS}"
                )
            yield dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise _refusal(cloud, f"line {reader.line_num}", str(error), "valid CSV") from None


def _row(line: Mapping[str, str]) -> RawRow:
    return RawRow(
        instance=line["InstanceType"],
        accelerator=line["AcceleratorName"],
        n_accelerators=_number(line, "AcceleratorCount") or 0.0,
        n_vcpu=_number(line, "vCPUs"),
        ram_gib=_number(line, "MemoryGiB"),
        region=line["Region"],
        usd_per_h=_number(line, "Price"),
        spot_usd_per_h=_number(line, "SpotPrice"),
    )


def _number(line: Mapping[str, str], column: str) -> float | None:
    text = line[column].strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise _refusal(
            line["InstanceType"][:40], column, f"got {text[:40]!r}", "a number"
        ) from None


def _gcp_rows(lines: list[dict[str, str]]) -> Iterator[RawRow]:
    """Hosts with their accelerators' price added, attached accelerators alone, and TPU slices."""
    parts: dict[tuple[str, int, str], RawRow] = {}
    for line in lines:
        if not line["AcceleratorName"]:
            continue
        row = _row(line)
        if row.accelerator.startswith("tpu-"):
            yield row._replace(instance=row.accelerator, n_accelerators=1.0)
        elif row.accelerator in GCP_ATTACHED:
            name = f"(attach){row.accelerator}x{row.n_accelerators:g}"
            yield row._replace(instance=name, basis="accelerator-only")
        else:
            parts[row.accelerator, round(row.n_accelerators), _zone(line)] = row
    for line in lines:
        carried = None if line["AcceleratorName"] else _carried(line["InstanceType"])
        part = parts.get((*carried, _zone(line))) if carried else None
        if part is not None:
            yield _sum(_row(line), part)


def _zone(line: Mapping[str, str]) -> str:
    return line.get("AvailabilityZone") or line["Region"]


def _carried(host: str) -> tuple[str, int] | None:
    for pattern, name in GCP_HOSTS:
        found = pattern.fullmatch(host)
        if found:
            return name, int(found[1])
    for prefix, (name, counts) in GCP_SIZES.items():
        size = host.removeprefix(prefix)
        if size != host and size.isdigit() and int(size) in counts:
            return name, counts[int(size)]
    return None


def _sum(host: RawRow, part: RawRow) -> RawRow:
    return host._replace(
        accelerator=part.accelerator,
        n_accelerators=part.n_accelerators,
        usd_per_h=_plus(host.usd_per_h, part.usd_per_h),
        spot_usd_per_h=_plus(host.spot_usd_per_h, part.spot_usd_per_h),
        # No host is free: a price of nothing means that it is not known.
        basis="on-demand" if host.usd_per_h else "accelerator-only",
    )


def _plus(host: float | None, part: float | None) -> float | None:
    """The sum; None unless the accelerators, the dear part, have a price."""
    if not part or host is None:
        return None
    return host + part


def _refusal(source: str, where: str, what: str, fix: str) -> Exception:
    return one(CatalogError, f"{SOURCE} {source}", where, what, fix)
