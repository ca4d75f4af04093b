"""Unit costs by token and by team: parts add up to the bill."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.cost.per_unit import (
    price_weights,
    service_cents,
    team_costs,
    token_costs,
)
from gpuplan.domain.money.worth import Tokens, TokenWeights
from gpuplan.domain.scenario.terms import TokenPrice
from gpuplan.errors import InputError

API = TokenPrice(
    name="api",
    input_usd_per_token=0.6e-6,
    cached_usd_per_token=0.06e-6,
    output_usd_per_token=2.4e-6,
)


def test_tokens_by_accelerator_time():
    weights = TokenWeights(
        input_ratio=1e-4, cached_ratio=0.0, output_ratio=1e-3, rule="accelerator time"
    )
    tokens = Tokens(n_input=10e6, n_cached=40e6, n_output=1e6)
    found = token_costs(200_00, tokens, weights)
    by_kind = {part.kind: part for part in found.parts}
    assert found.total_cents == 200_00
    assert by_kind["input"].usd_per_token * 1e6 == pytest.approx(10.0)
    assert by_kind["output"].usd_per_token * 1e6 == pytest.approx(100.0)
    assert by_kind["cached"].cost_cents == 0
    assert "accelerator seconds" in found.rule_text
    assert found.basis == "paid hours"


def test_cost_per_token_is_on_paid_hours():
    """Trap 35: an hour at $2.95 is paid whether 9,000 tokens a second are served or 500."""
    alike = TokenWeights(input_ratio=1.0, cached_ratio=1.0, output_ratio=1.0, rule="token count")
    peak, offered = (
        token_costs(295, Tokens(n_input=0.0, n_cached=0.0, n_output=rate * 3600), alike).parts[2]
        for rate in (9_000, 500)
    )
    assert peak.usd_per_token * 1e6 == pytest.approx(0.0910, abs=1e-4)
    assert offered.usd_per_token == pytest.approx(18 * peak.usd_per_token)


def test_cached_tokens_have_their_own_price():
    """Trap 35: a service sells cached input for less, and so must the comparison."""
    tokens = Tokens(n_input=1e6, n_cached=9e6, n_output=1e6)
    assert service_cents(tokens, API) == round(100 * (0.6 + 0.54 + 2.4))
    blind = Tokens(n_input=10e6, n_cached=0.0, n_output=1e6)
    assert service_cents(blind, API) == round(100 * (6.0 + 2.4))
    assert price_weights(API).cached_ratio == pytest.approx(0.06e-6)


@given(
    total=st.integers(1, 10**8),
    n=st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(1, 1e9)),
    w=st.tuples(st.floats(0, 10), st.floats(0, 10), st.floats(0.01, 10)),
)
def test_token_costs_add_up(total, n, w):
    weights = TokenWeights(
        input_ratio=w[0], cached_ratio=w[1], output_ratio=w[2], rule="price ratio"
    )
    found = token_costs(total, Tokens(n_input=n[0], n_cached=n[1], n_output=n[2]), weights)
    assert found.total_cents == total


def test_teams_pay_for_what_they_hold():
    parts = team_costs(
        10_000_01,
        {"search": 500.0, "vision": 200.0},
        idle={"search": 100.0, "vision": 200.0},
        unassigned=100.0,
    )
    assert sum(part.total_cents for part in parts) == 10_000_01
    search, vision = parts
    assert search.team == "search"
    assert vision.idle_cents == pytest.approx(10_000_01 * 200 / 1100, abs=1)
    assert search.shared_cents / vision.shared_cents == pytest.approx(600 / 400, rel=1e-3)


def test_nothing_to_share_is_an_error():
    with pytest.raises(InputError):
        team_costs(100, {}, idle={"a": 0.0})


@given(
    total=st.integers(1, 10**8),
    used=st.dictionaries(st.sampled_from("abc"), st.floats(0.1, 1e6), min_size=1),
    idle=st.dictionaries(st.sampled_from("abcd"), st.floats(0.0, 1e6)),
    unassigned=st.floats(0.0, 1e6),
)
def test_team_costs_add_up_and_nobody_is_left_out(total, used, idle, unassigned):
    parts = team_costs(total, used, idle=idle, unassigned=unassigned)
    assert sum(part.total_cents for part in parts) == total
    assert [part.team for part in parts] == sorted({*used, *idle})
    assert all(min(p.used_cents, p.idle_cents, p.shared_cents) >= 0 for p in parts)


def test_unassigned_capacity_is_shared_by_what_teams_hold():
    """Teams that hold 30 and 10 of 50 pay 30/40 and 10/40 of the unassigned 10."""
    a, b = team_costs(500, {"a": 30.0, "b": 5.0}, idle={"b": 5.0}, unassigned=10.0)
    assert (a.used_cents, a.idle_cents, a.shared_cents) == (300, 0, 75)
    assert (b.used_cents, b.idle_cents, b.shared_cents) == (50, 50, 25)
