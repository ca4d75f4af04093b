"""Fit of the training constants: rows to cases, cases to constants, residuals to ranges."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuplan.calibration.fit import Observed, columns, fit, fitted
from gpuplan.calibration.residuals import (
    Floats,
    Spread,
    clustered_spread,
    left_out_errors,
    score,
    spread_of,
)
from gpuplan.calibration.training.constants import TrainingCalibration, seen_pairs, with_traits
from gpuplan.calibration.training.priors import prior
from gpuplan.calibration.training.stacks import SCRIPTS
from gpuplan.domain.calibration.constants import FittedConstants
from gpuplan.domain.training.time import constants_from
from gpuplan.performance.training.columns import stacked, step_columns_s
from gpuplan.studies.measured.training import shape_key
from gpuplan.studies.training.cases import Case

# Every source pulls alike, however many rows it has; a single row not like a whole source.
ROWS_PER_SOURCE = 25.0
ROW_WEIGHT_MAX = 2.5
N_ROUNDS = 100
N_FOLDS = 5
KINDS = ("dense", "sparse", "script")
LEAST_ROWS = 15  # fewer residuals of a kind say nothing of its range
# Constants that a trait of the software multiplies.
FACTORS = ("dp_overlap_frac", "layer_s", "accumulate_bytes_per_param")
Key = Callable[[Case], Hashable]


def usable(cases: Sequence[Case]) -> list[Case]:
    """Rows that say enough to learn from."""
    return [case for case in cases if case.is_complete and case.measured_step_s is not None]


def fit_training(cases: Sequence[Case]) -> FittedConstants:
    """Constants that explain these rows, held near their priors."""
    labels = [case.configuration.labels for case in cases]
    cols = columns(prior(), labels)
    observed = Observed(
        np.arange(len(cases), dtype=np.int64), _measured_logs(cases), _weights(cases)
    )
    beta = fit(cols, _predict(cases), observed, n_rounds=N_ROUNDS)
    sources = [case.row.origin.source for case in cases]
    return fitted(prior(), cols, beta, n_rows=len(cases), sources=sources)


def log_errors(cases: Sequence[Case], found: FittedConstants) -> Floats:
    """log(predicted / measured) of every case."""
    rows = [found.values(case.configuration.labels) for case in cases]
    values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    errors: Floats = _predict(cases)(values) - _measured_logs(cases)
    return errors


def source_of(case: Case) -> str:
    """Tables of one publisher are one source."""
    return case.row.origin.source.partition(":")[0]


def model_of(case: Case) -> str:
    """The network, not the spelling of its name."""
    return shape_key(case.configuration.model)


def accelerator_of(case: Case) -> str:
    """The accelerator's catalog id."""
    return str(case.configuration.accelerator.id)


def fold_of(case: Case) -> int:
    """A fold by configuration, so that repeated runs stay together."""
    found = case.configuration
    text = f"{shape_key(found.model)}{found.accelerator.id}{found.layout}{found.setup}"
    return sum(map(ord, text)) % N_FOLDS


def cross(cases: Sequence[Case], key: Key) -> dict[Hashable, Floats]:
    """Log errors of every group, predicted by a fit that never saw it."""
    return left_out_errors(
        cases, key, fit=fit_training, errors=lambda held, found: [log_errors(held, found)]
    )


def calibrate(cases: Sequence[Case]) -> TrainingCalibration:
    """Constants from all rows, ranges from rows left out in three ways."""
    rows = usable(cases)
    spreads: dict[str, Spread] = {}
    # Formulas were chosen with these rows in sight, so that folds of configurations flatter: a
    # known model of a known source gets the residuals of models left out.
    regimes: tuple[tuple[str, Key], ...] = (
        ("known", model_of), ("new model", model_of), ("new program", source_of),
    )  # fmt: skip
    for regime, key in regimes:
        errors = in_order(rows, key, cross(rows, key))
        for kind in KINDS:
            spreads[f"{kind}|{regime}"] = _spread(rows, key, errors, kind=kind)
    return TrainingCalibration(
        fitted=fit_training(rows),
        spreads=spreads,
        seen=seen_pairs((case.configuration.program, model_of(case)) for case in rows),
        families=frozenset(case.configuration.accelerator.family for case in rows),
    )


