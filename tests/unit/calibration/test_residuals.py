"""Ranges of rows whose group was never seen."""

import numpy as np
import pytest

from gpuplan.calibration.residuals import clustered_spread, spread_of


@pytest.mark.parametrize("n_groups", [3, 5, 12])
def test_a_new_group_lies_in_its_range_four_times_of_five(n_groups: int) -> None:
    """Groups off by 0.2, rows by 0.1: drawn anew 2,000 times, one more group is judged."""
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(2000):
        middles = rng.normal(0.0, 0.2, n_groups)
        errors = (middles[:, None] + rng.normal(0.0, 0.1, (n_groups, 20))).ravel()
        spread = clustered_spread(errors, np.repeat(np.arange(n_groups), 20).tolist())
        ratio = np.exp(-rng.normal(0.0, np.hypot(0.2, 0.1)))
        inside.append(spread.low <= ratio <= spread.high)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.05)


def test_few_groups_widen_however_many_rows() -> None:
    rng = np.random.default_rng(4)
    errors = rng.normal(0.0, 0.1, 600)
    few = clustered_spread(errors, [i % 3 for i in range(600)])
    many = clustered_spread(errors, [i % 60 for i in range(600)])
    assert few.high / few.low > many.high / many.low


def test_a_single_group_is_all_there_is() -> None:
    errors = np.random.default_rng(5).normal(0.0, 0.1, 50)
    assert clustered_spread(errors, ["one"] * 50) == spread_of(errors)
