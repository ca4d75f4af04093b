"""Arrival processes: Poisson, Gamma and Weibull renewals, Markov-modulated phases; in seconds.

Every process starts in equilibrium: the first inter-arrival time is what remains of one that began
before time 0, so the mean count over any duration is rate x duration, however bursty.
"""

from collections.abc import Callable, Iterator
from math import exp, lgamma, log1p

import numpy as np

from gpuplan.demand.streams import require_positive, stream
from gpuplan.domain.columns import Floats, Ints, floats
from gpuplan.errors import InputError, one

MAX_ARRIVALS = 500_000_000
MAX_PHASES = 10_000_000
LOG_SHAPES = (-3.0, 4.0)  # of a Weibull distribution, natural logarithms
Draw = Callable[[np.random.Generator, int], Floats]


def poisson(rate_per_s: float, duration_s: float, *, seed: int) -> Floats:
    """Poisson arrivals: the CV of inter-arrival times is 1."""
    _check(rate_per_s, duration_s)
    rng = stream(seed, "arrivals")
    n = rng.poisson(rate_per_s * duration_s)
    # Given their number, the arrivals of a Poisson process are uniform.
    return floats(np.sort(rng.uniform(0.0, duration_s, n)))


def gamma_bursts(rate_per_s: float, duration_s: float, *, cv_ratio: float, seed: int) -> Floats:
    """Arrivals with Gamma inter-arrival times of this CV; 1 is Poisson, 3 is bursty."""
    _check(rate_per_s, duration_s, cv_ratio)
    shape, scale = cv_ratio**-2, cv_ratio**2 / rate_per_s
    rng = stream(seed, "arrivals")
    first = rng.gamma(shape + 1.0, scale) * rng.uniform()
    return _renewal(lambda r, n: r.gamma(shape, scale, n), first, rate_per_s, duration_s, rng=rng)


def weibull_bursts(rate_per_s: float, duration_s: float, *, cv_ratio: float, seed: int) -> Floats:
    """Arrivals with Weibull inter-arrival times of this CV: a longer tail than Gamma."""
    _check(rate_per_s, duration_s, cv_ratio)
    shape = weibull_shape(cv_ratio)
    scale = exp(-lgamma(1.0 + 1.0 / shape)) / rate_per_s
    rng = stream(seed, "arrivals")
    # A gap that holds time 0 is drawn in proportion to its length.
    first = scale * rng.gamma(1.0 + 1.0 / shape) ** (1.0 / shape) * rng.uniform()
    return _renewal(
        lambda r, n: scale * r.weibull(shape, n), first, rate_per_s, duration_s, rng=rng
    )


def weibull_shape(cv_ratio: float) -> float:
    """The shape of the Weibull distribution that has this CV."""

    def miss(log_shape: float) -> float:
        inverse = exp(-log_shape)
        log_ratio = lgamma(1.0 + 2.0 * inverse) - 2.0 * lgamma(1.0 + inverse)
        return log_ratio - log1p(cv_ratio**2)

    low, high = LOG_SHAPES
    if miss(low) < 0 or miss(high) > 0:
        fix = "must be between 0.03 and 1000"
        raise one(InputError, "arrivals", "burstiness (CV)", f"got {cv_ratio:g}", fix)
    # The CV falls as the shape rises: bisection finds the shape to the last digit.
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if miss(middle) > 0 else (low, middle)
    return exp(low)


