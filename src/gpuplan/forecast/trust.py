"""How far the combination is trusted beside the two baselines, by what each would have said.

The combination's weights are fitted to the past, so its errors there flatter it. Here it is asked
at origins of the last week as if nothing later were known; whoever erred less then counts more.
"""

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.forecast.combine import Combined, combined
from gpuplan.forecast.experts import Season

POWER = 30.0  # with which a smaller error is preferred
FADE = 0.9  # of an error's weight, for each day that it is older
PRIOR_DAYS = 3.0  # of errors believed before any is seen: short records decide little
PRIOR = (0.9, 1.0, 1.0)  # of the change from day to day: combination, last value, a day ago
N_DAYS = 7
N_FIRST_DAYS = 2
SPARSE = 0.5  # of zeros: a few origins then hit or miss by luck, and say nothing about skill

Memo = dict[int, Combined]  # what the combination says at an origin


def trusted(
    table: Floats, values: Floats, origin: int, *, season: Season, horizon: int, memo: Memo
) -> Combined:
    """The combination leaning to a baseline where that did better in the last week."""
    own = _own(table, values, origin, season=season, horizon=horizon, memo=memo)
    if float((values[: origin + 1] == 0).mean()) > SPARSE:
        return own
    scale = float(np.abs(np.diff(_by_day(values[: origin + 1], season.day), axis=0)).mean())
    if scale == 0.0:
        return own
    total, days = np.array(PRIOR) * scale * PRIOR_DAYS, PRIOR_DAYS
    nearest = -(-horizon // season.day)
    for age in range(nearest, nearest + N_DAYS):
        past = origin - age * season.day
        if past < N_FIRST_DAYS * season.day:
            break
        said = _own(table, values, past, season=season, horizon=horizon, memo=memo)
        guesses = _guesses(table, values, past, said.middle)
        weight = FADE ** (age - nearest)
        total = total + weight * np.abs(guesses - values[past + 1 : past + 1 + horizon]).mean(1)
        days += weight
    errors = total / days
    shares = (errors.min() / errors) ** POWER
    shares /= shares.sum()
    middle = shares @ _guesses(table, values, origin, own.middle)
    shift = middle - own.middle
    # Past errors of one sign move the whole range: the expected value stays inside it.
    low, high = np.minimum(own.low + shift, middle), np.maximum(own.high + shift, middle)
    return Combined(*(np.maximum(level, 0.0) for level in (middle, low, high)))


def _own(
    table: Floats, values: Floats, origin: int, *, season: Season, horizon: int, memo: Memo
) -> Combined:
    if origin not in memo:
        memo[origin] = combined(table, values, origin, season=season, horizon=horizon)
    return memo[origin]


def _guesses(table: Floats, values: Floats, origin: int, middle: Floats) -> Floats:
    """[combination, last value, a day ago] by step ahead."""
    horizon = len(middle)
    day_ago = np.nan_to_num(table[origin, 1 : horizon + 1, 1], nan=values[origin])
    return np.stack([middle, np.full(horizon, values[origin]), day_ago])


def _by_day(values: Floats, day: int) -> Floats:
    """[day, step] of the whole days that end now."""
    n = len(values) // day
    return values[len(values) - n * day :].reshape(n, day)
