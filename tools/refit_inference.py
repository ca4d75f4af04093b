"""Refit the constants of LLM inference from the package's own table, and store them.

python tools/refit_inference.py                 refit from the stored table, checked once more
python tools/refit_inference.py RAW.csv …       take the rows of raw tables over first
python tools/refit_inference.py --ranges        ranges alone, from the ledger as it stands
"""

import csv
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fits.inference import calibrate_inference, is_bound
from fits.ranges import learned, with_tails
from ledger import later_figures, later_lines, never_seen_lines

from gpuplan.calibration.inference.ranges import Line
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.calibration.runs.fields import CONDITIONS
from gpuplan.csv_rows import read_csv_rows
from gpuplan.domain.calibration.constants import AT_LIMIT, InferenceCalibration
from gpuplan.inputs.llama_matrix import MATRIX_COLUMNS, serving_rows
from gpuplan.studies.validation.figures import METRICS, TAIL_METRICS, is_unstated
from gpuplan.studies.validation.fit_inference import (
    known_labels,
    study,
)
from gpuplan.studies.validation.inference_table import read_table

DATA = Path(__file__).resolve().parent.parent / "src" / "gpuplan" / "calibration" / "data"
TABLE = DATA / "measured" / "llm_inference.csv"
STORED = DATA / "llm_inference.json"
COLUMNS = (*CONDITIONS, "flag")
VERSION = "2026-11"


def to_document(calibration: InferenceCalibration) -> dict[str, Any]:
    """The fit as it is stored: priors beside fitted values, so that a reader finds what moved."""
    fitted = calibration.constants
    return {
        "schema_version": 1,
        "version": calibration.version,
        "n_rows": fitted.n_rows,
        "sources": list(fitted.sources),
        "constants": {
            c.name: {
                "prior": c.value,
                "prior_log_sd": c.log_sd,
                "log_value": round(fitted.log_value[c.name], 5),
            }
            for c in fitted.constants
        },
        "deviations": {
            key: {label: round(value, 5) for label, value in sorted(labels.items())}
            for key, labels in sorted(fitted.deviation.items())
        },
        "ranges": asdict(calibration.ranges),
        "known": {kind: sorted(labels) for kind, labels in calibration.known.items()},
        "left_out": {
            split: {key: asdict(errors) for key, errors in groups.items()}
            for split, groups in calibration.held_out.items()
        },
    }


def take_over(raw: Sequence[Path]) -> None:
    """Rows that the calibration rests on, in few columns and few digits.

    Rows of no one device, and figures that cannot be right, are left out.
    """
    rows = [row for path in raw for row in published(path) if not is_unstated(row)]
    measured = [f"measured_{metric}" for metric in METRICS]
    read = read_table(rows, is_new=True).rows
    kept = [row for row in read if any(row.get(column) for column in measured)]
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


def probed() -> dict[str, float]:
    """How far a measured site's ranges narrow, as it is stored."""
    stored = json.loads(STORED.read_text("utf-8"))["ranges"]["log_half"]
    return {key: value for key, value in stored.items() if key.startswith("probed|")}


def ledger(known: Mapping[str, frozenset[str]]) -> list[Line]:
    """All first predictions: of sources never fitted, and of rows before they joined the fit."""
    return [*never_seen_lines(known), *later_lines(later_figures())]


def ranges_alone() -> InferenceCalibration:
    """The stored fit with ranges learned anew; what its held-out rows say stays as it is."""
    stored = inference_calibration()
    lines = [line for line in ledger(stored.known) if not is_bound(line)]
    means = learned(lines, log_least=stored.ranges.log_least)
    held_out = {k: v for k, v in stored.ranges.log_half.items() if _is_held_out(k)}
    tails = replace(stored.ranges, log_half=held_out)
    return replace(stored, ranges=with_tails(means, tails))


def _is_held_out(key: str) -> bool:
    is_latency = key.startswith(("ttft_mean_ms", "tpot_mean_ms"))
    at_limit = key.endswith("at the limit") or f"|{AT_LIMIT}" in key
    return key.startswith(TAIL_METRICS) or (is_latency and at_limit)


def refit() -> InferenceCalibration:
    """Constants, ranges and held-out errors from the table and the ledger."""
    of = study(read_table(read_csv_rows(TABLE)))
    known = known_labels(of, range(len(of.table.rows)))
    return calibrate_inference(of, version=VERSION, ledger=ledger(known), run=forked)


def main() -> None:
    is_ranges = sys.argv[1:] == ["--ranges"]
    if not is_ranges:
        take_over([Path(name) for name in sys.argv[1:]] or [TABLE])
    calibration = ranges_alone() if is_ranges else refit()
    document = to_document(calibration)
    document["ranges"]["log_half"] |= probed()  # how far own runs narrow is judged apart
    text = json.dumps(document, indent=1)
    STORED.write_text(text + "\n", encoding="utf-8")
    n_groups = calibration.ranges.n_groups
    print(f"{calibration.constants.n_rows} rows, ranges of {n_groups} groups -> {STORED}")


if __name__ == "__main__":
    main()
