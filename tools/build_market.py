"""Rebuild the market, region and software tables of the package from the raw catalog files.

    python tools/build_market.py RAW_FOLDER [--out FOLDER] [--cpu-from SKYPILOT_CHECKOUT]

The tables of machines without accelerators come from a checkout of SkyPilot's catalog and are only
rebuilt when one is given.
"""

import argparse
import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuplan.catalog.update.clean import clean
from gpuplan.catalog.update.rows import SHAPE_COLUMNS, PriceRow, RawRow, number_cell, shape_cells

DATA = Path(__file__).resolve().parent.parent / "src" / "gpuplan" / "catalog" / "data"
CLOUD_SOURCES = {"azure": "karpenter-azure"}  # all others: SkyPilot's catalog
FREE_HOSTS = re.compile(r"a4-highgpu-")  # the source has their host at $0: it is not known
CPU_FAMILIES = {
    "aws": re.compile(r"[mcr]7i\.(2xlarge|8xlarge|24xlarge|48xlarge)"),
    "gcp": re.compile(r"n1-standard-(4|8|16|32)|n2-standard-(8|32)|c3-standard-(8|44|88)"),
    "nebius": re.compile(r"cpu-d3_(8|16|32|64|128)vcpu-\d+gb"),
}
CPU_FILES = {"aws": "v7", "gcp": "v8", "nebius": "v8"}
# Eurostat's last half-year of the United Kingdom is of 2020 and half of what was paid since.
TARIFFS = {
    "GBR": {
        "usd_per_kwh": "0.2262",
        "price_basis": "large consumers: Germany's tariff x 258/177, the industries' averages",
        "price_year": "2023", "price_source": "iea-industry-2023",
    },
}  # fmt: skip
PROVIDERS = {"Amazon Web Services": "aws", "Google Cloud": "gcp", "Microsoft Azure": "azure"}
# The source places these elsewhere than the cloud does, so its grid figures are another grid's.
# Sizes held against MicrosoftDocs/azure-compute-docs@8e5a077: 31 of 39 agree in vCPUs, memory and
# accelerators; the pages have no Promo sizes and no ND96is.
READ_SHAPES = {
    "Standard_NC40ads_H100_v5", "Standard_NC80adis_H100_v5", "Standard_ND128isr_NDR_GB200_v6",
    "Standard_ND96isr_H200_v5", "Standard_ND96isr_MI300X_v5",
}  # fmt: skip
READ_RAM_GIB = {"Standard_ND96amsr_A100_v4": 1900.0}  # the file has 1800
MISPLACED = {("azure", "northeurope"), ("azure", "westus"), ("gcp", "me-central1")}
NOT_REGIONS = {("azure", "asiapacific")}
REGION_COLUMNS = (
    "id", "kind", "name", "country", "state", "cloud", "aliases", "pue", "pue_source",
    "usd_per_kwh", "price_basis", "price_year", "price_source", "location_average_g_per_kwh",
    "location_marginal_g_per_kwh", "market_average_g_per_kwh", "carbon_year", "carbon_source",
)  # fmt: skip


