"""Refit the training constants from the package's own rows: `python tools/refit_training.py`.

With `--rows FILE.csv`, the package's table is first rebuilt from a table in the published form.
"""

import argparse
import csv
import json
from dataclasses import asdict
from pathlib import Path

from fits.training import calibrate, cross_scores, document

from gpuplan.calibration.tables import read_rows
from gpuplan.calibration.training.constants import FILE
from gpuplan.calibration.training.rows import TABLES, shipped_rows
from gpuplan.catalog.load import read_catalog
from gpuplan.csv_rows import read_csv_rows
from gpuplan.studies.training.cases import cases_of
from gpuplan.studies.validation.training import cross_training

DATA = Path(__file__).resolve().parent.parent / "src" / "gpuplan" / "calibration" / "data"
COLUMNS = [
    "id", "source", "framework", "date", "model", "n_layers", "hidden", "heads", "vocab",
    "accelerator", "n_accelerators", "fabric", "precision", "seq_len", "global_batch",
    "micro_batch", "tp", "pp", "vp", "cp", "ep", "dp", "sharding", "recompute", "task",
    "note", "measured_step_s", "measured_tokens_per_s_per_accelerator", "measured_mfu_pct",
]  # fmt: skip


def rebuild(path: Path) -> None:
    rows = read_csv_rows(path)
    out = DATA / "measured" / "llm_training.csv"
    with out.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{out.name}: {len(rows)} rows")


def rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in figures.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=Path, help="a table in the published form")
    given = parser.parse_args()
    if given.rows:
        rebuild(given.rows)
    cases, refused = cases_of(shipped_rows(), read_catalog())
    scores = cross_scores(cases)
    stored = document(calibrate(cases), scores)
    package = [row for name in TABLES for row in read_rows(name)]
    stored["cross"] = {
        split: {what: rounded(asdict(errors)) for what, errors in found.items()}
        for split, found in cross_training(package).items()
    }
    (DATA / FILE).write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    for kind, found in scores.items():
        print(kind, found if not isinstance(found, dict) else "")
        if isinstance(found, dict):
            for source, (n, *figures) in found.items():
                shown = " ".join(f"{100 * figure:6.1f}" for figure in figures)
                print(f"  {source:20} {n:4.0f}  median mean p90 bias % {shown}")
    print(f"{len(cases)} rows read, {len(refused)} refused; spreads {stored['spreads']}")


if __name__ == "__main__":
    main()
