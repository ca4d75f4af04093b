"""Electricity: every rule finds its fault, and the tables say how old they are."""

from dataclasses import replace
from datetime import date

from gpuplan.catalog.integrity.places import check_places, looked_at
from gpuplan.catalog.regions import find_region, read_regions, site_energy
from gpuplan.units import KWH

TODAY = date(2026, 11, 17)
BRITAIN = find_region("GBR")[0]
PLACES = [BRITAIN, find_region("DEU")[0], find_region("FRA")[0]]


def rules_of(*places):
    return [finding.rule for finding in check_places(places, TODAY)]


def priced(region, **changes):
    return replace(region, electricity=replace(region.electricity, **changes))


def test_a_tariff_without_a_year_or_of_long_ago_is_found():
    assert rules_of(*PLACES) == []
    assert rules_of(priced(BRITAIN, year=None), *PLACES[1:]) == ["tariff-dated"]
    assert rules_of(priced(BRITAIN, year=2020), *PLACES[1:]) == ["tariff-old"]


def test_a_tariff_far_from_all_others_is_found():
    assert rules_of(priced(BRITAIN, usd_per_j=9.0 / KWH), *PLACES[1:]) == ["tariff-spread"]


def test_nearly_all_tariffs_are_dated_and_all_are_looked_at():
    priced_places = [r for r in read_regions() if r.electricity]
    assert set(looked_at(read_regions()).values()) == {len(priced_places)}
    assert sum(r.electricity.year is None for r in priced_places) < 10


def test_british_power_costs_what_british_industry_pays_and_says_of_when():
    assert 0.18 < BRITAIN.electricity.usd_per_j * KWH < 0.33
    found = site_energy(find_region("eu-west-2", cloud="aws")[0])
    assert any("of 2023" in note.why for note in found.assumptions)