def mmpp(rates_per_s: Floats, stays_s: Floats, *, duration_s: float, seed: int) -> Floats:
    """Poisson arrivals whose rate changes by phases of random, exponential length.

    `stays_s` are the mean lengths. A phase is followed by any other with equal chance, so the
    share of time in a phase is its mean length over their sum; with two phases they take turns.
    """
    for rate, stay in zip(rates_per_s, stays_s, strict=True):
        _check(float(rate) or 1.0, duration_s, float(stay))  # a phase may be silent
    if duration_s / min(stays_s) > MAX_PHASES:
        what = f"{duration_s / min(stays_s):.3g} phases"
        raise one(InputError, "arrivals", "mean stay", what, f"at most {MAX_PHASES:,}")
    start, length, phase = _phases(np.asarray(stays_s), duration_s, stream(seed, "phases"))
    rng = stream(seed, "arrivals")
    n = rng.poisson(np.asarray(rates_per_s)[phase] * length)
    at = np.repeat(start, n) + rng.uniform(size=int(n.sum())) * np.repeat(length, n)
    return floats(np.sort(at))


def burst_blocks(
    rate_per_s: float, duration_s: float, *, cv_ratio: float, seed: int, n_block: int
) -> Iterator[Floats]:
    """Gamma arrivals in blocks of this many, for loads larger than memory."""
    if n_block < 1:
        raise one(InputError, "arrivals", "block", f"got {n_block}", "must be at least 1")
    require_positive("arrivals", rate=rate_per_s, duration=duration_s, burstiness=cv_ratio)
    shape, scale = cv_ratio**-2, cv_ratio**2 / rate_per_s
    rng = stream(seed, "arrivals")
    at = rng.gamma(shape + 1.0, scale) * rng.uniform()
    while at < duration_s:
        arrive = at + np.cumsum(rng.gamma(shape, scale, n_block))
        block = np.concatenate([[at], arrive[:-1]])
        at = float(arrive[-1])
        yield floats(block[block < duration_s])


def bursts(rate_per_s: float, duration_s: float, *, cv_ratio: float, seed: int) -> Floats:
    """Gamma arrivals, or Poisson where the CV is 1."""
    if cv_ratio == 1.0:
        return poisson(rate_per_s, duration_s, seed=seed)
    return gamma_bursts(rate_per_s, duration_s, cv_ratio=cv_ratio, seed=seed)


def _phases(
    stays_s: Floats, duration_s: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Ints]:
    """Start, length and kind of each phase up to the end; the first is in equilibrium."""
    n_kinds = len(stays_s)
    n = int(2 * duration_s / stays_s.min()) + 64
    steps = rng.integers(1, n_kinds, n) if n_kinds > 1 else np.zeros(n, dtype=np.int64)
    steps[0] = rng.choice(n_kinds, p=stays_s / stays_s.sum())
    kind = np.cumsum(steps) % n_kinds
    length = rng.exponential(stays_s[kind])
    end = np.cumsum(length)
    while end[-1] < duration_s:
        more = _phases(stays_s, float(duration_s - end[-1]), rng)
        kind, length = np.concatenate([kind, more[2]]), np.concatenate([length, more[1]])
        end = np.cumsum(length)
    n = int(np.searchsorted(end, duration_s)) + 1
    start = np.concatenate([[0.0], end[: n - 1]])
    return start, np.minimum(length[:n], duration_s - start), kind[:n]


def _renewal(
    draw: Draw, first_s: float, rate_per_s: float, duration_s: float, *, rng: np.random.Generator
) -> Floats:
    """Cumulated inter-arrival times up to the end."""
    parts, last = [np.array([first_s])], first_s
    while last < duration_s:
        expected = rate_per_s * (duration_s - last)
        gaps = draw(rng, int(expected + 4.0 * np.sqrt(expected)) + 64)
        parts.append(last + np.cumsum(gaps))
        last = float(parts[-1][-1])
    arrive = np.concatenate(parts)
    return floats(arrive[arrive < duration_s])


def _check(rate_per_s: float, duration_s: float, burstiness: float = 1.0) -> None:
    require_positive("arrivals", rate=rate_per_s, duration=duration_s, burstiness=burstiness)
    if rate_per_s * duration_s > MAX_ARRIVALS:
        what = f"{rate_per_s * duration_s:.3g} requests"
        raise one(InputError, "arrivals", "rate x duration", what, f"at most {MAX_ARRIVALS:,}")
