"""How the load moves through the day, the week and the years.

A profile stretches the clock of a stream rather than thinning it, which would make bursts milder:
the CV of inter-arrival times stays as it is at every hour.
"""

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.errors import InputError, one
from gpuplan.units import HOUR, MONTH


def hourly_weights(profile: tuple[float, ...]) -> Floats:
    """The load of each hour of a day or a week over its mean."""
    weights = np.array(profile, dtype=np.float64)
    is_sound = bool(len(weights) and np.all(np.isfinite(weights)) and np.all(weights >= 0))
    if not is_sound or len(weights) not in (24, 168) or weights.sum() <= 0:
        fix = "give 24 or 168 numbers, none negative, not all 0"
        raise one(InputError, "profile", "hours", f"got {len(weights)} numbers", fix)
    return floats(weights / weights.mean())


def warped(arrive_s: Floats, profile: tuple[float, ...], *, start_s: float = 0.0) -> Floats:
    """Arrivals at the mean rate on a clock that runs by the profile: bursts stay as they are.

    Count up to t becomes the count of the input up to the profile's integral at t.
    """
    weights = hourly_weights(profile)
    last = float(arrive_s[-1]) if len(arrive_s) else 0.0
    period_s = len(weights) * HOUR
    n_periods = int(np.ceil((start_s + last) / period_s)) + 2
    edges_s = np.arange(n_periods * len(weights) + 1) * HOUR
    operated_s = np.concatenate([[0.0], np.cumsum(np.tile(weights, n_periods))]) * HOUR
    zero = float(np.interp(start_s, edges_s, operated_s))
    # Hours without load have no slope: an arrival never falls inside them.
    used = np.concatenate([[True], np.diff(operated_s) > 0])
    used[:-1] |= used[1:]
    return floats(np.interp(arrive_s + zero, operated_s[used], edges_s[used]) - start_s)


def growth_ratio(per_month_frac: float, after_s: float) -> float:
    """How much larger demand is after this time, compounding monthly."""
    if not per_month_frac > -1:
        what = f"got {per_month_frac:g}"
        raise one(InputError, "growth", "per month", what, "must be above -1, e.g. 0.05 for 5 %")
    return float((1.0 + per_month_frac) ** (after_s / MONTH))


def growing(arrive_s: Floats, per_month_frac: float) -> Floats:
    """Arrivals whose rate begins as given and grows: the clock runs ever faster (or slower).

    Rates that shrink may never reach the last arrivals; those are left out.
    """
    slope = np.log(growth_ratio(per_month_frac, MONTH)) / MONTH
    if slope == 0:
        return floats(arrive_s)
    reach = 1.0 + slope * np.asarray(arrive_s)
    return floats(np.log(reach[reach > 0]) / slope)
