"""Clouds and places as people call them: one cloud, one or many regions, or the nearest names."""

import pytest

from gpuplan.catalog.place_names import find_cloud, places_named
from gpuplan.errors import InputError


@pytest.mark.parametrize(
    ("typed", "cloud"),
    [
        ("Amazon", "aws"),
        ("Google Cloud", "gcp"),
        ("oracle cloud", "oci"),
        ("Nebius AI", "nebius"),
        ("vast.ai", "vast"),
        ("Hyper-Stack", "hyperstack"),
        ("Lambda Cloud", "lambda"),
    ],
)
def test_clouds_by_any_of_their_names(typed, cloud):
    assert find_cloud(typed) == cloud


def test_an_unknown_cloud_gets_at_most_three_names():
    with pytest.raises(InputError, match="did you mean") as caught:
        find_cloud("azuer")
    assert "azure" in caught.value.problems[0].fix
    assert caught.value.problems[0].fix.count(",") <= 2


def test_a_city_is_a_region_of_every_cloud_that_has_one_there():
    found = places_named("Frankfurt")
    assert {"aws:eu-central-1", "gcp:europe-west3"} <= set(found)
    assert all(":" in name for name in found)


def test_the_beginning_of_ids_is_all_that_count_on_from_it():
    found = places_named("us-east")
    assert {"aws:us-east-1", "aws:us-east-2", "gcp:us-east4"} <= set(found)
    assert "aws:us-west-2" not in found


@pytest.mark.parametrize(
    ("typed", "ids"), [("UK", ("GBR",)), ("Europe", ("EU",)), ("Germany", ("DEU",))]
)
def test_countries_and_unions_by_their_common_names(typed, ids):
    assert places_named(typed) == ids


def test_a_state_is_every_region_within_it():
    found = places_named("Virginia")
    assert "aws:us-east-1" in found
    assert "aws:us-east-2" not in found


def test_an_unknown_place_is_refused_with_what_is_near():
    with pytest.raises(InputError, match="did you mean"):
        places_named("Frankfrut")
