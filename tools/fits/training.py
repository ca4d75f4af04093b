"""Fit of the training constants: cases in, constants with ranges and the document out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpuplan.calibration.residuals import Floats, Spread, score
from gpuplan.calibration.training.constants import TrainingCalibration, known_pairs
from gpuplan.studies.training.calibration import (
    KINDS,
    TRAINING,
    Key,
    accelerator_of,
    errors_by_case,
    fold_of,
    is_covered,
    kind_spread,
    model_of,
    source_of,
    usable,
)
from gpuplan.studies.training.cases import Case


def calibrate(cases: Sequence[Case]) -> TrainingCalibration:
    """Constants from all rows, ranges from rows held out in three ways."""
    rows = usable(cases)
    spreads: dict[str, Spread] = {}
    # Formulas were chosen with these rows in sight, so that folds of configurations flatter: a
    # known model of a known source gets the residuals of held-out models.
    regimes: dict[str, Key] = {"known": model_of, "new model": model_of, "new program": source_of}
    for regime, key in regimes.items():
        errors = errors_by_case(rows, key)
        for kind in KINDS:
            spreads[f"{kind}|{regime}"] = kind_spread(rows, key, errors, kind=kind)
    return TrainingCalibration(
        fitted=TRAINING.fit(rows),
        spreads=spreads,
        known_pairs=known_pairs((case.configuration.program, model_of(case)) for case in rows),
        families=frozenset(case.configuration.accelerator.family for case in rows),
    )


def cross_scores(cases: Sequence[Case]) -> dict[str, Any]:
    """Errors of rows held out by source, model and accelerator, source by source."""
    rows = usable(cases)
    sources = np.array([source_of(case) for case in rows])
    errors = {"in the fit": TRAINING.errors(rows, TRAINING.fit(rows))}
    found: dict[str, Any] = {}
    keys: dict[str, Key] = {
        "source": source_of,
        "model": model_of,
        "accelerator": accelerator_of,
        "fold": fold_of,
    }
    for name, key in keys.items():
        column = errors_by_case(rows, key)
        errors[f"left out by {name}"] = column
        found[f"coverage left out by {name}"] = float(is_covered(rows, key, column).mean())
    for name, column in errors.items():
        found[name] = {"all": _score(column)} | {
            str(source): _score(column[sources == source]) for source in sorted(set(sources))
        }
    return found


def _score(errors: Floats) -> list[float]:
    found = score(errors)
    figures = (found.median_ape, found.mape, found.p90_ape, found.bias)
    return [found.n, *(round(figure, 4) for figure in figures)]


VERSION = 1


def document(calibration: TrainingCalibration, scores: Mapping[str, Any]) -> dict[str, Any]:
    """The fit as it is stored: values, priors, rows, sources, residuals."""
    fitted = calibration.fitted
    return {
        "version": VERSION,
        "what": "LLM training step time",
        "n_rows": fitted.n_rows,
        "sources": list(fitted.sources),
        "priors": {c.name: [c.value, c.log_sd, c.source] for c in fitted.constants},
        "log_value": _rounded(fitted.log_value),
        "deviation": {key: _rounded(found) for key, found in sorted(fitted.deviation.items())},
        "spreads": {key: [round(x, 5) for x in pair] for key, pair in calibration.spreads.items()},
        "seen": sorted(calibration.known_pairs),
        "families": sorted(calibration.families),
        "scores": dict(scores),
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 6) for name, value in sorted(values.items())}
