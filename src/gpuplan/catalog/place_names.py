"""What people call clouds and places, in: a name as typed; out: ids of the catalog.

One place can be many regions: Frankfurt is one of each large cloud, us-east several of one.
"""

import re
from difflib import get_close_matches
from functools import cache

from gpuplan.catalog.offers import read_offers
from gpuplan.catalog.regions import find_region, read_regions, regions_named
from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.money.market import Region
from gpuplan.errors import InputError, one

_ENDING = re.compile(r"(?<=\w)[\s.]*(?:gpu\s+)?(?:cloud|labs?|ai|io|com|inc|platform)$")
N_SHOWN = 3


def find_cloud(text: str) -> str:
    """The cloud of this name, by the id that offers use; InputError where there is none."""
    known = _clouds()
    word = text.strip().casefold()
    shorter = _ENDING.sub("", word)
    for spelling in (word, shorter, _ENDING.sub("", shorter)):
        found = known.get(_squeezed(spelling))
        if found:
            return found
    each = {known.get(part, "") for part in word.split()}  # Oracle OCI, AWS Amazon: one cloud twice
    if len(each) == 1 and "" not in each:
        return each.pop()
    near = [known[key] for key in get_close_matches(_squeezed(word), known, n=6, cutoff=0.4)]
    shown = list(dict.fromkeys(near))[:N_SHOWN] or sorted({*known.values()})
    raise one(InputError, "cloud", repr(text), "no cloud of the catalog", _did_you_mean(shown))


def places_named(text: str) -> tuple[str, ...]:
    """Ids of all regions, or of the country or union, that this name stands for."""
    said = _words("place").get(_squeezed(_words("exonym").get(_squeezed(text), text)))
    if said:
        return (said,)
    found = regions_named(text)
    wide = [region for region in found if region.kind != "cloud"]
    if wide:
        return tuple(dict.fromkeys(name for region in wide for name in _covered(region)))
    if found:
        return tuple(region.id for region in found)
    if any(text == offer.region for offer in read_offers()):
        return (text,)
    find_region(text)  # raises, with the nearest names
    return ()


def _covered(region: Region) -> tuple[str, ...]:
    """A country is its own id; a state is every region within it."""
    if region.kind == "country":
        return (region.id,)
    return tuple(other.id for other in read_regions() if other.cloud and other.state == region.id)


@cache
def _clouds() -> dict[str, str]:
    priced = {offer.cloud for offer in read_offers()}
    known = {*priced, *(region.cloud for region in read_regions() if region.cloud)}
    return _words("cloud") | {_squeezed(cloud): cloud for cloud in known}


@cache
def _words(kind: str) -> dict[str, str]:
    rows = packaged_rows("gpuplan.catalog", "data/place_names.csv")
    return {_squeezed(row["name"]): row["id"] for row in rows if row["kind"] == kind}


def _squeezed(text: str) -> str:
    return re.sub(r"[\s_.\-]", "", text.casefold())


def _did_you_mean(names: list[str]) -> str:
    return f"did you mean {', '.join(names)}?"
