"""Numbers of accelerators against a scan of all of them, on runs whose time is a plain formula."""

from types import SimpleNamespace

import pytest

from gpuplan.domain.training.setup import ParallelLayout
from gpuplan.studies.sizing.training.counts import CountSearch


class PlainSearch:
    """Layouts that fit from a number on, and divide whatever they are asked to."""

    def __init__(self, unit, least=1):
        self.server = SimpleNamespace(n_per_node=unit)
        self.least = least

    def layouts(self, n):
        return (SimpleNamespace(layout=ParallelLayout(dp=n)),) if n >= self.least else ()

    def resized(self, _, n):
        return self.layouts(n)


def counts(work, *, unit=8, least=1, loss=0.0, n_most=None, bound=1.0):
    """Time of a run that loses a share of its speed with every accelerator."""

    def wall_s(n, _):
        return work / n * (1 + loss * n)

    return CountSearch(PlainSearch(unit, least), wall_s, n_least=bound, n_most=n_most)


@pytest.mark.parametrize("unit", [1, 2, 8])
@pytest.mark.parametrize("loss", [0.0, 1e-4, 1e-3])
@pytest.mark.parametrize("least", [1, 14, 40])
@pytest.mark.parametrize("limit", [30.0, 100.0, 777.0])
def test_the_fewest_equal_a_scan(unit, loss, least, limit):
    work = 5e3
    found = counts(work, unit=unit, loss=loss, least=least).fewest(limit)
    numbers = range(unit, 20_000, unit)
    scan = next(n for n in numbers if n >= least and work / n * (1 + loss * n) <= limit)
    assert found.wall_s <= limit
    assert scan <= found.n <= scan * 1.04 + unit


def test_a_bound_only_saves_time():
    free, bound = counts(1e5, loss=0.001), counts(1e5, loss=0.001, bound=64.0)
    assert free.fewest(1e3).n == bound.fewest(1e3).n


def test_quotas_end_the_search():
    assert counts(1e5, n_most=64).fewest(1e3) is None
    assert counts(1e5, n_most=64).fewest(1e5 / 60).n == 64


def test_the_first_that_holds_the_run_is_the_fewest():
    assert counts(1e5, least=37).first().n == 40
    assert counts(1e5, least=100_000_000, n_most=1000).first() is None


def test_the_knee_is_where_a_doubling_brings_half():
    flat = counts(1e5, loss=0.0)
    assert not flat.is_past_knee(flat.at(1024))
    steep = counts(1e5, loss=0.01)
    assert not steep.is_past_knee(steep.at(64))
    assert steep.is_past_knee(steep.at(1024))
    assert steep.speedup_of_last_doubling(steep.at(1024)) == pytest.approx(2 * 6.12 / 11.24)
    assert counts(1e5).speedup_of_last_doubling(counts(1e5).at(8)) is None
