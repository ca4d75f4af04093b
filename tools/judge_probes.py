"""Measure what own runs leave of the error: sites of groups held out, refitted to one row or three.

    python tools/judge_probes.py

Every fourth of the groups (source, model, accelerator) is held out of a fit in turn, and sites are
made of its rows. Writes tests/validation/never_seen/probed_sites.csv, which the page of validation
reads, and how far a measured site's ranges narrow into the stored calibration.
"""

import csv
import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from ledger import FOLDER, TABLE, Row, rows_of
from validation_ranges import store_narrowing

from gpuplan.calibration.inference.own import conditions_of, own_figures, width_ratio
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.studies.inference.predict import Ranged
from gpuplan.studies.validation import site_fit
from gpuplan.studies.validation.figures import TAIL_METRICS
from gpuplan.studies.validation.fit_inference import (
    N_NEAR_ROUNDS,
    SPLITS,
    Study,
    fit_study,
    folds,
    known_labels,
    study,
)
from gpuplan.studies.validation.inference_table import log_predictions, read_table

OUT = FOLDER / "probed_sites.csv"
SITE = ("source", "model", "accelerator", "engine", "engine_version", "precision")
N_SITES, N_TARGETS, LEAST_ROWS = 6, 10, 6  # of a regime and fold; rows scored; rows of a site
COLUMNS = (
    "site", "regime", "metric", "n_measured", "log_before", "log_after", "half", "width_ratio",
)  # fmt: skip


def sites(of: Study, rows: Sequence[int]) -> Iterator[tuple[str, str, list[Row]]]:
    """A few sites of each regime with enough rows, rows by their load."""
    found = defaultdict(list)
    for i in rows:
        row = of.table.rows[i]
        found["|".join(row[key] for key in SITE), row["regime"]].append(row)
    order, n_regime = list(found), Counter[str]()
    np.random.default_rng(0).shuffle(order)
    for site, regime in map(tuple, order):
        if len(found[site, regime]) >= LEAST_ROWS and n_regime[regime] < N_SITES:
            n_regime[regime] += 1
            yield site, regime, sorted(found[site, regime], key=lambda r: float(r["batch"] or 0))


def judged(rows: Sequence[Row], k: int, known: InferenceCalibration, seed: int) -> Iterator[list]:
    """Log errors of other rows of a site, before and after a refit to k rows spread over load."""
    rng = np.random.default_rng(seed)
    probe = [int(rng.choice(part)) for part in np.array_split(np.arange(len(rows)), k)]
    rest = np.setdiff1d(np.arange(len(rows)), probe)
    rest = rng.choice(rest, min(N_TARGETS, len(rest)), replace=False)
    of = study(read_table([rows[i] for i in (*probe, *rest)]))
    site, seen = site_fit.site_of(of, known), of.observed
    before = log_predictions(of.groups, site.stages.values({}), site.runs, len(seen.row))
    after = site_fit.refit(site, seen.row < k).fit.residual
    own = [run for of_row in site_fit.own_figures(site)[:k] for run in of_row]
    for at in np.flatnonzero((seen.row >= k) & ~np.isin(seen.metric, TAIL_METRICS)):
        metric, setup = str(seen.metric[at]), of.table.setups[seen.row[at]]
        ranged = Ranged(setup, known, of.table.labels[seen.row[at]])
        runs = own_figures(own, own[0].configuration, metric)
        logs = seen.log_value[at] - before[at], -after[at]
        figures = *logs, ranged.half(metric), width_ratio(runs, conditions_of(setup))
        yield [metric, k, *(round(float(figure), 4) for figure in figures)]


def fold_lines(number: int) -> list[list]:
    """What sites of one fold show, by constants from the others."""
    of = study(read_table(rows_of(TABLE)))
    by, n_folds = SPLITS["group"]
    fold = np.array(folds(of, by, n_folds))
    stored, out = inference_calibration(), np.flatnonzero(fold == number)
    used = fold[of.observed.row] != number
    fitted = fit_study(of, used, near=stored.constants, n_rounds=N_NEAR_ROUNDS).constants
    known = known_labels(of, np.flatnonzero(fold != number))
    package = replace(stored, constants=fitted, known=known)
    return [
        [site, regime, *line]
        for seed, (site, regime, rows) in enumerate(sites(of, out))
        for k in (1, 3)
        for line in judged(rows, k, package, seed)
    ]


def main() -> None:
    n_workers = int(os.environ.get("REFIT_WORKERS", os.cpu_count() or 1))
    with multiprocessing.get_context("fork").Pool(n_workers) as pool:
        lines = pool.map(fold_lines, range(SPLITS["group"][1]), chunksize=1)
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(line for of_fold in lines for line in of_fold)
    store_narrowing()


if __name__ == "__main__":
    main()
