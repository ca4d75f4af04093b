"""Weights of the experts, fitted to the past: they add up to one, and none is negative.

Errors count by size, not by square: the score of a forecast is its mean absolute error. Where the
past is short the weights stay near those that the experts' own errors suggest.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from gpuplan.domain.columns import Floats, floats
from gpuplan.forecast.experts import NAMES, Season, expert_table

PULL = 0.05  # towards the weights that the experts' own errors suggest
SHARPNESS = 12.0  # with which a better expert is preferred before any fit
N_ROUNDS = 6
SMALL = 0.05  # of the mean: errors below it count alike
GROUPS = ((0.0, 1 / 8), (1 / 8, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1.0))  # of the day ahead
MAX_PAST_DAYS = 28
TAILS = (0.1, 0.9)


class Combined(NamedTuple):
    """A forecast with the range that past errors of its weights suggest."""

    middle: Floats
    low: Floats
    high: Floats


def combined(
    table: Floats, values: Floats, origin: int, *, season: Season, horizon: int
) -> Combined:
    """Steps after the origin, from what was known at it."""
    middle, low, high = np.zeros(horizon), np.zeros(horizon), np.zeros(horizon)
    for steps in _groups(horizon):
        rows, truth = _past(table, values, origin, steps=steps, season=season)
        weights = _weights(rows, truth)
        errors = truth - rows @ weights
        below, above = np.quantile(errors, TAILS)
        for ahead in steps:
            value = float(np.nan_to_num(table[origin, ahead], nan=values[origin]) @ weights)
            middle[ahead - 1] = max(value, 0.0)
            low[ahead - 1] = max(value + below, 0.0)
            high[ahead - 1] = max(value + above, 0.0)
    return Combined(middle, low, high)


def _groups(horizon: int) -> list[range]:
    """Steps that share their weights: soon, later today, tonight, tomorrow."""
    edges = [1 + round(horizon * low) for low, _ in GROUPS] + [horizon + 1]
    return [range(a, b) for a, b in pairwise(edges) if b > a]


def _past(
    table: Floats, values: Floats, origin: int, *, steps: range, season: Season
) -> tuple[Floats, Floats]:
    """What the experts said at earlier origins, and what came."""
    first = max(season.day, origin - MAX_PAST_DAYS * season.day)
    rows, truth = [], []
    for ahead in steps:
        origins = np.arange(first, origin - ahead + 1)
        rows.append(table[origins, ahead])
        truth.append(values[origins + ahead])
    said, came = np.vstack(rows), np.concatenate(truth)
    is_whole = np.isfinite(said).all(axis=1)
    return said[is_whole], came[is_whole]


def _weights(rows: Floats, truth: Floats) -> Floats:
    """Non-negative weights of sum one with a small mean absolute error, by reweighted squares."""
    n_experts = len(NAMES)
    if len(truth) == 0:
        return floats(np.eye(n_experts)[0])
    errors = np.abs(rows - truth[:, None]).mean(axis=0) + 1e-12
    start = (errors.min() / errors) ** SHARPNESS
    start /= start.sum()
    scale = float(np.abs(truth).mean()) + 1e-12
    size = float(np.sqrt((rows**2).mean())) * np.sqrt(len(truth))
    pull = np.sqrt(PULL) * size * np.eye(n_experts)
    whole = 1e3 * scale * np.ones((1, n_experts))
    weights, trust = start, np.ones(len(truth))
    for _ in range(N_ROUNDS):
        root = np.sqrt(trust)
        left = np.vstack([rows * root[:, None], pull, whole])
        right = np.concatenate([truth * root, pull @ start, [1e3 * scale]])
        weights, _ = nnls(left, right)
        trust = 1.0 / np.maximum(np.abs(truth - rows @ weights), SMALL * scale)
        trust /= trust.mean()
    return np.asarray(weights / max(float(weights.sum()), 1e-12))


def table_of(values: Floats, season: Season, horizon: int) -> Floats:
    """What the experts say at every origin."""
    return expert_table(values, season, horizon)
