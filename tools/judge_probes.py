"""Measure what own runs leave of the error: sites made of later rows, refitted to one row or three.

    python tools/judge_probes.py COMMIT

The constants are those of a commit before the later rows joined the fit, so that no site is known
to them. Writes tests/validation/never_seen/probed_sites.csv, which the page of validation reads.
"""

import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import log
from typing import Any

import numpy as np
from ledger import FOLDER, ROOT, TABLE, Row, later_figures, rows_of

from gpuplan.calibration.inference.store import from_document
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.studies.validation.fit_inference import study
from gpuplan.studies.validation.inference_table import METRICS, TAIL_METRICS, read_table
from gpuplan.studies.validation.site_fit import predicted, refit, refitted, site_of

OUT = FOLDER / "probed_sites.csv"
STORED = "src/gpuplan/calibration/data/llm_inference.json"
SITE = ("source", "model", "accelerator", "engine", "engine_version", "precision")
N_SITES, N_TARGETS, LEAST_ROWS = 14, 10, 6  # of a regime; rows that are scored; rows of a site
COLUMNS = ("site", "regime", "metric", "n_measured", "log_before", "log_after", "half")


def constants_of(commit: str) -> InferenceCalibration:
    """Constants of a commit with today's ranges."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:{STORED}"], cwd=ROOT, capture_output=True, check=True
    )
    then: dict[str, Any] = json.loads(shown.stdout)
    now: dict[str, Any] = json.loads((ROOT / STORED).read_text("utf-8"))
    return from_document({**now, **{key: then[key] for key in ("constants", "deviations")}})


def sites() -> Iterator[tuple[str, str, list[Row]]]:
    """A few sites of each regime with enough later rows, rows by their load."""
    table, found = {row["id"]: row for row in rows_of(TABLE)}, defaultdict(list)
    for name in dict.fromkeys(figure["id"] for figure in later_figures()):
        row = table.get(name)
        if row is not None:
            found["|".join(row[key] for key in SITE), row["regime"]].append(row)
    order, n_regime = list(found), Counter[str]()
    np.random.default_rng(0).shuffle(order)
    for site, regime in map(tuple, order):
        rows = found[site, regime]
        if len(rows) >= LEAST_ROWS and n_regime[regime] < N_SITES:
            n_regime[regime] += 1
            yield site, regime, sorted(rows, key=lambda row: float(row["batch"] or 0))


def judged(rows: Sequence[Row], k: int, known: InferenceCalibration, seed: int) -> Iterator[list]:
    """Log errors of other rows of a site, before and after a refit to k rows spread over load."""
    rng = np.random.default_rng(seed)
    probe = [int(rng.choice(part)) for part in np.array_split(np.arange(len(rows)), k)]
    rest = np.setdiff1d(np.arange(len(rows)), probe)
    rest = rng.choice(rest, min(N_TARGETS, len(rest)), replace=False)
    site = site_of(study(read_table([rows[i] for i in probe])), known)
    found = refit(site, np.ones(len(site.of.observed.row), dtype=bool))
    moved = refitted(site, found, version="probed")
    target = study(read_table([rows[i] for i in rest]))
    for i in range(len(target.table.rows)):
        before, after = (predicted(target, i, calibration) for calibration in (known, moved))
        for metric in set(before.measured) & (set(METRICS) - set(TAIL_METRICS)):
            measured, first = before.measured[metric], before.predicted[metric]
            logs = [log(measured / each.predicted[metric].value) for each in (before, after)]
            yield [metric, k, *(round(e, 4) for e in logs), round(log(first.high / first.value), 3)]


def main() -> None:
    known = constants_of(sys.argv[1])
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for seed, (site, regime, rows) in enumerate(sites()):
            for k in (1, 3):
                writer.writerows([site, regime, *line] for line in judged(rows, k, known, seed))


if __name__ == "__main__":
    main()
