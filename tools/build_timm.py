"""Rebuild `timm.csv`, figures of image networks, from the raw benchmark table.

Run: python tools/build_timm.py RAW_CSV [OUT_FILE]
"""

import csv
import sys
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "src/gpuplan/catalog/data/timm.csv"
COLUMNS = ["name", "params_m", "gmacs", "activations_m", "image_px", "source"]
# The raw table repeats a network for every device; its figures are the same on all.
RAW = {
    "name": "model", "params_m": "param_count", "gmacs": "infer_gmacs",
    "activations_m": "infer_macts", "image_px": "infer_img_size",
}  # fmt: skip


def rows(raw: Path) -> list[dict[str, str]]:
    """One row per network and input size, complete ones only."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    with raw.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row = {name: line[old] for name, old in RAW.items()}
            if all(row.values()):
                source = line["source"].split(":results")[0]
                found.setdefault((row["name"], row["image_px"]), {**row, "source": source})
    return [found[key] for key in sorted(found, key=lambda key: (key[0], int(key[1])))]


def main(raw: Path, out: Path) -> None:
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows(raw))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else OUT)
