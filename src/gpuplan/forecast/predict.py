"""A forecast with its record: the combination, held against last value and "as a day ago".

How far the combination is trusted beside the two baselines, by what each would have said.

The combination's weights are fitted to the past, so its errors there flatter it. Here it is asked
at origins of the last week as if nothing later were known; whoever erred less then counts more.
"""

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.telemetry.forecast import BacktestRow, DemandForecast, DemandSeries
from gpuplan.errors import InputError, one
from gpuplan.forecast.combine import Combined, Experts, Season, combined
from gpuplan.units import DAY

POWER = 30.0  # with which a smaller error is preferred
FADE = 0.9  # of an error's weight, for each day that it is older
PRIOR_DAYS = 3.0  # of errors believed before any is seen: short records decide little
PRIOR = (0.9, 1.0, 1.0)  # of the change from day to day: combination, last value, a day ago
N_DAYS = 7
N_FIRST_DAYS = 2
SPARSE = 0.5  # of zeros: a few origins then hit or miss by luck, and say nothing about skill

Memo = dict[int, Combined]  # what the combination says at an origin


N_ORIGINS = 14
LEAST_DAYS = 3
MOST_CELLS = 40_000_000  # steps of past times steps ahead: a month of minutes for a day


def forecast(series: DemandSeries, horizon_s: float) -> DemandForecast:
    """The coming stretch, as far as a week; the record of the past is part of the answer."""
    season = season_of(series.step_s)
    horizon = max(1, round(horizon_s / series.step_s))
    values = np.maximum(series.level, 0.0)
    if len(values) < 2 or horizon > season.week:
        what = f"{len(values)} steps of past for {horizon} ahead"
        fix = "give at least two steps, and ask for a week at most"
        raise one(InputError, "forecast", series.name, what, fix)
    _refuse_endless(series, horizon)
    at_s = series.begin_s + series.step_s * (len(values) + np.arange(horizon))
    if len(values) < LEAST_DAYS * season.day:
        return _too_short(series, values, season=season, at_s=floats(at_s))
    experts = Experts(values, season)
    memo: Memo = {}
    rows, retained = backtest(values, season, horizon, experts=experts, memo=memo)
    now = len(values) - 1
    middle, low, high = trusted(experts, values, now, season=season, horizon=horizon, memo=memo)
    best = min(rows, key=lambda row: row.mase_ratio) if rows else None
    return DemandForecast(
        series=series,
        at_s=floats(at_s),
        middle=floats(middle),
        low=floats(low),
        high=floats(high),
        method="combination of simple forecasts",
        backtest=rows,
        range_held_frac=retained,
        warnings=_warnings(values, best),
    )


def _refuse_endless(series: DemandSeries, horizon: int) -> None:
    n = len(series.level)
    if n * horizon > MOST_CELLS:
        what = f"{n:,} steps of past for {horizon:,} ahead would take too long"
        coarse = series.step_s * (n * horizon / MOST_CELLS) ** 0.5
        fix = f"take longer steps (--step-s {coarse:.0f}), or a shorter horizon"
        raise one(InputError, "forecast", series.name, what, fix)


def season_of(step_s: float) -> Season:
    """Steps of a day and a week; coarser steps than half a day have a week only."""
    day = max(1, round(DAY / step_s))
    return Season(day=day, week=max(2, round(7 * DAY / step_s)))


