"""Power of training jobs: near the limit when busy, less when waiting."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.studies.power.training import training_power

H100 = find_accelerator("h100-sxm", read_catalog()).accelerator


def test_forty_per_cent_of_peak_draws_nine_tenths_of_the_limit() -> None:
    found = training_power(H100, 0.4 * 989e12, n_accelerators=8)
    assert 0.85 * 5600 < found["power_w"].value < 5600
    assert found["power_w"].tier == "estimated"


def test_half_the_work_draws_less() -> None:
    busy = training_power(H100, 0.4 * 989e12, n_accelerators=1)["power_w"]
    idler = training_power(H100, 0.2 * 989e12, n_accelerators=1)["power_w"]
    assert 120 < idler.value < busy.value


def test_no_limit_no_power() -> None:
    bare = replace(H100, power=replace(H100.power, limit_w=None))
    assert training_power(bare, 1e14, n_accelerators=8) == {}


@given(flop=st.floats(0, 2e15), n=st.integers(1, 4096))
def test_never_above_the_limits(flop: float, n: int) -> None:
    found = training_power(H100, flop, n_accelerators=n)["power_w"]
    assert found.low <= found.value <= found.high <= 700 * n * (1 + 1e-9)
