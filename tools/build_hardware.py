"""Compare the hardware tables with a raw survey, so that no figure of it is lost from sight.

    python tools/build_hardware.py gaps    figures of the survey that no line of ours repeats
    python tools/build_hardware.py kinds   how much of each quantity is measured, sold, estimated
    python tools/build_hardware.py keys    the overlay keys, as docs/catalog.md lists them

The tables are our own and are edited by hand: this tool reads, it writes nothing. The survey lies
outside the repository; GPUPLAN_SHARED_DATA names its folder.
"""

import csv
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from gpuplan.catalog.load import read_catalog  # noqa: E402
from gpuplan.catalog.overlay import overlay_keys  # noqa: E402
from gpuplan.catalog.schema import PRECISIONS, SECTIONS  # noqa: E402

SURVEY = Path(os.environ.get("GPUPLAN_SHARED_DATA", ROOT.parent / "shared" / "data")) / "catalog"
COLUMNS = {
    "mem_gb": "memory_marketed",
    "mem_usable_mib": "memory_driver",
    "mem_bw_gbs": "memory_bandwidth",
    "tdp_w": "power_limit",
    "scaleup_gbs_per_dir": "scale_up_bandwidth",
    "mamf_bf16": "matmul_ceiling_bf16",
    "price_usd_low": "price_low",
    "price_usd_high": "price_high",
    **{name: f"peak_{name}" for name in PRECISIONS},
}
SAME = 0.01


def gaps() -> None:
    catalog = read_catalog()
    with (SURVEY / "accelerators.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["form_factor"] != "rack"]
    for row in rows:
        lines = catalog.facts_of(row["id"])
        if not lines:
            print(f"{row['id']}: no such item")
        package = catalog.fact(row["id"], "devices_per_package")
        n_devices = float(package.value) if package else 1.0
        for column, quantity in COLUMNS.items():
            if not row[column]:
                continue
            ours = [float(fact.value) for fact in lines if fact.quantity == quantity]
            wanted = (float(row[column]), float(row[column]) / n_devices)
            if not any(abs(value - w) <= SAME * w for value in ours for w in wanted):
                print(f"{row['id']}.{quantity}: survey {row[column]}, ours {ours}")


def kinds() -> None:
    catalog = read_catalog()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for item in catalog.accelerators:
        for fact in catalog.facts_of(item):
            if fact.preferred:
                found[fact.quantity][catalog.sources[fact.source].kind] += 1
    for quantity, counts in found.items():
        print(f"{quantity:26}", ", ".join(f"{kind} {n}" for kind, n in counts.most_common()))


def keys() -> None:
    for section, kind in SECTIONS.items():
        print(f"\n**{section}**\n\n| key | unit | from | to |\n|---|---|---|---|")
        for key, quantity in overlay_keys(kind).items():
            bounds = ("", "") if quantity.is_text else (f"{quantity.low:g}", f"{quantity.high:g}")
            star = " (required)" if quantity.required else ""
            print(f"| `{key}`{star} | {quantity.unit} | {bounds[0]} | {bounds[1]} |")


if __name__ == "__main__":
    {"gaps": gaps, "kinds": kinds, "keys": keys}[sys.argv[1]]()
