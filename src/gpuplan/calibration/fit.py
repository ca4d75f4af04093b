"""Robust hierarchical fit: constants and their label deviations from measured rows.

Log residuals, soft-L1 loss, Gaussian priors on the logs. A constant is a product of a centre and
label deviations, so the slope by a deviation is the slope by the constant on the rows that carry
the label: one evaluation per constant, not per label.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from gpuplan.domain.calibration.constants import (
    Constant,
    FittedConstants,
    Labels,
    bounded,
    effect_key,
    joined_label,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# constants by name, one value per row -> log of predictions, one per observation
Predict = Callable[[Mapping[str, Floats]], Floats]

LOG_STEP = 1e-3
NOISE_LOG = 0.08  # residual that counts as one: the spread of repeated measurements and versions
MAX_LOG_STEP = 1.5
# Rows without the trait that an effect is about define its zero.
ABSENT, ABSENT_LOG_SD = "no", 1e-3


class Columns(NamedTuple):
    """Which parameter each row takes: per constant, its centre and its deviations."""

    names: tuple[str, ...]
    most: tuple[float | None, ...]
    members: tuple[tuple[Ints, ...], ...]  # per constant: parameter index of every row
    centre: Floats  # prior mean of every parameter
    log_sd: Floats
    keys: tuple[tuple[str, str], ...]  # effect key and label; label "" for a centre


class Observed(NamedTuple):
    """Measured logs: the row of each, its value and its weight."""

    row: Ints
    log_value: Floats
    weight: Floats


def columns(constants: Sequence[Constant], labels: Sequence[Labels]) -> Columns:
    """One parameter per centre and per label that occurs."""
    centre: list[float] = []
    sds: list[float] = []
    keys: list[tuple[str, str]] = []
    members: list[tuple[Ints, ...]] = []
    index: dict[tuple[str, str], int] = {}
    for constant in constants:
        mine = [np.full(len(labels), len(keys), dtype=np.int64)]
        keys.append((constant.name, ""))
        centre.append(np.log(constant.value))
        sds.append(constant.log_sd)
        for effect in constant.effects:
            key = effect_key(constant.name, effect)
            found = [joined_label(effect, row) for row in labels]
            for label in dict.fromkeys(found):
                index[key, label] = len(keys)
                keys.append((key, label))
                centre.append(effect.prior_of(label))
                sds.append(ABSENT_LOG_SD if label == ABSENT else effect.log_sd)
            mine.append(np.array([index[key, label] for label in found], dtype=np.int64))
        members.append(tuple(mine))
    most = tuple(c.most for c in constants)
    return Columns(
        tuple(c.name for c in constants), most, tuple(members), np.array(centre),
        np.array(sds), tuple(keys),
    )  # fmt: skip


def row_values(cols: Columns, parameters: Floats) -> dict[str, Floats]:
    """Every constant for every row."""
    return {
        name: np.asarray(bounded(np.exp(np.sum([parameters[m] for m in mine], axis=0)), most))
        for name, mine, most in zip(cols.names, cols.members, cols.most, strict=True)
    }


def fit(
    cols: Columns, predict: Predict, observed: Observed, *, start: Floats | None = None,
    n_rounds: int = 25,
) -> Floats:  # fmt: skip
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
    z = _residual(cols, predict, observed, beta) / NOISE_LOG
    data = float(np.sum(observed.weight * (np.sqrt(1.0 + z * z) - 1.0)))
    prior = (beta - cols.centre) / cols.log_sd
    return data + 0.5 * float(prior @ prior)


def _residual(cols: Columns, predict: Predict, observed: Observed, beta: Floats) -> Floats:
    return predict(row_values(cols, beta)) - observed.log_value


def _normal(
    cols: Columns, predict: Predict, observed: Observed, beta: Floats
) -> tuple[Floats, Floats]:
    values = row_values(cols, beta)
    base = predict(values)
    residual = base - observed.log_value
    z = residual / NOISE_LOG
    weight = observed.weight / np.sqrt(1.0 + z * z) / NOISE_LOG**2
    n = len(observed.row)
    at = np.arange(n)
    blocks: list[tuple[Ints, Ints, Floats]] = []
    for name, mine in zip(cols.names, cols.members, strict=True):
        moved = {**values, name: values[name] * np.exp(LOG_STEP)}
        slope = (predict(moved) - base) / LOG_STEP
        used = np.flatnonzero(slope)
        blocks += [(at[used], m[observed.row[used]], slope[used]) for m in mine]
    rows, columns_, data = (np.concatenate(part) for part in zip(*blocks, strict=True))
    jacobian = sparse.csr_array((data, (rows, columns_)), shape=(n, len(cols.centre)))
    weighted = sparse.diags_array(weight) @ jacobian
    penalty = 1.0 / cols.log_sd**2
    normal = (jacobian.T @ weighted).toarray() + np.diag(penalty)
    gradient = weighted.T @ residual + penalty * (beta - cols.centre)
    return normal, gradient


def _solve(normal: Floats, gradient: Floats, damping: float) -> Floats:
    damped = normal + damping * np.diag(np.diag(normal))
    solved: Floats = cho_solve(cho_factor(damped), gradient)
    return solved


def start_from(cols: Columns, found: FittedConstants) -> Floats:
    """The parameters of an earlier fit where it has them, else their priors."""
    start = cols.centre.copy()
    for i, (key, label) in enumerate(cols.keys):
        if label:
            start[i] = found.deviation.get(key, {}).get(label, start[i])
        else:
            start[i] = found.log_value.get(key, start[i])
    return start


def fitted(
    constants: Sequence[Constant], cols: Columns, beta: Floats, *, n_rows: int,
    sources: Sequence[str],
) -> FittedConstants:  # fmt: skip
    """The parameters under their names."""
    centres: dict[str, float] = {}
    deviations: dict[str, dict[str, float]] = {}
    for (key, label), value in zip(cols.keys, beta, strict=True):
        if label:
            deviations.setdefault(key, {})[label] = float(value)
        else:
            centres[key] = float(value)
    return FittedConstants(
        constants=tuple(constants), log_value=centres, deviation=deviations, n_rows=n_rows,
        sources=tuple(sorted(set(sources))),
    )  # fmt: skip
