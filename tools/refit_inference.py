"""Refit the constants of LLM inference from the package's own table, and store them.

python tools/refit_inference.py                 refit from the stored table
python tools/refit_inference.py RAW.csv …       take the rows of raw tables over first
"""

import csv
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from gpuplan.calibration.inference.store import to_document
from gpuplan.calibration.runs.fields import CONDITIONS
from gpuplan.csv_rows import read_csv_rows
from gpuplan.inputs.llama_matrix import MATRIX_COLUMNS, serving_rows
from gpuplan.studies.validation.fit_inference import calibrate_inference, study
from gpuplan.studies.validation.inference_table import METRICS, read_table

DATA = Path(__file__).resolve().parent.parent / "src" / "gpuplan" / "calibration" / "data"
TABLE = DATA / "measured" / "llm_inference.csv"
STORED = DATA / "llm_inference.json"
COLUMNS = (*CONDITIONS, "flag")
VERSION = "2026-11"


def take_over(raw: Sequence[Path]) -> None:
    """Rows that the calibration rests on, in few columns and few digits."""
    rows = [row for path in raw for row in published(path)]
    measured = [f"measured_{metric}" for metric in METRICS]
    kept = [row for row in read_table(rows).rows if any(row.get(column) for column in measured)]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*COLUMNS, *measured], lineterminator="\n")
        writer.writeheader()
        for row in kept:
            writer.writerow({column: _short(row.get(column, "")) for column in writer.fieldnames})


def published(path: Path) -> list[dict[str, str]]:
    """Rows of a serving table, or of llama.cpp runs in its form."""
    rows = read_csv_rows(path)
    is_matrix = bool(rows) and set(rows[0]) >= MATRIX_COLUMNS
    return serving_rows(rows) if is_matrix else rows


def _short(text: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    return text if len(text) <= 8 else f"{value:.6g}"


_left_out: list[Callable[[int], Any]] = []  # what forked workers call: closures do not travel


def _called(number: int) -> Any:
    return _left_out[-1](number)


def forked(left_out: Callable[[int], Any], numbers: Sequence[int]) -> Iterable[Any]:
    """As `map`, by several processes that share the table."""
    _left_out.append(left_out)
    n_workers = int(os.environ.get("REFIT_WORKERS", os.cpu_count() or 1))
    with multiprocessing.get_context("fork").Pool(n_workers) as pool:
        return pool.map(_called, numbers, chunksize=1)


def main() -> None:
    if len(sys.argv) > 1:
        take_over([Path(name) for name in sys.argv[1:]])
    of = study(read_table(read_csv_rows(TABLE)))
    calibration = calibrate_inference(of, version=VERSION, run=forked)
    text = json.dumps(to_document(calibration), indent=1)
    STORED.write_text(text + "\n", encoding="utf-8")
    print(f"{calibration.constants.n_rows} rows, {len(calibration.spreads)} spreads -> {STORED}")


if __name__ == "__main__":
    main()
