"""How a load repeats over the week and moves over the horizon: what capacity is planned for.

In: the hours and the growth that a scenario describes. Out: kinds of hours with their weight, and
the highest load of each period under low, middle and high growth.

Figures of a stream of requests, counted over whole windows of time.
"""

from collections.abc import Sequence

import numpy as np

from gpuplan.demand.profile import growth_ratio, hourly_weights
from gpuplan.domain.columns import Floats, Ints, floats, ints
from gpuplan.domain.plan.sizing import HourLoads, Periods
from gpuplan.domain.scenario.demand import Growth, LoadStep
from gpuplan.domain.traffic.stream import Requests
from gpuplan.domain.traffic.trace import LoadSummary
from gpuplan.errors import InputError, one
from gpuplan.units import HOUR, HOURS_PER_WEEK, MINUTE, MONTH, MONTHS_PER_YEAR

MAX_WINDOWS = 100_000_000
LONG_S = 6 * HOUR  # from here on hours tell more than minutes


N_MONTHS_PER_PERIOD = 3  # a quarter: how often budgets and orders are made
SCENARIOS = ("mid", "low", "high")
MOST_RATIO = 1e4  # of the first month's load: beyond, no plan means anything


def constant_hours() -> HourLoads:
    """Always at the peak: a mean without a profile does not say when valleys come."""
    return HourLoads(load_frac=floats([1.0]), hours_per_week=floats([HOURS_PER_WEEK]))


def hours_of_profile(profile: tuple[float, ...]) -> HourLoads:
    """The hours of a day or a week as given, over their highest."""
    weights = hourly_weights(profile)
    each = HOURS_PER_WEEK / len(weights)
    return HourLoads(
        load_frac=floats(weights / weights.max()),
        hours_per_week=floats(np.full(len(weights), each)),
    )


def hours_of_steps(steps: Sequence[LoadStep], loads: Sequence[float]) -> HourLoads:
    """A load-duration curve: "at least this much, for so long" becomes bands of hours.

    What no step covers is without load.
    """
    order = sorted(range(len(steps)), key=lambda i: -loads[i])
    held_h = np.array([steps[i].held_s / HOUR for i in order])
    if np.any(np.diff(held_h) < 0):
        what = "a higher load is held longer than a lower one"
        raise one(InputError, "demand", "load-duration", what, "each step counts the higher ones")
    load = np.array([loads[i] for i in order])
    hours = np.diff(np.concatenate([[0.0], held_h]))
    if held_h[-1] < HOURS_PER_WEEK:
        load, hours = np.append(load, 0.0), np.append(hours, HOURS_PER_WEEK - held_h[-1])
    return HourLoads(load_frac=floats(load / load.max()), hours_per_week=floats(hours))


def periods_of(growth: Growth, horizon_s: float) -> Periods:
    """Quarters up to the horizon; one period where nothing grows and no season turns."""
    rates = growth.per_month_frac
    by_name = {"mid": rates.mid, "low": rates.low, "high": rates.high}
    names = ("mid",) if rates.is_exact else SCENARIOS
    is_still = rates.is_exact and rates.mid == 0 and not growth.monthly_profile
    n_months = 1 if is_still else max(1, int(np.ceil(horizon_s / MONTH - 1e-9)))
    edges = np.arange(0, n_months, N_MONTHS_PER_PERIOD)
    length_s = np.diff(np.append(edges * MONTH, horizon_s))
    ratios = [_highest(_months(by_name[name], growth, n_months), edges) for name in names]
    _check_ratio(
        max(float(np.max(ratio)) for ratio in ratios), max(rates.low, rates.high), n_months
    )
    return Periods(
        scenarios=names,
        start_s=floats(edges * MONTH),
        length_s=floats(length_s),
        load_ratio=floats(ratios),
    )


def _check_ratio(ratio: float, per_month_frac: float, n_months: int) -> None:
    """InputError where the load grows beyond all reason; overflow counts as such."""
    if not ratio <= MOST_RATIO:
        what = f"{per_month_frac:.0%} a month is {ratio:.3g} times the load in {n_months} months"
        fix = f"give growth that stays below {MOST_RATIO:,.0f} times, or a shorter horizon"
        raise one(InputError, "growth", "per_month_frac", what, fix)


def _months(rate: float, growth: Growth, n_months: int) -> Floats:
    """Load of each month over that of the first, today's."""
    grown = [growth_ratio(rate, month * MONTH) for month in range(n_months)]
    return floats(np.array(grown) * _seasons(growth.monthly_profile, n_months))


