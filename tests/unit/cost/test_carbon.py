"""Energy, carbon and water say what they mean; shifting is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gpuplan.catalog.regions import find_region
from gpuplan.cost.carbon import carbon_account, embodied_kg, energy_use, shifted
from gpuplan.domain.money.carbon import Embodied
from gpuplan.domain.money.market import CarbonIntensity
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.build import FootprintRules
from gpuplan.errors import InfeasibleError, InputError
from gpuplan.units import DAY, GRAM, HOUR, KW, KWH

YEAR_S = 8760 * HOUR

FOOTPRINT = FootprintRules()
WATER = FOOTPRINT.water_kg_per_j


def intensity(boundary, method, g_per_kwh):
    return CarbonIntensity(
        kg_per_j=g_per_kwh * GRAM / KWH, boundary=boundary, method=method, year=2024, source="x"
    )


MEANINGS = (
    intensity("location", "average", 400.0),
    intensity("location", "marginal", 700.0),
    intensity("market", "average", 0.0),
)


NOTHING = exactly(0.0)


def account_of(energy, intensities=MEANINGS, embodied=NOTHING):
    return carbon_account(
        energy, intensities=intensities, embodied_kg=embodied, water_kg_per_j=WATER
    )


def test_pue_lies_on_power_and_energy_alike():
    """Trap 41."""
    energy = energy_use(28.56 * KW, YEAR_S, 1.4)
    assert energy.machines_j / KWH / 1e3 == pytest.approx(250.2, abs=0.1)
    assert energy.facility_j / KWH / 1e3 == pytest.approx(350.3, abs=0.1)
    assert energy.facility_j / energy.machines_j == pytest.approx(1.4)
    with pytest.raises(InputError, match="pue"):
        energy_use(1.0, 1.0, 0.9)


def test_meanings_stand_side_by_side():
    """Trap 48: location and market, average and marginal are different figures."""
    energy = energy_use(1 * KW, 1000 * HOUR, 1.2)
    account = account_of(energy)
    assert account.operational_of("location", "average").emitted_kg == pytest.approx(480.0)
    assert account.operational_of("location", "marginal").emitted_kg == pytest.approx(840.0)
    assert account.operational_of("market", "average").emitted_kg == 0.0
    assert account.operational_of("market", "marginal") is None


def test_embodied_is_a_range_over_life():
    energy = energy_use(1.0, YEAR_S, 1.0)
    hardware = Embodied(
        accelerator_kg=Range(low=164.0, mid=273.0, high=575.0),
        server_kg=FOOTPRINT.server_kg,
        n_accelerators=8,
        n_servers=1,
        life_s=4 * YEAR_S,
    )
    account = account_of(energy, embodied=embodied_kg(hardware, YEAR_S))
    assert account.embodied_kg.low == pytest.approx((8 * 164 + 1000) / 4)
    assert account.embodied_kg.high == pytest.approx((8 * 575 + 5700) / 4)


def test_water_is_of_the_machines_energy():
    """1 kW for 1000 h is 1000 kWh at the machines, whatever the PUE: 0, 400 and 1800 litres."""
    energy = energy_use(1 * KW, 1000 * HOUR, 1.5)
    account = account_of(energy, ())
    assert account.water_kg == Range(low=0.0, mid=pytest.approx(400.0), high=pytest.approx(1800.0))


def test_a_region_gives_its_own_meanings():
    region, _ = find_region("aws:eu-north-1")
    account = account_of(energy_use(1e3, DAY, 1.1), region.carbon)
    kinds = {(figure.boundary, figure.method) for figure in account.operational}
    assert ("location", "average") in kinds
    assert len(kinds) == len(account.operational)


SUNNY = [500.0] * 8 + [100.0] * 8 + [500.0] * 8


def shift(carbon=SUNNY, energy_kwh=80.0, max_kw=10.0):
    by_hour = [grams * GRAM / KWH for grams in carbon]
    return shifted(
        "night batch", energy_kwh * KWH, max_kw * KW, kg_per_j=by_hour, meaning="location, marginal"
    )


def test_work_moves_to_clean_hours():
    plan = shift()
    assert plan.at_once_kg == pytest.approx(80 * 0.5)
    assert plan.shifted_kg == pytest.approx(80 * 0.1)
    assert plan.saved_frac == pytest.approx(0.8)
    assert np.allclose(plan.power_w[8:16], 10 * KW)
    assert plan.meaning == "location, marginal"


def test_what_clean_hours_do_not_hold_runs_in_the_others():
    """Eight clean hours of 10 kW hold 80 of the 100 kWh."""
    assert shift(energy_kwh=100.0).shifted_kg == pytest.approx(80 * 0.1 + 20 * 0.5)


def test_what_cannot_fit_says_by_how_much():
    with pytest.raises(InfeasibleError, match=r"needs 250\.0 kWh, its hours allow 240\.0"):
        shift(energy_kwh=250.0)


@settings(max_examples=30, deadline=None)
@given(
    carbon=st.lists(st.floats(10, 900), min_size=2, max_size=8),
    filled=st.floats(0.01, 1.0),
)
def test_no_schedule_emits_less(carbon, filled):
    """Oracle: the linear program over the hours, solved by HiGHS."""
    energy = filled * 10.0 * len(carbon)
    plan = shift(carbon, energy_kwh=energy)
    solved = linprog(
        carbon, A_eq=[[1.0] * len(carbon)], b_eq=[energy], bounds=[(0.0, 10.0)] * len(carbon)
    )
    assert plan.shifted_kg == pytest.approx(solved.fun * GRAM, rel=1e-6)
    assert float(plan.power_w.sum()) * HOUR == pytest.approx(energy * KWH)
    assert plan.power_w.max() <= 10 * KW * (1 + 1e-9)
    assert plan.shifted_kg <= plan.at_once_kg * (1 + 1e-9)
