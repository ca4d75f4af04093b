"""Where offers may come from, in: an offer and the policy's regions; out: whether it is allowed."""

from functools import cache

from gpuplan.catalog.regions import read_regions
from gpuplan.csv_rows import words
from gpuplan.domain.money.market import Offer
from gpuplan.domain.scenario.terms import Choice

# Members of the European Union, ISO 3166 alpha-3.
EU_COUNTRIES = frozenset(words("studies.market", "eu_country"))


@cache
def countries() -> dict[str, str]:
    """Country of each region that clouds are known to have, by cloud:region."""
    return {r.id: r.country for r in read_regions() if r.kind == "cloud" and r.country}


def is_place_allowed(offer: Offer, regions: Choice) -> bool:
    """Whether the region, its country or its union is allowed; an unknown country is in none.

    An offer without a region may be in any that its cloud lists.
    """
    places = (offer.region,) if offer.region else offer.listed_regions or ("",)
    return any(_is_allowed(offer.cloud, place, regions) for place in places)


def _is_allowed(cloud: str, region: str, regions: Choice) -> bool:
    own = f"{cloud}:{region}"
    country = countries().get(own, "")
    union = ("EU",) if country in EU_COUNTRIES else ()
    return fits(regions, region, own, *((country,) if country else ()), *union)


def fits(choice: Choice, *names: str) -> bool:
    """Whether any of the names is allowed and none forbidden."""
    is_allowed = not choice.allowed or any(name in choice.allowed for name in names)
    return is_allowed and not any(name in choice.forbidden for name in names)
