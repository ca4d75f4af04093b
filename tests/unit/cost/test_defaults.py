"""What is assumed is told, with its range and the key that changes it."""

import pytest

from gpuplan.cost.defaults import (
    GEAR_FRAC,
    colocation_of,
    purchase_of,
    support_of,
)
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.terms import PurchaseExtras
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.units import KW
from shared_data import ROOT


def test_defaults_are_told_and_the_users_shares_stand():
    """Trap 37: network gear is 10 to 15 % of capital, freight and spares are not forgotten."""
    extras = PurchaseExtras(freight_frac=0.05, tax_frac=0.0)
    purchase, told = purchase_of(exactly(300_000.0), extras)
    assert purchase.freight_frac == 0.05
    assert purchase.gear_frac == GEAR_FRAC.mid
    assert {a.what for a in told} == {"installation", "racks, switches, cables", "spare parts"}
    assert all("range" in a.value and a.change.startswith("prices.") for a in told)


def test_space_is_reported_even_where_it_is_free():
    usd, told = colocation_of(None, has_own_site=False)
    assert usd * KW == pytest.approx(184.06)
    assert told[0].source == "cbre-colocation"
    usd, told = colocation_of(None, has_own_site=True)
    assert usd == 0
    assert "not counted" in told[0].why
    assert colocation_of(0.1, has_own_site=False) == (0.1, ())


def test_support_is_an_assumption_or_a_figure():
    assert support_of(0.08) == (0.08, ())
    assert support_of(None)[1][0].change == "prices.support_frac_per_year"


def test_extras_can_be_written_in_a_scenario(tmp_path):
    text = (ROOT / "examples" / "power-shortfall.yaml").read_text()
    path = tmp_path / "s.yaml"
    path.write_text(
        text + "prices:\n  purchase_extras: {freight_frac: 0.03, loan_frac: 0.8, loan_months: 36}\n"
    )
    extras = read_scenario(path).prices.extras
    assert extras.freight_frac == 0.03
    assert extras.loan_frac == 0.8
    assert extras.gear_frac is None
