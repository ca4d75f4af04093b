"""Power at a place: whose figure is taken, and that taking another's is said."""

from dataclasses import replace

import pytest

from gpuplan.catalog.regions import INDUSTRY_PUE_RATIO, find_region, read_regions, site_energy
from gpuplan.domain.money.market import CarbonIntensity, ElectricityPrice, Region
from gpuplan.errors import InputError
from gpuplan.units import KWH

REGIONS = {region.id: region for region in read_regions()}
OWN = ElectricityPrice(usd_per_j=0.05 / KWH, basis="contract", year=2026, source="own")
CLEAN = CarbonIntensity(
    kg_per_j=0.0, boundary="location", method="average", year=2026, source="own"
)


def place(**changes: object) -> Region:
    """A cloud that nobody knows, in Virginia, with nothing published."""
    bare = replace(
        REGIONS["aws:us-east-1"],
        id="acme:va-1",
        name="Acme Virginia",
        cloud="acme",
        country="USA",
        state="US-VA",
        pue_ratio=None,
        pue_source="",
        electricity=None,
        carbon=(),
    )
    return replace(bare, **changes)


def told(region: Region) -> set[str]:
    return {a.what.split(" at ")[0] for a in site_energy(region).assumptions}


def test_a_place_without_figures_takes_those_of_its_state():
    found = site_energy(place())
    state = REGIONS["US-VA"]
    assert found.electricity == state.electricity
    assert found.carbon == state.carbon_of("location", "average")
    assert told(place()) == {"PUE", "electricity price", "carbon intensity (location, average)"}


def test_without_a_state_it_takes_those_of_its_country():
    found = site_energy(place(state="", country="NLD"))
    assert found.electricity == REGIONS["NLD"].electricity
    assert any("Netherlands" in a.why for a in found.assumptions)


def test_nowhere_is_nothing_and_not_zero():
    found = site_energy(place(state="", country=""))
    assert (found.electricity, found.carbon) == (None, None)
    assert found.pue_ratio == INDUSTRY_PUE_RATIO


def test_its_own_figures_are_never_replaced_and_never_told():
    own = place(electricity=OWN, carbon=(CLEAN,), pue_ratio=1.1)
    found = site_energy(own)
    assert (found.electricity, found.carbon, found.pue_ratio) == (OWN, CLEAN, 1.1)
    assert found.assumptions == ()


def test_a_clouds_own_mean_comes_before_the_industrys():
    known = [r.pue_ratio for r in read_regions() if r.cloud == "gcp" and r.pue_ratio is not None]
    found = site_energy(place(cloud="gcp"))
    assert found.pue_ratio == pytest.approx(sum(known) / len(known))
    assert f"mean of the {len(known)} regions" in found.assumptions[0].why


def test_each_fallback_says_which_key_changes_it():
    keys = {a.change for a in site_energy(place()).assumptions}
    assert keys == {"site.pue", "site.electricity_usd_per_kwh", "site.carbon_g_per_kwh"}


@pytest.mark.parametrize(
    ("text", "cloud", "found"),
    [
        ("us-east-1", "aws", "aws:us-east-1"),
        ("US_East 1", "aws", "aws:us-east-1"),
        ("  WestEurope ", None, "azure:westeurope"),
        ("europe west4", None, "gcp:europe-west4"),
        ("nld", None, "NLD"),
        ("Virginia", None, "US-VA"),
        ("aws:us-east-1", None, "aws:us-east-1"),
    ],
)
def test_places_as_people_type_them(text: str, cloud: str | None, found: str):
    region, assumed = find_region(text, cloud=cloud)
    assert region.id == found
    assert assumed == ()


def test_a_name_of_several_clouds_is_told_with_the_others():
    region, (note,) = find_region("us-east-1")
    assert region.id == "aws:us-east-1"
    assert note.value == "aws"
    assert "also the name of" in note.why


@pytest.mark.parametrize(
    ("text", "cloud", "said"),
    [
        ("DE", None, "DEU (Germany) or US-DE (Delaware)"),
        ("us-eest-1", None, "us-east-1"),
        ("westeurope", "gcp", "no region of gcp"),
        ("", None, "no region, country or state"),
    ],
)
def test_what_is_no_single_place_is_refused_with_names(text: str, cloud: str | None, said: str):
    with pytest.raises(InputError) as caught:
        find_region(text, cloud=cloud)
    assert said in str(caught.value)