def is_covered(cases: Sequence[Case], key: Key, errors: Floats) -> NDArray[np.bool_]:
    """Whether each case lies in the range that the other folds draw for its kind."""
    folds = np.array([str(key(case)) for case in cases])
    kinds = np.array([kind_of(case) for case in cases])
    inside = np.zeros(len(cases), dtype=bool)
    for fold, kind in sorted(set(zip(folds.tolist(), kinds.tolist(), strict=True))):
        held = (folds == fold) & (kinds == kind)
        others = [case for case, name in zip(cases, folds, strict=True) if name != fold]
        spread = _spread(others, key, errors[folds != fold], kind=kind)
        ratio = np.exp(-errors[held])
        inside[held] = (ratio >= spread.low) & (ratio <= spread.high)
    return inside


def kind_of(case: Case) -> str:
    """Whose residuals a case's range is drawn from."""
    if case.configuration.stack.name == SCRIPTS:
        return "script"
    return "dense" if case.configuration.labels["architecture"] == "dense" else "sparse"


def _spread(cases: Sequence[Case], key: Key, errors: Floats, *, kind: str) -> Spread:
    """From this kind alone where it has enough rows, else from all."""
    chosen = np.array([kind_of(case) == kind for case in cases])
    if chosen.sum() < LEAST_ROWS:
        chosen = np.ones(len(cases), dtype=bool)
    if key is fold_of:  # drawn by lot: no groups that err together
        return spread_of(errors[chosen])
    groups = [str(key(case)) for case, is_in in zip(cases, chosen, strict=True) if is_in]
    return clustered_spread(errors[chosen], groups)


def in_order(cases: Sequence[Case], key: Key, folds: Mapping[Hashable, Floats]) -> Floats:
    """Errors of folds in the order of the cases."""
    places: Counter[Hashable] = Counter()
    found = np.empty(len(cases))
    for at, case in enumerate(cases):
        fold = key(case)
        found[at] = folds[fold][places[fold]]
        places[fold] += 1
    return found


def cross_scores(cases: Sequence[Case]) -> dict[str, Any]:
    """Errors outside the fit, left out by source, model and accelerator, source by source."""
    rows = usable(cases)
    sources = np.array([source_of(case) for case in rows])
    errors = {"in the fit": log_errors(rows, fit_training(rows))}
    found: dict[str, Any] = {}
    keys: dict[str, Key] = {
        "source": source_of, "model": model_of, "accelerator": accelerator_of, "fold": fold_of,
    }  # fmt: skip
    for name, key in keys.items():
        column = in_order(rows, key, cross(rows, key))
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


def _weights(cases: Sequence[Case]) -> Floats:
    counts = Counter(source_of(case) for case in cases)
    return np.array([min(ROW_WEIGHT_MAX, ROWS_PER_SOURCE / counts[source_of(c)]) for c in cases])


def _measured_logs(cases: Sequence[Case]) -> Floats:
    logs: Floats = np.log(np.array([case.measured_step_s or np.nan for case in cases]))
    return logs


def _predict(cases: Sequence[Case]) -> Callable[[Mapping[str, NDArray[np.float64]]], Floats]:
    basis = stacked([case.basis for case in cases])
    traits = _trait_columns(cases)

    def predict(values: Mapping[str, NDArray[np.float64]]) -> Floats:
        held = {**values, **traits}
        for name in FACTORS:
            held[name] = values[name] * traits[name]
        logs: Floats = np.log(step_columns_s(basis, constants_from(held)))  # type: ignore[arg-type]
        return logs

    return predict


def _trait_columns(cases: Sequence[Case]) -> dict[str, Floats]:
    unit = dict.fromkeys(FACTORS, 1.0)
    rows = [
        with_traits(unit, case.configuration.accelerator, case.configuration.stack)
        for case in cases
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
