import numpy as np
import pytest

from gpuplan.demand.arrivals import bursts, gamma_bursts, mmpp, poisson, weibull_shape
from gpuplan.domain.columns import floats
from gpuplan.errors import InputError


def test_weibull_shape_of_one_is_exponential():
    assert weibull_shape(1.0) == pytest.approx(1.0, abs=1e-9)


def test_weibull_shape_of_rayleigh():
    assert weibull_shape((4 / np.pi - 1) ** 0.5) == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_rates_that_are_none_are_refused(bad):
    with pytest.raises(InputError, match="must be above 0"):
        poisson(bad, 10.0, seed=0)
    with pytest.raises(InputError, match="must be above 0"):
        gamma_bursts(1.0, 10.0, cv_ratio=bad, seed=0)


def test_more_requests_than_memory_are_refused_before_they_are_drawn():
    with pytest.raises(InputError, match="at most"):
        poisson(1e6, 1e6, seed=0)
    with pytest.raises(InputError, match="phases"):
        mmpp(floats([1.0, 2.0]), floats([1e-9, 1e-9]), duration_s=1e6, seed=0)


def test_a_silent_phase_is_silent():
    found = mmpp(floats([0.0, 0.0]), floats([1.0, 1.0]), duration_s=100.0, seed=0)
    assert len(found) == 0


def test_one_phase_is_poisson():
    found = mmpp(floats([50.0]), floats([3.0]), duration_s=400.0, seed=5)
    assert len(found) == pytest.approx(20_000, rel=0.03)


def test_bursts_of_one_are_poisson():
    assert np.array_equal(bursts(3.0, 50.0, cv_ratio=1.0, seed=4), poisson(3.0, 50.0, seed=4))
