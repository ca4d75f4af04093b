"""Energy, carbon and water say what they mean; shifting is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.regions import find_region
from gpuplan.cost.carbon import carbon_account, embodied_kg, energy_use
from gpuplan.cost.shifting import shifted
from gpuplan.domain.money.carbon import DeferrableJob, Embodied
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
    assert account.total_kg("market", "marginal") is None


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
    total = account.total_kg("market", "average")
    assert total.high == pytest.approx(account.embodied_kg.high)


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


def job(name="night batch", energy_kwh=80.0, first=0, last=23, max_kw=10.0):
    return DeferrableJob(
        name=name, energy_j=energy_kwh * KWH, first_hour=first, last_hour=last, max_w=max_kw * KW
    )


def grams(values):
    return [value * GRAM / KWH for value in values]


def test_work_moves_to_clean_hours():
    plan = shifted(
        [job()], kg_per_j=grams(SUNNY), free_w=[20 * KW] * 24, meaning="location, marginal"
    )
    assert plan.at_once_kg == pytest.approx(80 * 0.5)
    assert plan.shifted_kg == pytest.approx(80 * 0.1)
    assert plan.saved_frac == pytest.approx(0.8)
    assert np.allclose(plan.power_w[0, 8:16], 10 * KW)
    assert plan.meaning == "location, marginal"


def test_deadlines_and_free_power_bind():
    early = job("due at nine", energy_kwh=20.0, first=0, last=9)
    late = job("later", energy_kwh=80.0, first=0, last=23)
    plan = shifted([early, late], kg_per_j=grams(SUNNY), free_w=[10 * KW] * 24, meaning="x")
    # Eight clean hours of 10 kW hold 80 of the 100 kWh.
    assert plan.shifted_kg == pytest.approx(80 * 0.1 + 20 * 0.5)
    assert plan.power_w.sum(axis=0).max() <= 10 * KW * (1 + 1e-9)
    assert plan.power_w[0, 10:].sum() == 0


def test_what_cannot_fit_says_by_how_much():
    with pytest.raises(InfeasibleError, match=r"needs 80\.0 kWh, its hours allow 30\.0"):
        shifted([job(last=2)], kg_per_j=grams(SUNNY), free_w=[20 * KW] * 24, meaning="x")
    with pytest.raises(InfeasibleError, match="side by side"):
        shifted(
            [job(), job("second"), job("third")],
            kg_per_j=grams(SUNNY),
            free_w=[9.9 * KW] * 24,
            meaning="x",
        )


def test_hours_outside_are_refused():
    with pytest.raises(InputError, match="within those given"):
        shifted([job(last=24)], kg_per_j=grams(SUNNY), free_w=[KW] * 24, meaning="x")


@settings(max_examples=30, deadline=None)
@given(
    carbon=st.lists(st.floats(10, 900), min_size=6, max_size=6),
    energy=st.floats(1, 30),
    window=st.tuples(st.integers(0, 2), st.integers(3, 5)),
)
def test_one_job_is_greedy_and_never_worse(carbon, energy, window):
    """Oracle: fill the cleanest hours of the window first."""
    first, last = window
    energy = min(energy, 10.0 * (last - first + 1))
    plan = shifted(
        [job(energy_kwh=energy, first=first, last=last)],
        kg_per_j=grams(carbon),
        free_w=[50 * KW] * 6,
        meaning="x",
    )
    left, greedy = energy, 0.0
    for grams_per_kwh in sorted(carbon[first : last + 1]):
        used = min(10.0, left)
        greedy += used * grams_per_kwh * GRAM
        left -= used
    assert plan.shifted_kg == pytest.approx(greedy, rel=1e-6)
    assert plan.shifted_kg <= plan.at_once_kg * (1 + 1e-6)
