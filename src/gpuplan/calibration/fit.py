"""Robust hierarchical fit: constants and their label deviations from measured rows.

Log residuals, soft-L1 loss, Gaussian priors on the logs. A constant is a product of a centre and
label deviations, so the slope by a deviation is the slope by the constant on the rows that carry
the label: one evaluation per constant, not per label.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from gpuplan.calibration.residuals import held_out_errors
from gpuplan.domain.calibration.constants import (
    ABSENT,
    Constant,
    FittedConstants,
    Labels,
    bounded,
    effect_key,
    joined_label,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = TypeVar("Row")
# constants by name, one value per row -> log of predictions, one per observation
Predict = Callable[[Mapping[str, Floats]], Floats]

LOG_STEP = 1e-3
NOISE_LOG = 0.08  # residual that counts as one: the spread of repeated measurements and versions
MAX_LOG_STEP = 1.5
# Rows without the trait that an effect is about define its zero.
ABSENT_LOG_SD = 1e-3


class Columns(NamedTuple):
    """Which parameter each row takes: per constant, its centre and its deviations."""

    constants: tuple[Constant, ...]
    members: tuple[tuple[Ints, ...], ...]  # per constant: parameter index of every row
    centre: Floats  # prior mean of every parameter
    log_sd: Floats
    keys: tuple[tuple[str, str], ...]  # effect key and label; label "" for a centre


class Observed(NamedTuple):
    """Measured logs: the row of each, its value and its weight."""

    row: Ints
    log_value: Floats
    weight: Floats
    turn_log: float = NOISE_LOG  # residual from which on the loss grows as a line, not a square


class Measurements(NamedTuple):
    """Measured logs, the labels and sources of their rows, and the formula that predicts them."""

    labels: Sequence[Labels]
    predict: Predict
    observed: Observed
    sources: Sequence[str]


def one_per_row(values: Sequence[float], weight: Floats | None = None) -> Observed:
    """Every row has one measured value."""
    n = len(values)
    return Observed(np.arange(n), np.log(values), np.ones(n) if weight is None else weight)


def balanced_weights(groups: Sequence[Hashable], n_rows: float, *, most: float = 1.0) -> Floats:
    """Weights that let no group count for more than so many rows."""
    count = Counter(groups)
    return np.array([min(most, n_rows / count[group]) for group in groups])


def columns(constants: Sequence[Constant], labels: Sequence[Labels]) -> Columns:
    """The parameters of a fit: one per centre and per label that occurs."""
    prior: list[tuple[float, float]] = []  # mean and standard deviation of every parameter
    keys: list[tuple[str, str]] = []
    members: list[tuple[Ints, ...]] = []
    for constant in constants:
        mine = [np.full(len(labels), len(keys), dtype=np.int64)]
        keys.append((constant.name, ""))
        prior.append((np.log(constant.value), constant.log_sd))
        for effect in constant.effects:
            found = [joined_label(effect, row) for row in labels]
            index = {label: len(keys) + i for i, label in enumerate(dict.fromkeys(found))}
            keys += [(effect_key(constant.name, effect), label) for label in index]
            prior += [
                (effect.prior_of(label), ABSENT_LOG_SD if label == ABSENT else effect.log_sd)
                for label in index
            ]
            mine.append(np.array([index[label] for label in found], dtype=np.int64))
        members.append(tuple(mine))
    centre, log_sd = np.array(prior).reshape(-1, 2).T
    return Columns(tuple(constants), tuple(members), centre, log_sd, tuple(keys))


def row_values(cols: Columns, parameters: Floats) -> dict[str, Floats]:
    """The value of every constant for every row."""
    return {
        constant.name: np.asarray(
            bounded(np.exp(np.sum([parameters[m] for m in mine], axis=0)), constant.most)
        )
        for constant, mine in zip(cols.constants, cols.members, strict=True)
    }


def fit_constants(
    constants: Sequence[Constant], measured: Measurements, *, n_rounds: int = 25
) -> FittedConstants:
    """The constants that these measurements support, held near their priors."""
    cols = columns(constants, measured.labels)
    beta = fit(cols, measured.predict, measured.observed, n_rounds=n_rounds)
    n_rows = len(measured.observed.row)
    return fitted(constants, cols, beta, n_rows=n_rows, sources=measured.sources)


def log_errors(found: FittedConstants, measured: Measurements) -> Floats:
    """The log of predicted over measured of every observation."""
    known: dict[tuple[str, ...], dict[str, float]] = {}
    rows = []
    for labels in measured.labels:
        key = tuple(labels.values())
        if key not in known:
            known[key] = found.values(labels)
        rows.append(known[key])
    values = {
        constant.name: np.array([row[constant.name] for row in rows])
        for constant in found.constants
    }
    return measured.predict(values) - measured.observed.log_value


@dataclass(frozen=True)
class MeasuredModel(Generic[Row]):
    """A model with free constants: its measured rows, and the formula that predicts them."""

    constants: Callable[[], Sequence[Constant]]
    rows: Callable[[], Sequence[Row]]
    measured: Callable[[Sequence[Row]], Measurements]
    n_rounds: int = 25

    def fit(self, rows: Sequence[Row]) -> FittedConstants:
        """The constants that these rows support, held near their priors."""
        return fit_constants(self.constants(), self.measured(rows), n_rounds=self.n_rounds)

    def errors(self, rows: Sequence[Row], found: FittedConstants) -> Floats:
        """The log of predicted over measured of every figure of these rows."""
        return log_errors(found, self.measured(rows))

    def folds(
        self, key: Callable[[Row], Hashable], rows: Sequence[Row] | None = None
    ) -> dict[Hashable, Floats]:
        """The log errors of rows held out by key, the package's own unless given."""
        used = self.rows() if rows is None else rows
        return held_out_errors(used, key, fit=self.fit, errors=self.errors)


