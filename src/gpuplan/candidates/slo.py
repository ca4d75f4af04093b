"""Whether a run meets its latency SLOs at the upper confidence bound.

Percentiles are of requests after the warm-up. Their error is taken from the spread of the
percentile over consecutive batches of requests, which are nearly independent [Law2015].
"""

from collections.abc import Mapping

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass
from gpuplan.domain.scenario.demand import LatencyLimit, Statistic

N_BATCHES = 10
STUDENT = 1.383  # 90 % of Student's law with 9 degrees of freedom, one-sided
LEAST_BACKLOG = 64
GROWTH_FRAC = 0.25
QUANTILES: Mapping[Statistic, float] = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGaps:
    """Gaps between tokens of a run: most last one decode step, some hold a prompt as well."""

    mixed_frac: float  # share of gaps with a prompt in them
    mixed_s: float  # how long those last


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyStatistic:
    """One measure of a run: its value, and the upper end of its confidence interval."""

    value_s: float
    bound_s: float


def statistic_of(values: Floats, statistic: Statistic) -> LatencyStatistic:
    """Mean or percentile of the requests, and its upper confidence bound."""
    if len(values) == 0:
        return LatencyStatistic(value_s=0.0, bound_s=0.0)
    value = float(_statistics(values[None, :], statistic)[0])
    n_each = len(values) // N_BATCHES
    if n_each < 1:
        return LatencyStatistic(value_s=value, bound_s=float(values.max()))
    parts = _statistics(values[: n_each * N_BATCHES].reshape(N_BATCHES, n_each), statistic)
    half = float(STUDENT * parts.std(ddof=1) / np.sqrt(N_BATCHES))
    return LatencyStatistic(value_s=value, bound_s=value + half)


def _statistics(rows: Floats, statistic: Statistic) -> Floats:
    if statistic == "mean":
        return np.asarray(rows.mean(axis=1))
    # The next higher order statistic: never below the percentile.
    n = rows.shape[1]
    place = min(n - 1, int(np.ceil(QUANTILES[statistic] * n)))
    return np.asarray(np.partition(rows, place, axis=1)[:, place])


def is_growing(arrive_s: Floats, leave_s: Floats) -> bool:
    """Whether more is outstanding at the end than chance would add to the middle."""
    n = len(arrive_s)
    if n < LEAST_BACKLOG:
        return False
    instants = arrive_s[[n // 3, n // 2, 2 * n // 3, 5 * n // 6, n - 1]]
    here = np.arange(1, n + 1)[[n // 3, n // 2, 2 * n // 3, 5 * n // 6, n - 1]]
    # Five counts: cheaper than sorting all that have left.
    outstanding = here - np.array([np.count_nonzero(leave_s <= at) for at in instants])
    middle, end = float(outstanding[:2].mean()), float(outstanding[3:].mean())
    # What bursts bring together stays together for a while: chance adds in proportion to them.
    gaps = np.diff(arrive_s)
    spread = max(1.0, float(gaps.std() / gaps.mean())) if gaps.mean() > 0 else 1.0
    return bool(end - middle > max(GROWTH_FRAC * middle, 4.0 * spread * np.sqrt(middle) + 4.0))


def gap_statistic(tpot_s: Floats, statistic: Statistic, gaps: TokenGaps) -> LatencyStatistic:
    """A statistic of all single gaps between tokens.

    Where more gaps hold a prompt than the percentile leaves out, the percentile is such a gap;
    else it is a decode step, which is shorter than the mean gap of the requests it is taken for.
    """
    per_request = statistic_of(tpot_s, statistic)
    if statistic == "mean" or gaps.mixed_frac <= 1.0 - QUANTILES[statistic]:
        return per_request
    longest = max(per_request.value_s, gaps.mixed_s)
    return LatencyStatistic(value_s=longest, bound_s=max(per_request.bound_s, gaps.mixed_s))


def latency_statistics(
    limits: tuple[LatencyLimit, ...], columns: Mapping[str, Floats], gaps: TokenGaps
) -> tuple[tuple[LatencyLimit, LatencyStatistic], ...]:
    """Each latency SLO beside what the run reached."""
    return tuple(
        (
            limit,
            gap_statistic(columns["tpot"], limit.statistic, gaps)
            if limit.metric == "itl"
            else statistic_of(columns[limit.metric], limit.statistic),
        )
        for limit in limits
    )


def meets_limits(latencies: tuple[tuple[LatencyLimit, LatencyStatistic], ...]) -> bool:
    """Every SLO is met at the upper confidence bound."""
    return all(each.bound_s <= limit.limit_s for limit, each in latencies)
