"""Units: hours, tokens, runs, teams; parts add up to the bill."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.cost.per_unit import (
    hour_cost,
    price_weights,
    run_cost,
    service_break_even_tokens,
    service_cents,
    team_costs,
    time_weights,
    token_costs,
)
from gpuplan.domain.money.worth import Tokens, TokenWeights
from gpuplan.domain.scenario.terms import TokenPrice
from gpuplan.errors import InputError
from gpuplan.units import DAY

API = TokenPrice(
    name="api",
    input_usd_per_token=0.6e-6,
    cached_usd_per_token=0.06e-6,
    output_usd_per_token=2.4e-6,
)


def test_paid_and_used_hours_are_told_apart():
    found = hour_cost(1_000.0, n_paid_accelerator_hours=800.0, utilization_frac=0.4)
    assert found.usd_per_paid_h == pytest.approx(1.25)
    assert found.usd_per_used_h == pytest.approx(3.125)
    with pytest.raises(InputError):
        hour_cost(1.0, n_paid_accelerator_hours=1.0, utilization_frac=0.0)


def test_tokens_by_accelerator_time():
    weights = time_weights(input_s_per_token=1e-4, output_s_per_token=1e-3)
    tokens = Tokens(n_input=10e6, n_cached=40e6, n_output=1e6)
    found = token_costs(200_00, tokens, weights)
    by_kind = {part.kind: part for part in found.parts}
    assert found.total_cents == 200_00
    assert by_kind["input"].usd_per_token * 1e6 == pytest.approx(10.0)
    assert by_kind["output"].usd_per_token * 1e6 == pytest.approx(100.0)
    assert by_kind["cached"].cost_cents == 0
    assert "accelerator seconds" in found.rule_text
    assert found.basis == "paid hours"


def test_cached_tokens_have_their_own_price():
    """Trap 35: a service sells cached input for less, and so must the comparison."""
    tokens = Tokens(n_input=1e6, n_cached=9e6, n_output=1e6)
    assert service_cents(tokens, API) == round(100 * (0.6 + 0.54 + 2.4))
    blind = Tokens(n_input=10e6, n_cached=0.0, n_output=1e6)
    assert service_cents(blind, API) == round(100 * (6.0 + 2.4))
    assert price_weights(API).cached_ratio == pytest.approx(0.06e-6)


def test_break_even_against_a_service():
    mix = Tokens(n_input=3.0, n_cached=0.0, n_output=1.0)
    price = TokenPrice(
        name="api", input_usd_per_token=1e-2, cached_usd_per_token=None, output_usd_per_token=1e-2
    )
    assert service_break_even_tokens(2_000.0, price, tokens=mix) == pytest.approx(200_000.0)


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


@pytest.mark.parametrize(
    ("peak_flop_per_s", "mfu", "usd", "kilo_hours", "ideal_days", "real_days"),
    [
        (989e12, 0.40, 2.95, 843, 34, 38),
        (459e12, 0.50, 4.20, 1452, 59, 66),
        (2250e12, 0.38, 5.50, 390, 16, 18),
    ],
)
def test_a_very_large_run(peak_flop_per_s, mfu, usd, kilo_hours, ideal_days, real_days):
    hours = 6 * 100e9 * 2e12 / (peak_flop_per_s * mfu) / 3600
    ideal = run_cost(
        ideal_accelerator_hours=hours, goodput_frac=1.0, n_accelerators=1024,
        usd_per_accelerator_h=usd,
    )  # fmt: skip
    real = run_cost(
        ideal_accelerator_hours=hours, goodput_frac=0.9, n_accelerators=1024,
        usd_per_accelerator_h=usd, porting_usd=250_000.0,
    )  # fmt: skip
    assert ideal.n_accelerator_hours / 1e3 == pytest.approx(kilo_hours, abs=1)
    assert ideal.wall_s / DAY == pytest.approx(ideal_days, abs=0.5)
    assert real.wall_s / DAY == pytest.approx(real_days, abs=0.6)
    assert real.total_usd == pytest.approx(hours / 0.9 * usd + 250_000.0)


def test_goodput_must_be_a_share():
    with pytest.raises(InputError, match="goodput"):
        run_cost(
            ideal_accelerator_hours=1.0, goodput_frac=0.0, n_accelerators=1,
            usd_per_accelerator_h=1.0,
        )  # fmt: skip


def test_teams_pay_for_what_they_hold():
    parts = team_costs(
        10_000_01,
        {"search": 500.0, "vision": 200.0},
        idle_hours={"search": 100.0, "vision": 200.0},
        free_hours=100.0,
    )
    assert sum(part.total_cents for part in parts) == 10_000_01
    search, vision = parts
    assert search.team == "search"
    assert vision.idle_cents == pytest.approx(10_000_01 * 200 / 1100, abs=1)
    assert search.shared_cents / vision.shared_cents == pytest.approx(600 / 400, rel=1e-3)


def test_nothing_to_share_is_an_error():
    with pytest.raises(InputError):
        team_costs(100, {}, idle_hours={"a": 0.0})
