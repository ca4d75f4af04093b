"""Rent, buy or both over life: the best of both is the best, and curves cross at break-even."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.money import N_MONTHS, NODE, PURCHASE, RATE, RUNNING, rent_rate
from gpuplan.cost.ways import compare_ways, npv_over_scale
from gpuplan.domain.money.rates import NodePurchase, PriceEvidence
from gpuplan.domain.money.worth import LoadBlock, OwnNode
from gpuplan.domain.ranges import exactly
from gpuplan.errors import CatalogError

OWN = OwnNode(
    node=NODE,
    purchase=PURCHASE,
    running=RUNNING,
    life_months=N_MONTHS,
    residual_frac=exactly(0.15),
    evidence=PriceEvidence(source="user"),
)
RENT = rent_rate(20.0)
WEEK = (
    LoadBlock(n_nodes=2, n_hours=118.0),
    LoadBlock(n_nodes=5, n_hours=30.0),
    LoadBlock(n_nodes=8, n_hours=20.0),
)


def by_name(blocks=WEEK, rent=RENT):
    found = compare_ways(blocks, OWN, rent, discount_frac_per_year=RATE)
    return {way.name: way for way in found}


def test_the_base_is_owned_and_peaks_are_rented():
    ways = by_name()
    assert {name: way.n_owned for name, way in ways.items()} == {
        "all rented": 0, "own and rent": 2, "all owned": 8,
    }  # fmt: skip
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
    lines = npv_over_scale(always, OWN, RENT, shares=shares, discount_frac_per_year=RATE)
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
        compare_ways(WEEK, free, RENT, discount_frac_per_year=RATE)


def test_no_load_costs_nothing():
    ways = by_name([LoadBlock(n_nodes=0, n_hours=168.0)])
    assert {way.npv_usd for way in ways.values()} == {0.0}
    assert ways["all owned"].statement.cents_by_month == (0,) * (N_MONTHS + 1)
