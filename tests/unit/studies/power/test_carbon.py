"""A fleet's energy and carbon from region or site, with every meaning and assumption told."""

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.scenario.site import Site
from gpuplan.studies.power.carbon import NodeGroup, board_kg, carbon_of, place_at
from gpuplan.units import DAY, GRAM, KW, KWH

MONTH = 365 * DAY / 12
GROUP = NodeGroup(accelerator="h100-sxm", n_accelerators_per_node=8, n_nodes=4, mean_w=7.14 * KW)


@pytest.fixture(scope="module")
def catalog():
    return read_catalog()


def test_a_cloud_region_has_several_meanings(catalog):
    place = place_at("aws:eu-north-1")
    account = carbon_of(catalog, [GROUP], place=place, seconds=MONTH)
    location = account.operational_of("location", "average")
    assert place.pue_ratio == pytest.approx(1.1)
    kwh = 4 * 7.14 * 730 * 1.1
    assert account.energy.facility_j / KWH == pytest.approx(kwh)
    assert location.emitted_kg == pytest.approx(kwh * 24.71e-3, rel=0.01)
    assert account.operational_of("market", "average").emitted_kg == 0


def test_a_sites_own_figures_come_first(catalog):
    site = Site(region="DEU", pue_ratio=1.4, carbon_kg_per_j=100 * GRAM / KWH)
    place = place_at(None, site=site)
    assert place.pue_ratio == 1.4
    assert [figure.source for figure in place.intensities] == ["user"]
    assert "location, average" in [a.value for a in place.assumptions][-1]


def test_no_place_is_told_and_has_no_carbon(catalog):
    place = place_at(None)
    account = carbon_of(catalog, [GROUP], place=place, seconds=MONTH)
    assert account.operational == ()
    assert "site.pue" in [a.change for a in account.assumptions]


def test_embodied_is_a_range_of_models_over_life(catalog):
    board = board_kg(catalog, "h100-sxm")
    assert (board.low, board.mid, board.high) == (164.0, 164.0, 575.0)  # the maker's is preferred
    assert board_kg(catalog, "b200-sxm").mid == 284.0
    assert board_kg(catalog, "v100-pcie-32gb").low == pytest.approx(288 * 273 / 575)
    assert board_kg(catalog, "gaudi3").high > board_kg(catalog, "gaudi3").low
    account = carbon_of(catalog, [GROUP], place=place_at(None), seconds=MONTH)
    assert account.embodied_kg.high == pytest.approx(4 * (8 * 575 + 5700) / 48)
    assert account.embodied_kg.low == pytest.approx(4 * (8 * 164 + 1000) / 48)


def test_a_small_machine_has_a_small_server(catalog):
    one = NodeGroup(accelerator="l4", n_accelerators_per_node=1, n_nodes=1, mean_w=200.0)
    account = carbon_of(catalog, [one], place=place_at(None), seconds=MONTH)
    assert account.embodied_kg.high == pytest.approx((124 + 5700 / 8) / 48)


def test_nothing_emits_nothing(catalog):
    account = carbon_of(catalog, [], place=place_at("NLD"), seconds=MONTH)
    assert account.energy.facility_j == 0
    assert account.embodied_kg.high == 0
