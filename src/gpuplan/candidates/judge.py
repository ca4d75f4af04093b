"""Whether a run keeps its promises, with the upper end of what chance would allow.

Percentiles are of requests after the warm-up. Their error is taken from the spread of the
percentile over consecutive batches of requests, which are nearly independent [Law2015].
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from gpuplan.domain.columns import Floats
from gpuplan.domain.demand import LatencyLimit, Statistic

N_BATCHES = 10
CONFIDENCE_FRAC = 0.90  # one-sided
QUANTILES: Mapping[Statistic, float] = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Gaps between tokens of a run: most last one decode step, some hold a prompt as well."""

    mixed_frac: float  # share of gaps with a prompt in them
    mixed_s: float  # how long those last


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One measure of a run: its value, and the upper end of its confidence interval."""

    value_s: float
    bound_s: float


def seen(values: Floats, statistic: Statistic) -> Seen:
    """Mean or percentile of the requests, and its upper confidence bound."""
    if len(values) == 0:
        return Seen(value_s=0.0, bound_s=0.0)
    value = _statistic(values, statistic)
    n_each = len(values) // N_BATCHES
    if n_each < 1:
        return Seen(value_s=value, bound_s=float(values.max()))
    batches = values[: n_each * N_BATCHES].reshape(N_BATCHES, n_each)
    parts = np.array([_statistic(batch, statistic) for batch in batches])
    half = float(stdtrit(N_BATCHES - 1, CONFIDENCE_FRAC) * parts.std(ddof=1) / np.sqrt(N_BATCHES))
    return Seen(value_s=value, bound_s=value + half)


def _statistic(values: Floats, statistic: Statistic) -> float:
    if statistic == "mean":
        return float(values.mean())
    return float(np.quantile(values, QUANTILES[statistic]))


def seen_gap(tpot_s: Floats, statistic: Statistic, gaps: Gaps) -> Seen:
    """A statistic of all single gaps between tokens.

    Where more gaps hold a prompt than the percentile leaves out, the percentile is such a gap;
    else it is a decode step, which is shorter than the mean gap of the requests it is taken for.
    """
    per_request = seen(tpot_s, statistic)
    if statistic == "mean" or gaps.mixed_frac <= 1.0 - QUANTILES[statistic]:
        return per_request
    longest = max(per_request.value_s, gaps.mixed_s)
    return Seen(value_s=longest, bound_s=max(per_request.bound_s, gaps.mixed_s))


def judge(
    limits: tuple[LatencyLimit, ...], columns: Mapping[str, Floats], gaps: Gaps
) -> tuple[tuple[LatencyLimit, Seen], ...]:
    """Each promise beside what the run gave."""
    return tuple(
        (
            limit,
            seen_gap(columns["tpot"], limit.statistic, gaps)
            if limit.metric == "itl"
            else seen(columns[limit.metric], limit.statistic),
        )
        for limit in limits
    )


def is_kept(judged: tuple[tuple[LatencyLimit, Seen], ...]) -> bool:
    """Every promise, at the upper bound."""
    return all(each.bound_s <= limit.limit_s for limit, each in judged)
