"""Waiting before one server of even service times, where nothing is simulated."""

from math import log

TAILS = {"mean": None, "p50": 0.50, "p95": 0.05, "p99": 0.01}


def wait_ratio(busy_frac: float, statistic: str) -> float:
    """Wait over service time of Poisson arrivals before even services (M/D/1).

    The mean is exact [Pollaczek1930]; tails fall off as heavy traffic has them: a request waits
    at all with the chance of finding the server busy, and then for a time with the exponential
    law of that mean [Kingman1962].
    """
    if not 0 <= busy_frac < 1:
        raise ValueError(f"a queue at {busy_frac:g} of its capacity has no mean wait")
    mean = busy_frac / (2.0 * (1.0 - busy_frac))
    chance = TAILS[statistic]
    if chance is None:
        return mean
    if busy_frac <= chance:
        return 0.0
    return mean / busy_frac * log(busy_frac / chance)
