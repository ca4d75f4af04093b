import numpy as np
import pytest

from gpuplan.demand.statistics import (
    counts,
    dispersion,
    gap_cv,
    peak_hour,
    summary,
)
from gpuplan.domain.columns import floats
from gpuplan.domain.traffic.stream import no_requests, requests_of
from gpuplan.errors import InputError


def test_counts_leave_the_partial_window_out():
    assert counts(floats([0, 1, 9, 10, 25]), 10.0).tolist() == [3, 1]
    assert counts(floats([0, 1, 9, 10, 25]), 10.0, duration_s=30.0).tolist() == [3, 1, 1]
    assert counts(floats([0, 1, 2]), 60.0).tolist() == [3]
    assert len(counts(floats([]), 1.0)) == 0


def test_even_arrivals_do_not_deviate():
    even = floats(np.arange(600.0))
    assert gap_cv(even) == 0
    assert dispersion(even, 10.0) == 0


def test_figures_that_do_not_exist_are_none():
    assert gap_cv(floats([1.0, 2.0])) is None
    assert gap_cv(floats([1.0, 1.0, 1.0])) is None
    assert dispersion(floats([1.0, 2.0]), 10.0) is None


def test_peak_hour_is_found_wherever_it_begins():
    quiet = np.arange(0, 86400, 60.0)
    busy = 40_000 + np.arange(0, 3600, 1.0)
    start, rate = peak_hour(floats(np.sort(np.concatenate([quiet, busy]))))
    assert start == pytest.approx(40_000, abs=60)
    assert rate == pytest.approx(3660 / 3600, rel=0.01)


def test_summary_of_a_steady_load():
    found = summary(requests_of(np.arange(7200.0), np.full(7200, 100), np.full(7200, 10)))
    assert found.mean_requests_per_s == pytest.approx(1.0)
    assert found.peak_minute_requests_per_s == pytest.approx(1.0)
    assert found.input_tokens_per_s == pytest.approx(100.0)
    assert found.output_tokens_per_s == pytest.approx(10.0)
    assert found.gap_cv_ratio == 0


def test_summary_of_one_request_and_of_none():
    assert summary(requests_of([3.0], [5], [5])).n_requests == 1
    assert summary(requests_of([3.0, 3.0], [5, 5], [5, 5])).gap_cv_ratio is None
    with pytest.raises(InputError, match="none"):
        summary(no_requests())


def test_windows_beyond_memory_are_refused():
    with pytest.raises(InputError, match="windows"):
        counts(floats([0.0, 1e12]), 1e-3)
    with pytest.raises(InputError, match="above 0"):
        counts(floats([0.0]), 0.0)