def _seasons(profile: tuple[float, ...], n_months: int) -> Floats:
    """Load of each month over that of the first, today's."""
    if not profile:
        return floats(np.ones(n_months))
    if len(profile) != MONTHS_PER_YEAR or min(profile) <= 0:
        what = f"got {len(profile)} numbers"
        raise one(InputError, "growth", "monthly profile", what, "give 12 numbers above 0")
    months = np.array(profile, dtype=np.float64)
    return floats(months[np.arange(n_months) % MONTHS_PER_YEAR] / months[0])


def _highest(monthly: Floats, edges: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    return floats(np.maximum.reduceat(monthly, edges))


def counts(arrive_s: Floats, window_s: float, *, duration_s: float | None = None) -> Ints:
    """Arrivals in each whole window from the first arrival on, or from 0 where a duration is given.

    The last, partial window is left out: it would count as a quiet one. A span shorter than one
    window is one window.
    """
    if not window_s > 0:
        raise one(InputError, "load", "window", f"got {window_s:g}", "must be above 0 seconds")
    if not len(arrive_s):
        return ints([])
    start = float(arrive_s[0]) if duration_s is None else 0.0
    span = float(arrive_s[-1]) - start if duration_s is None else duration_s
    n = max(1, int(span / window_s * (1 + 1e-12)))
    if n > MAX_WINDOWS:
        what = f"{n:,} windows of {window_s:g} s"
        raise one(InputError, "load", "window", what, f"at most {MAX_WINDOWS:,}")
    place = ((arrive_s - start) / window_s).astype(np.int64)
    return ints(np.bincount(place[place < n], minlength=n))


def telling_window_s(span_s: float) -> float:
    """The window in which a load of that span is best looked at."""
    return HOUR if span_s >= LONG_S else MINUTE


def gap_cv(arrive_s: Floats) -> float | None:
    """Burstiness: CV of inter-arrival times; None below two of them or without time."""
    gaps = np.diff(arrive_s)
    if len(gaps) < 2 or gaps.mean() == 0:
        return None
    return float(gaps.std(ddof=1) / gaps.mean())


def dispersion(
    arrive_s: Floats, window_s: float, *, duration_s: float | None = None
) -> float | None:
    """Index of dispersion: variance over mean of counts; 1 is Poisson, None below two windows."""
    n = counts(arrive_s, window_s, duration_s=duration_s)
    if len(n) < 2 or n.mean() == 0:
        return None
    return float(n.var(ddof=1) / n.mean())


def peak_hour(arrive_s: Floats) -> tuple[float, float]:
    """Start and mean rate of the busiest hour, wherever it begins; all of a span below an hour."""
    if not len(arrive_s):
        return 0.0, 0.0
    span = float(arrive_s[-1] - arrive_s[0])
    if span <= HOUR:
        return float(arrive_s[0]), len(arrive_s) / _span_s(arrive_s)
    # The busiest hour can be moved until it begins at an arrival.
    n_within = np.searchsorted(arrive_s, arrive_s + HOUR, side="left") - np.arange(len(arrive_s))
    best = int(np.argmax(n_within))
    return float(arrive_s[best]), float(n_within[best]) / HOUR


def summary(requests: Requests) -> LoadSummary:
    """The figures of a stream of at least one request: rates, burstiness, peaks."""
    if not len(requests):
        raise one(InputError, "load", "requests", "there are none", "give at least one")
    arrive = requests.arrive_s
    span = _span_s(arrive)
    minute_s = min(MINUTE, span)
    minutes = counts(arrive, minute_s)
    return LoadSummary(
        n_requests=len(requests),
        span_s=float(arrive[-1] - arrive[0]),
        mean_requests_per_s=len(requests) / span,
        gap_cv_ratio=gap_cv(arrive),
        dispersion_ratio=dispersion(arrive, MINUTE) if span >= 2 * MINUTE else None,
        peak_minute_requests_per_s=float(minutes.max() / minute_s),
        p99_minute_requests_per_s=float(np.quantile(minutes, 0.99) / minute_s),
        peak_hour_requests_per_s=peak_hour(arrive)[1],
        input_tokens_per_s=float(requests.input_tokens.sum() / span),
        output_tokens_per_s=float(requests.output_tokens.sum() / span),
    )


def _span_s(arrive_s: Floats) -> float:
    """From the first arrival to one mean gap after the last: n gaps for n requests."""
    n_gaps = max(1, len(arrive_s) - 1)
    return float(arrive_s[-1] - arrive_s[0]) * (1.0 + 1.0 / n_gaps) or 1.0
