"""Intervals cover as often as they say, for independent and for dependent values."""

import numpy as np
import pytest

from gpuplan.simulation.serving.intervals import PERCENTILES, summary
from gpuplan.simulation.serving.warmup import least_error_cut, mser_cut, steady_from


def queue_waits(seed: int, n: int, load: float = 0.6) -> np.ndarray:
    """Waits of an M/M/1 queue of unit service, by Lindley's recursion, from its steady state."""
    draw = np.random.default_rng(seed)
    steps = draw.exponential(1.0, n) - draw.exponential(1.0 / load, n)
    start = draw.exponential(1.0 / (1.0 - load)) if draw.uniform() < load else 0.0
    total = np.concatenate([[start], start + np.cumsum(steps)[:-1]])
    return total - np.minimum(0.0, np.minimum.accumulate(total))


def covered(draws, truths: dict[str, float], n_seeds: int = 200) -> dict[str, float]:
    hits = dict.fromkeys(truths, 0)
    for seed in range(n_seeds):
        found = summary(draws(seed))
        for bound in found.bounds:
            low = -np.inf if bound.low_s is None else bound.low_s
            high = np.inf if bound.high_s is None else bound.high_s
            hits[bound.percentile] += low <= truths[bound.percentile] <= high
    return {name: n / n_seeds for name, n in hits.items()}


def test_percentiles_of_independent_values_are_covered():
    truths = {name: -np.log(1 - share) for name, share in PERCENTILES.items()}
    found = covered(lambda seed: np.random.default_rng(seed).exponential(1.0, 2000), truths)
    assert min(found.values()) >= 0.93, found


def test_percentiles_of_a_queue_are_covered_though_its_waits_depend_on_each_other():
    load = 0.6  # P(wait > t) = load * exp(-(1 - load) t)
    truths = {
        name: max(0.0, np.log(load / (1 - share)) / (1 - load))
        for name, share in PERCENTILES.items()
    }
    found = covered(lambda seed: queue_waits(seed, 20_000, load), truths)
    assert min(found.values()) >= 0.88, found


def test_dependence_widens_the_interval():
    values = queue_waits(3, 20_000, 0.9)
    shuffled = np.random.default_rng(0).permutation(values)
    dependent, independent = summary(values), summary(shuffled)
    assert dependent.p90_s == independent.p90_s
    width = [s.bounds[1].high_s - s.bounds[1].low_s for s in (dependent, independent)]
    assert width[0] > 2 * width[1]


def test_a_short_run_does_not_bound_its_tail():
    found = summary(np.random.default_rng(0).exponential(1.0, 300))
    by_name = {bound.percentile: bound for bound in found.bounds}
    assert by_name["p999"].high_s is None
    assert by_name["p50"].low_s < found.p50_s < by_name["p50"].high_s
    alone = summary(np.array([2.0]))
    assert (alone.mean_s, alone.p999_s, alone.mean_low_s) == (2.0, 2.0, None)


def test_the_cut_is_where_a_transient_ends():
    draw = np.random.default_rng(1)
    values = draw.normal(1.0, 0.1, 5000)
    values[:1000] += np.linspace(4.0, 0.0, 1000)
    assert 700 <= mser_cut(values) <= 1050
    assert mser_cut(draw.normal(1.0, 0.1, 5000)) <= 500


def test_the_cut_equals_the_definition():
    means = np.random.default_rng(2).exponential(1.0, 60)
    error = [means[d:].var() / (len(means) - d) for d in range(len(means) - 4)]
    assert least_error_cut(means) == int(np.argmin(error))


def test_a_series_that_never_settles_is_not_cut():
    rising = np.linspace(0.0, 1.0, 1000)
    found = steady_from(rising, np.ones(1000))
    assert (found.n_cut, found.is_settled) == (0, False)
    assert "no steady state" in found.note
    assert steady_from(np.ones(20)).n_cut == 0


@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_the_cut_does_not_depend_on_the_origin(shift: float):
    draw = np.random.default_rng(4)
    means = np.concatenate([np.full(10, 5.0), draw.normal(0, 0.5, 90)])
    assert least_error_cut(means + shift) == least_error_cut(means)