def fit(
    cols: Columns,
    predict: Predict,
    observed: Observed,
    *,
    start: Floats | None = None,
    n_rounds: int = 25,
) -> Floats:
    """Parameters that minimise the penalised robust loss (damped Gauss-Newton)."""
    beta = cols.centre.copy() if start is None else start.copy()
    loss, damping = _loss(cols, predict, observed, beta), 1e-2
    for _ in range(n_rounds):
        normal, gradient = _normal(cols, predict, observed, beta)
        previous = loss
        for _ in range(6):
            step = _solve(normal, gradient, damping)
            trial = beta - np.clip(step, -MAX_LOG_STEP, MAX_LOG_STEP)
            trial_loss = _loss(cols, predict, observed, trial)
            if trial_loss < loss:
                beta, loss, damping = trial, trial_loss, damping * 0.3
                break
            damping *= 5.0
        if previous - loss < 1e-4 * previous:
            break
    return beta


def _loss(cols: Columns, predict: Predict, observed: Observed, beta: Floats) -> float:
    z = (predict(row_values(cols, beta)) - observed.log_value) / observed.turn_log
    data = float(np.sum(observed.weight * (np.sqrt(1.0 + z * z) - 1.0)))
    prior = (beta - cols.centre) / cols.log_sd
    return data * (observed.turn_log / NOISE_LOG) ** 2 + 0.5 * float(prior @ prior)


def _normal(
    cols: Columns, predict: Predict, observed: Observed, beta: Floats
) -> tuple[Floats, Floats]:
    """Normal matrix and gradient of the loss at these parameters."""
    values = row_values(cols, beta)
    base = predict(values)
    residual = base - observed.log_value
    z = residual / observed.turn_log
    weight = observed.weight / np.sqrt(1.0 + z * z) / NOISE_LOG**2
    jacobian = _jacobian(cols, predict, values, base=base, row=observed.row)
    weighted = sparse.diags_array(weight) @ jacobian
    penalty = 1.0 / cols.log_sd**2
    normal = (jacobian.T @ weighted).toarray() + np.diag(penalty)
    gradient = weighted.T @ residual + penalty * (beta - cols.centre)
    return normal, gradient


def _jacobian(
    cols: Columns, predict: Predict, values: Mapping[str, Floats], *, base: Floats, row: Ints
) -> sparse.csr_array:
    """Slopes of the predictions: one evaluation per constant serves all of its labels."""
    at = np.arange(len(row))
    blocks: list[tuple[Ints, Ints, Floats]] = []
    for constant, mine in zip(cols.constants, cols.members, strict=True):
        moved = {**values, constant.name: values[constant.name] * np.exp(LOG_STEP)}
        slope = (predict(moved) - base) / LOG_STEP
        used = np.flatnonzero(slope)
        blocks += [(at[used], m[row[used]], slope[used]) for m in mine]
    rows, columns_, data = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return sparse.csr_array((data, (rows, columns_)), shape=(len(row), len(cols.centre)))


def _solve(normal: Floats, gradient: Floats, damping: float) -> Floats:
    damped = normal + damping * np.diag(np.diag(normal))
    solved: Floats = cho_solve(cho_factor(damped), gradient)
    return solved


def start_from(cols: Columns, found: FittedConstants) -> Floats:
    """The parameters of an earlier fit where it has them, else their priors."""
    start = cols.centre.copy()
    for i, (key, label) in enumerate(cols.keys):
        known = found.deviation.get(key, {}) if label else found.log_value
        start[i] = known.get(label or key, start[i])
    return start


def fitted(
    constants: Sequence[Constant],
    cols: Columns,
    beta: Floats,
    *,
    n_rows: int,
    sources: Sequence[str],
) -> FittedConstants:
    """The fitted parameters under the names of their constants and labels."""
    centres: dict[str, float] = {}
    deviations: dict[str, dict[str, float]] = {}
    for (key, label), value in zip(cols.keys, beta, strict=True):
        if label:
            deviations.setdefault(key, {})[label] = float(value)
        else:
            centres[key] = float(value)
    return FittedConstants(
        constants=tuple(constants),
        log_value=centres,
        deviation=deviations,
        n_rows=n_rows,
        sources=tuple(sorted(set(sources))),
    )
