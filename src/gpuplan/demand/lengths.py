"""Lengths of prompts and outputs, in whole tokens, at least one each.

A distribution is fitted to two of median, mean, p95, p99 and CV. Where a maximum is given, longer
draws become that length: an engine stops generation there.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpuplan.domain.columns import Floats, Ints, ints
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.traffic.stream import Requests
from gpuplan.errors import InputError, PlannerError, one

# Assumption: no two responses are equal. Were all quite alike, those that end at once would be sent
# to the replica that they leave, and stay together: the longer the run, the more of them.
NEAR_RATIOS = (0.9, 1.1)
Z95 = 1.6448536269514722
Z99 = 2.3263478740408408


class LogNormal(NamedTuple):
    """Mean and standard deviation of the logarithm of a length."""

    mu: float
    sigma: float


def draw_lengths(lengths: TokenLengths, n: int, rng: np.random.Generator) -> Ints:
    """Lengths of n requests, drawn from their distribution."""
    drawn = _draw(lengths, n, rng)
    if lengths.max_tokens is not None:
        drawn = np.minimum(drawn, lengths.max_tokens)
    return ints(np.maximum(1.0, np.rint(drawn)))


def empirical_lengths(
    values: ArrayLike, n: int, rng: np.random.Generator, *, weights: ArrayLike | None = None
) -> Ints:
    """Lengths as often as they were observed, or in proportion to their weights."""
    observed = np.asarray(values, dtype=np.float64)
    if not len(observed):
        raise one(InputError, "lengths", "values", "none are given", "give at least one")
    if weights is None:
        return ints(np.maximum(1.0, np.rint(observed[rng.integers(0, len(observed), n)])))
    cumulated = np.cumsum(np.asarray(weights, dtype=np.float64))
    if len(cumulated) != len(observed) or not cumulated[-1] > 0:
        raise one(InputError, "lengths", "weights", "do not match", "one above 0 for each value")
    # Sources round their shares: they are taken in proportion to their sum.
    place = np.searchsorted(cumulated, rng.uniform(0.0, cumulated[-1], n), side="right")
    return ints(np.maximum(1.0, np.rint(observed[np.minimum(place, len(observed) - 1)])))


def lognormal_from(lengths: TokenLengths) -> LogNormal:
    """The lognormal distribution through the known figures, outer percentiles of a median first."""
    p50 = lengths.p50_tokens
    for percentile, z in ((lengths.p99_tokens, Z99), (lengths.p95_tokens, Z95)):
        if p50 is not None and percentile is not None:
            return LogNormal(float(np.log(p50)), _positive(np.log(percentile / p50) / z, lengths))
    if lengths.spread_ratio is not None:
        sigma = float(np.sqrt(np.log1p(lengths.spread_ratio**2)))
        return LogNormal(float(np.log(lengths.mean_tokens)) - sigma**2 / 2, sigma)
    for percentile, z in ((lengths.p95_tokens, Z95), (lengths.p99_tokens, Z99)):
        if percentile is not None:
            return _from_mean(lengths, percentile, z)
    if p50 is not None:
        sigma = np.sqrt(_positive(2 * np.log(lengths.mean_tokens / p50), lengths))
        return LogNormal(float(np.log(p50)), float(sigma))
    raise _unclear(lengths, "its spread is unknown", "give p95, p99, or cv")


def _from_mean(lengths: TokenLengths, percentile: float, z: float) -> LogNormal:
    """The less dispersed of the two distributions with this mean and percentile."""
    log_ratio = float(np.log(percentile / lengths.mean_tokens))
    if not 0 <= log_ratio <= z * z / 2:
        most = float(np.exp(z * z / 2))
        ratio = percentile / lengths.mean_tokens
        what = f"no lognormal distribution has a percentile of {ratio:.3g} means"
        raise _unclear(lengths, what, f"must be 1 to {most:.3g} means; or give the median")
    sigma = z - float(np.sqrt(z * z - 2 * log_ratio))
    return LogNormal(float(np.log(lengths.mean_tokens)) - sigma**2 / 2, sigma)


def _draw(lengths: TokenLengths, n: int, rng: np.random.Generator) -> Floats:
    mean = lengths.mean_tokens
    if lengths.shape == "fixed":
        return np.full(n, mean)
    if lengths.shape == "near":
        return mean * rng.uniform(*NEAR_RATIOS, n)
    if lengths.shape == "exponential":
        return rng.exponential(mean, n)
    if lengths.shape == "uniform":
        half = np.sqrt(3.0) * mean * _spread(lengths)
        return rng.uniform(mean - half, mean + half, n)
    mu, sigma = lognormal_from(lengths)
    return rng.lognormal(mu, sigma, n)


def within_context(requests: Requests, max_tokens: int | None) -> Requests:
    """The same requests, those beyond the model's context cut: clients keep to what it reads."""
    total = requests.input_tokens + requests.output_tokens
    if max_tokens is None or not np.any(total > max_tokens):
        return requests
    output = np.minimum(requests.output_tokens, max_tokens - 1)
    return replace(
        requests,
        input_tokens=ints(np.minimum(requests.input_tokens, max_tokens - output)),
        output_tokens=ints(output),
    )


def _spread(lengths: TokenLengths) -> float:
    """CV of a uniform distribution; it reaches twice the mean where nothing else is known."""
    if lengths.spread_ratio is not None:
        most = 1 / np.sqrt(3.0)
        if lengths.spread_ratio > most:
            what = f"a uniform distribution has a CV of at most {most:.3f}"
            raise _unclear(lengths, what, "give a smaller one, or another shape")
        return lengths.spread_ratio
    top = lengths.max_tokens if lengths.max_tokens is not None else 2 * lengths.mean_tokens
    return min(top / lengths.mean_tokens - 1, 1.0) / float(np.sqrt(3.0))


def _positive(value: float, lengths: TokenLengths) -> float:
    if value < 0:
        raise _unclear(lengths, "its percentiles fall", "must be p50 <= mean, p50 <= p95 <= p99")
    return float(value)


def _unclear(lengths: TokenLengths, what: str, fix: str) -> PlannerError:
    where = f"{lengths.shape} of mean {lengths.mean_tokens:g} tokens"
    return one(InputError, "lengths", where, what, fix)