def backtest(
    values: Floats,
    season: Season,
    horizon: int,
    *,
    experts: Experts | None = None,
    memo: Memo | None = None,
) -> tuple[tuple[BacktestRow, ...], float | None]:
    """Errors from past origins, a day apart, and the share of values inside the range."""
    stated_before: Memo = {} if memo is None else memo
    known = Experts(values, season) if experts is None else experts
    last = len(values) - horizon - 1
    first = LEAST_DAYS * season.day
    origins = list(range(last, first - 1, -season.day))[:N_ORIGINS]
    if not origins:
        return (), None
    scale = float(np.abs(values[season.day :] - values[: -season.day]).mean()) + 1e-12
    errors: dict[str, list[float]] = {"combination": [], "last value": [], "as a day ago": []}
    inside = []
    for origin in origins:
        truth = values[origin + 1 : origin + 1 + horizon]
        found = trusted(known, values, origin, season=season, horizon=horizon, memo=stated_before)
        stated = {
            "combination": found.middle,
            "last value": np.full(horizon, values[origin]),
            "as a day ago": _day_ago(known, origin, horizon),
        }
        for name, guess in stated.items():
            errors[name].append(float(np.abs(guess - truth).mean()) / scale)
        inside.append((truth >= found.low - 1e-9) & (truth <= found.high + 1e-9))
    rows = tuple(
        BacktestRow(method=name, mase_ratio=float(np.mean(found)), n_origins=len(origins))
        for name, found in errors.items()
        if season.day > 1 or name != "as a day ago"  # of longer steps that is the last value
    )
    return rows, float(np.mean(inside))


def _warnings(values: Floats, best: BacktestRow | None) -> tuple[str, ...]:
    found = []
    if best is None:
        found.append("the past is too short to try the forecast on it")
    elif best.method != "combination":
        found.append(f"on the past {best.method!r} did better than the combination")
    if float((values == 0).mean()) > SPARSE:
        found.append("more than half of the past is zero: hardly forecastable")
    return tuple(found)


def _too_short(
    series: DemandSeries, values: Floats, *, season: Season, at_s: Floats
) -> DemandForecast:
    """Fewer than three days: as a day ago, or the last value; the range is what was observed."""
    horizon = len(at_s)
    if len(values) >= season.day:
        middle = np.resize(values[-season.day :], horizon)
        method = "as a day ago"
    else:
        middle, method = np.full(horizon, values[-1]), "last value"
    low, high = np.quantile(values, [0.1, 0.9])
    return DemandForecast(
        series=series,
        at_s=at_s,
        middle=floats(middle),
        low=floats(np.minimum(middle, low)),
        high=floats(np.maximum(middle, high)),
        method=method,
        backtest=(),
        range_held_frac=None,
        warnings=("fewer than three days of past: no record, and the range is what was observed",),
    )


def trusted(
    experts: Experts, values: Floats, origin: int, *, season: Season, horizon: int, memo: Memo
) -> Combined:
    """The combination leaning to a baseline where that did better in the last week."""
    own = _own(experts, values, origin, season=season, horizon=horizon, memo=memo)
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
        stated = _own(experts, values, past, season=season, horizon=horizon, memo=memo)
        guesses = _guesses(experts, values, past, stated.middle)
        weight = FADE ** (age - nearest)
        total = total + weight * np.abs(guesses - values[past + 1 : past + 1 + horizon]).mean(1)
        days += weight
    errors = total / days
    shares = (errors.min() / errors) ** POWER
    shares /= shares.sum()
    middle = shares @ _guesses(experts, values, origin, own.middle)
    shift = middle - own.middle
    # Past errors of one sign move the whole range: the expected value stays inside it.
    low, high = np.minimum(own.low + shift, middle), np.maximum(own.high + shift, middle)
    return Combined(*(np.maximum(level, 0.0) for level in (middle, low, high)))


def _own(
    experts: Experts, values: Floats, origin: int, *, season: Season, horizon: int, memo: Memo
) -> Combined:
    if origin not in memo:
        memo[origin] = combined(experts, values, origin, season=season, horizon=horizon)
    return memo[origin]


def _guesses(experts: Experts, values: Floats, origin: int, middle: Floats) -> Floats:
    """[combination, last value, a day ago] by step ahead."""
    horizon = len(middle)
    day_ago = np.nan_to_num(_day_ago(experts, origin, horizon), nan=values[origin])
    return np.stack([middle, np.full(horizon, values[origin]), day_ago])


def _day_ago(experts: Experts, origin: int, horizon: int) -> Floats:
    return experts.stated(np.array([origin]), np.arange(1, horizon + 1))[:, 1]


def _by_day(values: Floats, day: int) -> Floats:
    """[day, step] of the whole days that end now."""
    n = len(values) // day
    return values[len(values) - n * day :].reshape(n, day)
