"""Promises are latencies at the upper end of what chance allows."""

import numpy as np
import pytest

from gpuplan.candidates.slo import (
    TokenGaps,
    gap_statistic,
    is_growing,
    latency_statistics,
    meets_limits,
    statistic_of,
)
from gpuplan.domain.columns import floats
from gpuplan.domain.scenario.demand import LatencyLimit

NO_GAPS = TokenGaps(mixed_frac=0.0, mixed_s=0.0)


@pytest.mark.parametrize(("statistic", "true"), [("p50", np.log(2)), ("p95", np.log(20)),
                                                  ("p99", np.log(100)), ("mean", 1.0)])  # fmt: skip
def test_bound_covers_the_true_value_as_often_as_it_says(statistic, true):
    covered = 0
    for seed in range(200):
        found = statistic_of(floats(np.random.default_rng(seed).exponential(size=4000)), statistic)
        assert found.value_s == pytest.approx(true, rel=0.2)
        assert found.bound_s >= found.value_s
        covered += found.bound_s >= true
    assert 0.80 <= covered / 200 <= 0.99  # 90 % one-sided


def test_percentile_is_never_below_numpys():
    values = floats(np.random.default_rng(1).normal(10, 1, size=997))
    assert statistic_of(values, "p95").value_s >= np.quantile(values, 0.95, method="lower")


def test_nothing_to_measure_breaks_nothing():
    assert statistic_of(floats([]), "p95").bound_s == 0.0


def test_single_gaps_are_steps_with_prompts_where_those_are_many():
    tokens = floats(np.full(1000, 0.020))
    few = TokenGaps(mixed_frac=0.04, mixed_s=0.150)
    many = TokenGaps(mixed_frac=0.06, mixed_s=0.150)
    assert gap_statistic(tokens, "p95", few).value_s == pytest.approx(0.020)
    assert gap_statistic(tokens, "p95", many).value_s == pytest.approx(0.150)
    assert gap_statistic(tokens, "p99", few).value_s == pytest.approx(0.150)
    assert gap_statistic(tokens, "mean", many).value_s == pytest.approx(0.020)


def test_every_promise_counts():
    limits = (
        LatencyLimit(metric="ttft", statistic="p95", limit_s=1.0),
        LatencyLimit(metric="tpot", statistic="mean", limit_s=0.05),
    )
    columns = {"ttft": floats(np.full(100, 0.9)), "tpot": floats(np.full(100, 0.04))}
    assert meets_limits(latency_statistics(limits, columns, NO_GAPS))
    slow = {**columns, "tpot": floats(np.full(100, 0.06))}
    assert not meets_limits(latency_statistics(limits, slow, NO_GAPS))


def test_a_queue_that_grows_is_seen_and_a_steady_one_is_not():
    rng = np.random.default_rng(3)
    arrive = np.sort(rng.uniform(0, 1000, 4000))
    assert not is_growing(floats(arrive), floats(arrive + rng.exponential(5, 4000)))
    assert is_growing(floats(arrive), floats(arrive * 1.3 + 1))
