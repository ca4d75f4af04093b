"""Rent, own or both: reference arithmetic, brute force, and curves that cross at break-even."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.money import N_MONTHS, OWN, RATE, rent_rate
from gpuplan.cost.rent_or_own import npv_by_utilization, own_or_burst, rent_or_own
from gpuplan.domain.money.rates import NodePurchase
from gpuplan.domain.money.worth import LoadBlock
from gpuplan.domain.ranges import exactly
from gpuplan.errors import CatalogError, InputError

# A week of 16 nodes always, 40 for 50 hours, 60 for 20 of those; and 52 of them.
WEEKLY = tuple(LoadBlock(n_nodes=n, n_hours=h) for n, h in ((16, 118), (40, 30), (60, 20)))
YEAR = tuple(LoadBlock(n_nodes=b.n_nodes, n_hours=52 * b.n_hours) for b in WEEKLY)
RENT = rent_rate(20.0)
WEEK = tuple(LoadBlock(n_nodes=n, n_hours=h) for n, h in ((2, 118.0), (5, 30.0), (8, 20.0)))
BLOCKS = st.lists(
    st.builds(LoadBlock, n_nodes=st.integers(0, 30), n_hours=st.floats(1, 2000)),
    min_size=1,
    max_size=6,
)


def test_burst_above_the_base():
    found = own_or_burst(YEAR, own_usd_per_node_h=1.45, cloud_usd_per_node_h=3.00)
    assert found.break_even_frac == pytest.approx(0.483, abs=0.001)
    assert found.n_owned == 16
    assert found.total_usd == pytest.approx(452_275, abs=1)
    assert found.usd_by_owned[60] == pytest.approx(760_032, abs=1)
    assert found.usd_by_owned[0] == pytest.approx(668_928, abs=1)


def test_a_year_of_8760_hours_costs_more():
    hours = 8760 / 168
    year = [LoadBlock(n_nodes=b.n_nodes, n_hours=hours * b.n_hours) for b in WEEKLY]
    found = own_or_burst(year, own_usd_per_node_h=1.45, cloud_usd_per_node_h=3.00)
    assert found.total_usd == pytest.approx(453_518, abs=1)


def test_regret_when_peaks_double():
    doubled = [
        LoadBlock(n_nodes=16 if b.n_nodes == 16 else 2 * b.n_nodes, n_hours=b.n_hours) for b in YEAR
    ]
    found = own_or_burst(doubled, own_usd_per_node_h=1.45, cloud_usd_per_node_h=3.00)
    assert found.n_owned == 16
    assert found.total_usd == pytest.approx(826_675, abs=1)
    assert found.usd_by_owned[60] - found.total_usd == pytest.approx(214_157, abs=1)


@given(
    blocks=BLOCKS,
    own=st.floats(0.1, 5.0),
    cloud=st.floats(0.1, 5.0),
)
def test_closed_form_equals_brute_force(blocks, own, cloud):
    found = own_or_burst(blocks, own_usd_per_node_h=own, cloud_usd_per_node_h=cloud)
    assert found.total_usd == pytest.approx(min(found.usd_by_owned), rel=1e-9)
    assert found.total_usd == pytest.approx(found.usd_by_owned[found.n_owned], rel=1e-9)


@pytest.mark.parametrize("own", [0.0, -1.0])
def test_nothing_is_free(own):
    with pytest.raises(InputError, match="above 0"):
        own_or_burst(YEAR, own_usd_per_node_h=own, cloud_usd_per_node_h=3.00)


def by_name(blocks=WEEK, rent=RENT):
    found = rent_or_own(blocks, OWN, rent, discount_frac_per_year=RATE)
    return {way.name: way for way in found}


def test_the_base_is_owned_and_peaks_are_rented():
    ways = by_name()
    assert {name: way.n_owned for name, way in ways.items()} == {
        "all rented": 0,
        "own and rent": 2,
        "all owned": 8,
    }
    least = min(way.npv_usd for way in ways.values())
    assert ways["own and rent"].npv_usd == least
    assert ways["all rented"].payback is None
    assert ways["own and rent"].payback.npv_gain_usd == pytest.approx(
        ways["all rented"].npv_usd - ways["own and rent"].npv_usd, abs=0.01
    )


def test_one_node_crosses_at_its_break_even():
    """72.36 % use: below renting wins, above owning does."""
    shares = [0.70, 0.72, 0.73, 0.75]
    always = [LoadBlock(n_nodes=1, n_hours=168.0)]
    lines = npv_by_utilization(always, OWN, RENT, utilizations=shares, discount_frac_per_year=RATE)
    owned_wins = [
        own < rent for own, rent in zip(lines["all owned"], lines["all rented"], strict=True)
    ]
    assert owned_wins == [False, False, True, True]
    assert lines["own and rent"] == tuple(
        min(pair) for pair in zip(lines["all owned"], lines["all rented"], strict=True)
    )


@settings(max_examples=25, deadline=None)
@given(
    blocks=st.lists(
        st.builds(LoadBlock, n_nodes=st.integers(0, 6), n_hours=st.floats(1.0, 100.0)),
        min_size=1,
        max_size=4,
    ),
    usd=st.floats(5.0, 60.0),
)
def test_both_together_are_never_dearer(blocks, usd):
    ways = by_name(blocks, rent_rate(usd))
    least = min(way.npv_usd for way in ways.values())
    assert ways["own and rent"].npv_usd == pytest.approx(least, rel=1e-6, abs=2.0)


def test_without_a_price_nothing_is_compared():
    free = replace(OWN, purchase=NodePurchase(hardware_usd=exactly(0.0)))
    with pytest.raises(CatalogError, match="purchase price"):
        rent_or_own(WEEK, free, RENT, discount_frac_per_year=RATE)


def test_no_load_costs_nothing():
    ways = by_name([LoadBlock(n_nodes=0, n_hours=168.0)])
    assert {way.npv_usd for way in ways.values()} == {0.0}
    assert ways["all owned"].statement.cents_by_month == (0,) * (N_MONTHS + 1)
