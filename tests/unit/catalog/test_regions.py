"""Places: names resolve as people type them, unknown stays unknown, and fallbacks are said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.load import read_market_sources
from gpuplan.catalog.offers import is_surveyed, listed_offers, own_lists
from gpuplan.catalog.regions import find_region, read_regions, site_energy
from gpuplan.domain.money.market import Boundary, Method
from gpuplan.errors import InputError
from gpuplan.units import GRAM, KWH

REGIONS = {region.id: region for region in read_regions()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("europe-west4", "gcp:europe-west4"),
        ("gcp:europe-west4", "gcp:europe-west4"),
        ("WestEurope", "azure:westeurope"),
        ("West Europe", "azure:westeurope"),
        ("  eu-central-1 ", "aws:eu-central-1"),
        ("NLD", "NLD"),
        ("Netherlands", "NLD"),
        ("south korea", "KOR"),
        ("uk", "GBR"),
        ("Virginia", "US-VA"),
        ("US-VA", "US-VA"),
        ("us-ashburn-1", "oci:us-ashburn-1"),
    ],
)
def test_names_resolve_as_people_type_them(text: str, found: str) -> None:
    region, assumptions = find_region(text)
    assert (region.id, assumptions) == (found, ())


def test_a_region_name_of_several_clouds_is_read_as_the_best_known_and_said() -> None:
    region, (assumption,) = find_region("us-east-1")
    assert region.id == "aws:us-east-1"
    assert "lambda:us-east-1" in assumption.why
    region, assumptions = find_region("us-east-1", cloud="lambda")
    assert (region.id, assumptions) == ("lambda:us-east-1", ())


def test_a_country_code_that_clouds_use_as_region_is_the_country() -> None:
    region, (assumption,) = find_region("NL")
    assert region.id == "NLD"
    assert "runpod:NL" in assumption.why
    assert find_region("NL", cloud="runpod")[0].id == "runpod:NL"


@pytest.mark.parametrize("text", ["Georgia", "CA", "DE", "uswest2"])
def test_what_means_two_places_is_told_never_guessed(text: str) -> None:
    with pytest.raises(InputError, match=r"means .* or ") as caught:
        find_region(text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "near"),
    [("us-esat-1", "us-east-1"), ("Netherlnds", "netherlands"), ("Frankfrut", "frankfurt"),
     ("", "us-east-1"), ("🌍", "us-east-1")],
)  # fmt: skip
def test_a_typo_gets_the_nearest_names(text: str, near: str) -> None:
    with pytest.raises(InputError, match="did you mean") as caught:
        find_region(text)
    assert near in str(caught.value)


@given(st.text(max_size=20), st.none() | st.sampled_from(["aws", "vast", "nowhere"]))
def test_no_text_raises_anything_but_an_input_error(text: str, cloud: str | None) -> None:
    try:
        region, _ = find_region(text, cloud=cloud)
    except InputError:
        return
    assert cloud is None or region.cloud == cloud


def test_every_id_finds_its_region() -> None:
    for region in REGIONS.values():
        assert find_region(region.id)[0] is region


def test_every_offer_lies_in_a_known_region_but_for_clouds_that_state_none() -> None:
    listed = own_lists(listed_offers())
    unknown = {o.cloud for o in listed if f"{o.cloud}:{o.region}" not in REGIONS}
    assert unknown == {"seeweb", *(o.cloud for o in listed if is_surveyed(o))}


def test_figures_are_within_physical_bounds_and_sourced() -> None:
    sources = read_market_sources()
    for region in REGIONS.values():
        if region.pue_ratio is not None:
            assert 1 < region.pue_ratio < 2
            assert region.pue_source in sources
        if region.electricity is not None:
            assert 0.005 < region.electricity.usd_per_j * KWH < 0.5, region.id
            assert region.electricity.source in sources
        for figure in region.carbon:
            assert 0 <= figure.kg_per_j * KWH / GRAM < 1400, region.id
            assert figure.kg_per_j > 0 or figure.boundary == "market"
            assert figure.source in sources


def test_carbon_says_which_kind_it_is() -> None:
    region = REGIONS["aws:us-east-1"]
    grams = {(f.boundary, f.method): f.kg_per_j * KWH / GRAM for f in region.carbon}
    assert grams == pytest.approx(
        {("location", "average"): 396.25, ("location", "marginal"): 557.17,
         ("market", "average"): 0.0}
    )  # fmt: skip


def test_missing_stays_none_and_the_fallback_is_an_assumption() -> None:
    region = REGIONS["aws:us-east-1"]
    assert region.electricity is None
    energy = site_energy(region)
    assert energy.pue_ratio == 1.15
    assert energy.electricity == REGIONS["US-VA"].electricity
    (assumption,) = energy.assumptions
    assert "US-VA" in assumption.why
    assert assumption.value == "0.0899 USD/kWh"


def test_state_comes_before_country() -> None:
    virginia, usa = REGIONS["US-VA"].electricity, REGIONS["USA"].electricity
    assert virginia is not None
    assert usa is not None
    assert virginia.usd_per_j != usa.usd_per_j


@pytest.mark.parametrize(("boundary", "method"), [("location", "marginal"), ("market", "average")])
def test_one_kind_of_carbon_never_stands_in_for_another(boundary: Boundary, method: Method) -> None:
    assert REGIONS["NLD"].carbon_of(boundary, method) is None
    assert REGIONS["NLD"].carbon_of("location", "average") is not None


def test_pue_falls_back_to_the_cloud_and_then_to_the_industry() -> None:
    gcp = site_energy(REGIONS["gcp:europe-west9"])
    assert gcp.pue_ratio == pytest.approx(1.10, abs=0.01)  # the mean that Google's regions publish
    assert "mean of the 13 regions" in gcp.assumptions[0].why
    home = site_energy(REGIONS["NLD"])
    assert home.pue_ratio == 1.58
    assert home.assumptions[0].source == "uptime-survey"


@pytest.mark.parametrize("region_id", ["azure:northeurope", "azure:westus", "gcp:me-central1"])
def test_figures_of_another_grid_are_not_taken_over(region_id: str) -> None:
    """The source places these in Finland, Washington and the Emirates."""
    assert REGIONS[region_id].carbon == ()
    energy = site_energy(REGIONS[region_id])
    assert energy.carbon is not None
    assert any("carbon" in a.what for a in energy.assumptions)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("us-central1-a", "gcp:us-central1"),
        ("us-west-2a", "aws:us-west-2"),
        ("uk south", "azure:uksouth"),
        ("Dublin", "IRL"),
    ],
)
def test_a_zone_a_city_and_a_name_apart_are_their_region(typed: str, meant: str) -> None:
    assert find_region(typed)[0].id == meant