def build(raw: Path, out: Path) -> Counter[str]:
    """Write every table that the raw folder determines; the count of rows left out, by reason."""
    dropped = build_offers(raw, out)
    build_discounts(raw, out)
    build_regions(raw, out)
    build_software(raw, out)
    return dropped


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def write(path: Path, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


# --- offers ------------------------------------------------------------------------------------


def build_offers(raw: Path, out: Path) -> Counter[str]:
    by_cloud: dict[str, list[RawRow]] = defaultdict(list)
    dates: dict[str, str] = {}
    dropped: Counter[str] = Counter()
    for row in read(raw / "cloud_prices_region.csv"):
        if row["superseded_by"]:
            dropped["superseded by a newer source"] += 1
            continue
        by_cloud[row["cloud"]].append(raw_row(row))
        dates[row["cloud"]] = row["price_date"]
    prices: list[PriceRow] = []
    for cloud in sorted(by_cloud):
        cleaned = clean(cloud, by_cloud[cloud])
        prices += cleaned.rows
        for reason, n_rows in cleaned.dropped.items():
            dropped[f"{cloud}: {reason}"] += n_rows
    write_offers(prices, out)
    clouds = [[c, dates[c], CLOUD_SOURCES.get(c, "skypilot-catalog")] for c in sorted(dates)]
    write(out / "offers_clouds.csv", ("cloud", "price_date", "source"), clouds)
    return dropped


def raw_row(row: dict[str, str]) -> RawRow:
    is_slice = row["row_kind"] == "tpu-slice"
    part = row["row_kind"].startswith("accelerator-only") or FREE_HOSTS.match(row["instance_type"])
    return RawRow(
        instance=row["instance_type"],
        accelerator=row["accelerator_raw"],
        # A slice's name says how many chips it has; the reader of names counts them.
        n_accelerators=1.0 if is_slice else float(row["accelerator_count"]),
        n_vcpu=number(row["vcpus"]),
        ram_gib=READ_RAM_GIB.get(row["instance_type"], number(row["memory_gib"])),
        region=row["region"],
        usd_per_h=number(row["price_usd_hr"]),
        spot_usd_per_h=number(row["spot_usd_hr_median"]),
        network_gbit_per_s=number(row["net_gbps"]),
        basis="accelerator-only" if part else "on-demand",
        note=shape_note(row),
    )


def shape_note(row: dict[str, str]) -> str:
    is_open = "from memory" in row["row_kind"] and row["instance_type"] not in READ_SHAPES
    return "shape not confirmed" if is_open else ""


def number(text: str) -> float | None:
    return float(text) if text else None


def write_offers(prices: list[PriceRow], out: Path) -> None:
    """One line per machine, and one per machine and price with the regions that share it."""
    machines: dict[tuple[str, ...], int] = {}
    regions: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for row in prices:
        cells = (row.shape.cloud, *shape_cells(row.shape))
        n_machine = machines.setdefault(cells, len(machines))
        key = (n_machine, number_cell(row.usd_per_h), number_cell(row.spot_usd_per_h))
        regions[key].append(row.region)
    write(out / "offers_instances.csv", ("cloud", *SHAPE_COLUMNS), machines)
    lines = ([str(n), usd, spot, "|".join(where)] for (n, usd, spot), where in regions.items())
    header = ("line", "usd_per_h", "spot_usd_per_h", "regions")
    write(out / "offers_prices.csv", header, lines)


def build_cpu(checkout: Path, raw: Path, out: Path) -> None:
    dates = {row["cloud"]: row["content_date"] for row in read(raw / "cloud_price_freshness.csv")}
    lines: list[list[str]] = []
    for cloud, layout in CPU_FILES.items():
        path = checkout / "catalogs" / layout / cloud / "vms.csv"
        rows = [cpu_row(r) for r in read(path) if is_cpu(cloud, r)]
        regions: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for row in clean(cloud, rows).rows:
            usd, spot = number_cell(row.usd_per_h), number_cell(row.spot_usd_per_h)
            regions[(*shape_cells(row.shape), usd, spot)].append(row.region)
        lines += [[cloud, dates[cloud], *key, "|".join(where)] for key, where in regions.items()]
    header = ("cloud", "price_date", *SHAPE_COLUMNS, "usd_per_h", "spot_usd_per_h", "regions")
    write(out / "offers_cpu.csv", header, lines)


def is_cpu(cloud: str, row: dict[str, str]) -> bool:
    return not row["AcceleratorName"] and bool(CPU_FAMILIES[cloud].fullmatch(row["InstanceType"]))


def cpu_row(row: dict[str, str]) -> RawRow:
    return RawRow(
        instance=row["InstanceType"], accelerator="", n_accelerators=0.0,
        n_vcpu=number(row["vCPUs"]), ram_gib=number(row["MemoryGiB"]), region=row["Region"],
        usd_per_h=number(row["Price"]), spot_usd_per_h=number(row["SpotPrice"]),
    )  # fmt: skip


def build_discounts(raw: Path, out: Path) -> None:
    lines = []
    for row in read(raw / "commit_discounts.csv"):
        if row["provider"] == "measured":  # our own offers say it, with region and date
            continue
        weak = "yes" if row["confidence"] == "C" else "no"
        source = "cloudhealth" if "cloudhealth" in row["source"] else "yobitel"
        lines.append([row["provider"].lower(), row["instrument"], row["term"], row["discount_low"],
                      row["discount_high"], row["applies"], source, weak])  # fmt: skip
    header = (
        "provider",
        "instrument",
        "term",
        "low_frac",
        "high_frac",
        "applies",
        "source",
        "weak",
    )
    write(out / "discounts.csv", header, lines)


# --- regions -----------------------------------------------------------------------------------


def build_regions(raw: Path, out: Path) -> None:
    places = read(DATA / "regions_places.csv")
    cells = [*cloud_regions(raw, places), *countries(raw, places), *states(raw)]
    write(out / "regions.csv", REGION_COLUMNS, ([row.get(c, "") for c in REGION_COLUMNS]
                                                for row in cells))  # fmt: skip


def cloud_regions(raw: Path, places: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    published = {(PROVIDERS[r["cloud-provider"]], r["cloud-region"]): r
                 for r in read(raw / "regions_cloud.csv")}  # fmt: skip
    for place in places:
        key = (place["cloud"], place["region"])
        if not place["cloud"] or key in NOT_REGIONS:
            continue
        row = {"id": ":".join(key), "kind": "cloud", "name": place["name"],
               "country": place["country"], "state": place["state"], "cloud": key[0]}  # fmt: skip
        found = published.get(key)
        yield row if found is None or key in MISPLACED else row | cloud_figures(found)


def cloud_figures(row: dict[str, str]) -> dict[str, str]:
    pue = row["power-usage-effectiveness"]
    return {
        "pue": pue,
        "pue_source": "gsf-cloud-regions" if pue else "",
        "location_average_g_per_kwh": row["grid-carbon-intensity-average-consumption-annual"],
        "location_marginal_g_per_kwh": row["grid-carbon-intensity-marginal-consumption-annual"],
        "market_average_g_per_kwh": row["provider-carbon-intensity-market-annual"],
        "carbon_year": row["year"],
        "carbon_source": "gsf-cloud-regions",
    }


def countries(raw: Path, places: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    codes = {p["country"]: p for p in places if not p["cloud"]}
    for row in read(raw / "regions_country.csv"):
        place = codes[row["iso3"]]
        line = {"id": row["iso3"], "kind": "country", "name": place["name"],
                "country": row["iso3"], "aliases": place["region"]}  # fmt: skip
        if number(row["carbon_gco2_kwh"]):  # no grid emits nothing: a 0 is a rounded unknown
            line |= {"location_average_g_per_kwh": row["carbon_gco2_kwh"],
                     "carbon_year": row["carbon_year"].removesuffix(".0"),
                     "carbon_source": "owid-ember"}  # fmt: skip
        if row["elec_usd_kwh"]:
            is_tariff = row["elec_band"] not in ("research", "national_industrial", "fallback")
            line |= {"usd_per_kwh": row["elec_usd_kwh"],
                     "price_basis": "large consumers before tax" if is_tariff
                     else f"industry: {row['elec_basis']}",
                     "price_year": price_year(row["elec_basis"]),
                     "price_source": price_source(row["elec_basis"])}  # fmt: skip
        yield line | TARIFFS.get(row["iso3"], {})


def price_year(basis: str) -> str:
    """The year that the source names; Eurostat's newest half-year when the file was written."""
    named = re.search(r"\b20[12]\d\b", basis)
    return named[0] if named else {"Eurostat": "2025", "EIA": "2024"}.get(basis, "")


def price_source(basis: str) -> str:
    return {"Eurostat": "eurostat-nrg-pc-205", "EIA": "eia-retail-sales"}.get(basis, "flops-export")


def states(raw: Path) -> Iterator[dict[str, str]]:
    for row in read(raw / "regions_us_states.csv"):
        if len(row["stateid"]) != 2 or row["stateid"] == "US":  # census divisions and the whole
            continue
        code = f"US-{row['stateid']}"
        line = {"id": code, "kind": "state", "name": row["stateDescription"], "country": "USA",
                "state": code, "aliases": row["stateid"]}  # fmt: skip
        if row["ind_usd_kwh"]:
            line |= {"usd_per_kwh": row["ind_usd_kwh"], "price_year": row["price_year"],
                     "price_basis": "industrial average",
                     "price_source": "eia-retail-sales"}  # fmt: skip
        if row["carbon_gco2_kwh"]:
            line |= {"location_average_g_per_kwh": row["carbon_gco2_kwh"], "carbon_year": "2023",
                     "carbon_source": "epa-egrid"}  # fmt: skip
        yield line


# --- software ----------------------------------------------------------------------------------


def build_software(raw: Path, out: Path) -> None:
    header = ("cuda", "kind", "min_linux_driver", "min_windows_driver", "source")
    write(out / "software_cuda.csv", header, cuda_lines(raw))
    pypi = read(raw / "software_pypi_matrix.csv")
    wheel_cuda = {minor(r["version"]): pin(r["cuda_runtime"]) for r in pypi
                  if r["package"] == "torch"}  # fmt: skip
    torch = [
        [r["pytorch"], r["python"].replace("exp", ""), r["stable_cuda"].replace(",", ""),
         r["experimental_cuda"], r["rocm"], wheel_cuda.pop(r["pytorch"], ""), "pytorch-release"]
        for r in read(raw / "pytorch_cuda.csv")
    ]  # fmt: skip
    newer = [[v, "", minor(c), "", "", c, "wheel-metadata"] for v, c in wheel_cuda.items()]
    header = ("torch", "python", "stable_cuda", "experimental_cuda", "rocm", "pypi_cuda", "source")
    write(out / "software_torch.csv", header, [*newer, *torch])
    packages = [
        [r["package"], r["version"], r["requires_python"], r["torch"], r["transformers"],
         r["flashinfer"], pin(r["cuda_runtime"]), "wheel-metadata"]
        for r in pypi if r["torch"] or r["package"] == "torch"
    ]  # fmt: skip
    header = (
        "package",
        "version",
        "python",
        "torch",
        "transformers",
        "flashinfer",
        "cuda",
        "source",
    )
    write(out / "software_packages.csv", header, packages)


def cuda_lines(raw: Path) -> Iterator[list[str]]:
    for row in read(raw / "cuda_driver.csv"):
        name = row["cuda"]
        windows = "" if row["min_windows_driver"] == "N/A" else row["min_windows_driver"]
        old = "nvidia-cuda-notes" if "13.2 release" in row["source"] else "nvidia-cuda-copies"
        if name.startswith("minor-version"):
            major = name.split()[-1].split(".")[0]
            yield [major, "minor-compatibility", row["min_linux_driver"], windows, old]
        else:
            yield [cuda_version(name), "toolkit", row["min_linux_driver"], windows, old]


def cuda_version(name: str) -> str:
    """13.2 U1 is 13.2.1, and 13.2 GA is 13.2.0."""
    release, _, update = name.partition(" ")
    if not update:
        return release
    return f"{release}.{0 if update == 'GA' else int(update.removeprefix('U'))}"


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def pin(text: str) -> str:
    return text.split(" ", maxsplit=1)[0].removeprefix("==")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--cpu-from", type=Path)
    arguments = parser.parse_args()
    for reason, n_rows in sorted(build(arguments.raw, arguments.out).items()):
        print(f"{n_rows:6d} left out, {reason}")
    if arguments.cpu_from:
        build_cpu(arguments.cpu_from, arguments.raw, arguments.out)


if __name__ == "__main__":
    main()
