"""Means and percentiles with 95 % intervals that know requests are not independent.

A mean: batch means, Student's t over 20 batches [Law2015]. A percentile: the share of values at or
below it is itself a mean, so batches give the error of that share, never less than independent
draws would have; the order statistics at share ± t·error bound the percentile. Dependence thus
counts as a smaller sample.
"""

import numpy as np
from scipy.special import stdtrit

from gpuplan.domain.columns import Floats
from gpuplan.domain.simulation.outcome import Bounds, Summary

N_BATCHES = 20  # of consecutive requests: their means are nearly independent
CONFIDENT_FRAC = 0.975
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def summary(values: Floats) -> Summary | None:
    """Mean and percentiles of values in order of arrival; None where there is nothing."""
    if len(values) == 0:
        return None
    ranked = np.sort(values)
    points = np.quantile(ranked, tuple(PERCENTILES.values()))
    named = dict(zip(PERCENTILES, (float(point) for point in points), strict=True))
    mean, half = float(values.mean()), _half_width(values)
    return Summary(
        n=len(values),
        mean_s=mean,
        max_s=float(ranked[-1]),
        mean_low_s=None if half is None else mean - half,
        mean_high_s=None if half is None else mean + half,
        bounds=tuple(_bounds(name, values, ranked, at=named[name]) for name in PERCENTILES),
        **{f"{name}_s": value for name, value in named.items()},
    )


def t_quantile(n_batches: int) -> float:
    """Student's t for a 95 % interval over so many batches."""
    return float(stdtrit(n_batches - 1, CONFIDENT_FRAC))


def share_error(share: float, batch_shares: Floats, n_values: int) -> float:
    """Standard error of a share; never less than that of independent draws."""
    independent = float(np.sqrt(share * (1.0 - share) / n_values))
    if len(batch_shares) < 2:
        return independent
    batched = float(batch_shares.std(ddof=1) / np.sqrt(len(batch_shares)))
    return max(independent, batched)


def share_range(share: float, error: float, n_batches: int) -> tuple[float, float]:
    """Shares between which the true one lies."""
    half = t_quantile(max(2, n_batches)) * error
    return share - half, share + half


def _half_width(values: Floats) -> float | None:
    if len(values) < 2:
        return None
    means = _batches(values).mean(axis=1)
    return float(t_quantile(len(means)) * means.std(ddof=1) / np.sqrt(len(means)))


def _batches(values: Floats) -> Floats:
    n_batches = min(N_BATCHES, len(values))
    n_each = len(values) // n_batches
    return values[: n_each * n_batches].reshape(n_batches, n_each)


def _bounds(name: str, values: Floats, ranked: Floats, *, at: float) -> Bounds:
    share, n = PERCENTILES[name], len(values)
    shares = (_batches(values) <= at).mean(axis=1)
    low, high = share_range(share, share_error(share, shares, n), len(shares))
    # Rank r of n draws lies above the true percentile only where r exceeds its share of them.
    rank_low, rank_high = int(np.floor(n * low)), int(np.ceil(n * high)) + 1
    return Bounds(
        percentile=name,
        low_s=float(ranked[rank_low - 1]) if rank_low >= 1 else None,
        high_s=float(ranked[rank_high - 1]) if rank_high <= n else None,
    )
