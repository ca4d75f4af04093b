"""What people call clouds and places, in: a name as typed; out: ids of the catalog.

One place can be many regions: Frankfurt is one of each large cloud, us-east several of one.
"""

import re
from difflib import get_close_matches
from functools import cache

from gpuplan.catalog.offers import read_offers
from gpuplan.catalog.regions import (
    clouds_named,
    find_region,
    names_in_use,
    read_regions,
    regions_named,
    squeeze,
)
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
        found = known.get(squeeze(spelling))
        if found:
            return found
    each = {known.get(part, "") for part in word.split()}  # Oracle OCI, AWS Amazon: one cloud twice
    if len(each) == 1 and "" not in each:
        return each.pop()
    near = [known[key] for key in get_close_matches(squeeze(word), known, n=6, cutoff=0.4)]
    shown = list(dict.fromkeys(near))[:N_SHOWN] or sorted({*known.values()})
    fix = f"did you mean {', '.join(shown)}?"
    raise one(InputError, "cloud", repr(text), "no cloud of the catalog", fix)


def places_named(text: str) -> tuple[str, ...]:
    """Ids of all regions, or of the countries or union, that this name stands for."""
    stated = names_in_use("place").get(squeeze(names_in_use("exonym").get(squeeze(text), text)))
    if stated:
        return tuple(stated.split("|"))
    found = regions_named(text)
    wide = [region for region in found if region.kind != "cloud"] or found
    if wide:
        return tuple(dict.fromkeys(name for region in wide for name in _covered(region)))
    if any(text == offer.region for offer in read_offers()):
        return (text,)
    find_region(text)  # raises, with the nearest names
    return ()


def _covered(region: Region) -> tuple[str, ...]:
    """A country or region is its own id; a state is every region within it."""
    if region.kind != "state":
        return (region.id,)
    return tuple(other.id for other in read_regions() if other.cloud and other.state == region.id)


@cache
def _clouds() -> dict[str, str]:
    return clouds_named() | {squeeze(offer.cloud): offer.cloud for offer in read_offers()}
