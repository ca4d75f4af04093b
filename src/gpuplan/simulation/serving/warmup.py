"""Where the steady part of a run begins: MSER-5, the cut that leaves the surest mean.

Means of five consecutive requests form the series; cutting d of them leaves a mean whose squared
standard error is sum((z - mean)^2) / (k - d)^2, and the d that makes it least is the warm-up
[White1997]. A cut in the second half says that the run has not settled.
"""

from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats

N_EACH = 5
LEAST_MEANS = 20  # fewer tell nothing
LEAST_LEFT = 5  # the criterion is meaningless on a handful of means


class Steady(NamedTuple):
    """How many values to cut, and whether what is left is steady."""

    n_cut: int
    is_settled: bool
    note: str


def steady_from(*measures: Floats) -> Steady:
    """The latest of the measures' own cuts; none where one of them does not settle."""
    if min(len(values) for values in measures) < N_EACH * LEAST_MEANS:
        return Steady(0, False, f"nothing cut: fewer than {N_EACH * LEAST_MEANS} requests")
    cuts = [mser_cut(values) for values in measures]
    if None in cuts:
        return Steady(0, False, "nothing cut: no steady state in the first half (MSER-5)")
    return Steady(max(cut for cut in cuts if cut is not None), True, "MSER-5")


def mser_cut(values: Floats) -> int | None:
    """Values to cut at the beginning; None where the best cut is in the second half."""
    k = len(values) // N_EACH
    means = values[: k * N_EACH].reshape(k, N_EACH).mean(axis=1)
    best = least_error_cut(means)
    return None if best > k // 2 else best * N_EACH


def least_error_cut(means: Floats, n_least_left: int = LEAST_LEFT) -> int:
    """How many of the means to cut so that the mean of the rest is surest."""
    # Moments about the overall mean: sums of squares of large numbers would lose their digits.
    centred = means - means.mean()
    n_left = np.arange(len(means), 0, -1)
    total = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1]
    error = np.maximum(squares - total**2 / n_left, 0.0) / n_left**2
    return int(np.argmin(error[: max(1, len(means) - n_least_left + 1)]))
