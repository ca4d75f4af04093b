"""Places and their power, in: the package's tables and a name; out: Region and SiteEnergy nouns."""

import difflib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from statistics import mean

from gpuplan.csv_rows import noun_from, packaged_rows
from gpuplan.domain.money.market import (
    Boundary,
    CarbonIntensity,
    ElectricityPrice,
    Method,
    Region,
    SiteEnergy,
)
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.units import GRAM, KWH

PREFERRED_CLOUDS = ("aws", "gcp", "azure", "oci")  # whose name for a region is best known
USUAL_CARBON: tuple[Boundary, Method] = ("location", "average")
INDUSTRY_PUE_RATIO = 1.58  # average of the industry in 2023 [uptime-survey]
CARBON_COLUMNS: tuple[tuple[str, Boundary, Method], ...] = (
    ("location_average_g_per_kwh", "location", "average"),
    ("location_marginal_g_per_kwh", "location", "marginal"),
    ("market_average_g_per_kwh", "market", "average"),
)


@cache
def read_regions() -> tuple[Region, ...]:
    """Every region of every cloud, every country, every state of the USA."""
    return tuple(_region(row) for row in _rows("regions.csv"))


def find_region(text: str, *, cloud: str | None = None) -> tuple[Region, tuple[Assumption, ...]]:
    """The place that people mean by this name, and what was assumed where several bear it."""
    found = _among(regions_named(text), cloud)
    if len(found) == 1:
        return found[0], ()
    if not found:
        raise _unknown(text, cloud)
    places = [region for region in found if region.kind != "cloud"]
    if len(places) == 1:
        return places[0], (_place_assumption(text, places[0], found),)
    ranked = sorted(places or found, key=_preference)
    is_loose = _unaccented(text.strip()) not in _index() and squeeze(text) in _loose_index()
    if places or is_loose or ranked[0].cloud not in PREFERRED_CLOUDS:
        names = " or ".join(f"{region.id} ({region.name})" for region in ranked)
        raise one(InputError, "region", repr(text), f"means {names}", "write one of these ids")
    return ranked[0], (_cloud_assumption(text, ranked),)


def regions_named(text: str) -> tuple[Region, ...]:
    """Every place that bears this name: by id, city, country or state, or by how ids begin."""
    wanted = text.strip().casefold()
    inside = re.search(r"\(([^()]+)\)", wanted)  # as consoles write: US East (N. Virginia)
    short = re.sub(r"^([ns])(?:or|ou)th(?:ern)?\s+", r"\1. ", wanted)
    english = names_in_use("exonym").get(squeeze(wanted))  # Londres, Frankreich
    zoned = re.sub(r"(?<=\d)-?[a-f]$", "", wanted)  # a zone lies in its region: us-central1-a
    for name in filter(None, (wanted, inside and inside[1], short, english, zoned)):
        own = _index().get(name, ()) or _loose_index().get(squeeze(name), ())
        # Apart or hyphenated, `uk south` is Azure's uksouth before it begins Nebius's uk-south1.
        is_whole = name not in _index() and len(own) == 1
        found = own if is_whole else tuple(dict.fromkeys((*own, *_begun_by(name))))
        if found:
            return found
    return _of_cloud([word for word in re.split(r"[\s,/]+", wanted) if word != "cloud"])


def _of_cloud(words: list[str]) -> tuple[Region, ...]:
    """The regions of one cloud at a place: `gcp frankfurt`, `Virginia AWS`, `azure germany`."""
    for n in range(1, len(words)):
        for first, rest in ((words[:n], words[n:]), (words[-n:], words[:-n])):
            cloud = clouds_named().get(squeeze("".join(first)))
            places = regions_named(" ".join(rest)) if cloud else ()
            ids = {place.id for place in places}
            near = [r for r in read_regions() if ids & {r.id, r.country, r.state}]
            near = [r for r in near if r.id in ids or "gov" not in r.id]  # a government's is named
            if _among(near, cloud):
                return tuple(_among(near, cloud))
    return ()


def _begun_by(start: str) -> tuple[Region, ...]:
    """Regions whose ids count on from this one: us-east of us-east-1 and us-east4."""
    if not start or start[-1].isdigit():
        return ()
    numbered = re.compile(rf"{re.escape(squeeze(start))}\d+")
    return tuple(r for r in read_regions() if numbered.fullmatch(squeeze(r.id.partition(":")[2])))


def site_energy(region: Region) -> SiteEnergy:
    """The region's figures, each missing one taken from the next wider place and said so."""
    assumptions: list[Assumption] = []
    pue_ratio, why_pue = _pue(region)
    electricity, carbon = region.electricity, region.carbon_of(*USUAL_CARBON)
    for wider in _wider(region):
        if electricity is None and wider.electricity is not None:
            electricity = wider.electricity
            usd_per_kwh = f"{electricity.usd_per_j * KWH:.4f} USD/kWh"
            assumptions.append(_fallback("electricity price", usd_per_kwh, region, wider))
        figure = wider.carbon_of(*USUAL_CARBON)
        if carbon is None and figure is not None:
            carbon = figure
            g_per_kwh = f"{figure.kg_per_j / GRAM * KWH:.0f} g/kWh"
            what = f"carbon intensity ({', '.join(USUAL_CARBON)})"
            assumptions.append(_fallback(what, g_per_kwh, region, wider))
    return SiteEnergy(
        region=region,
        pue_ratio=pue_ratio,
        electricity=electricity,
        carbon=carbon,
        assumptions=(*why_pue, *assumptions),
    )


def _region(row: Mapping[str, str]) -> Region:
    electricity = None
    if row["usd_per_kwh"]:
        electricity = ElectricityPrice(
            usd_per_j=float(row["usd_per_kwh"]) / KWH,
            basis=row["price_basis"],
            year=int(row["price_year"]) if row["price_year"] else None,
            source=row["price_source"],
        )
    given = {**row, "pue_ratio": row["pue"]}
    return noun_from(Region, given, electricity=electricity, carbon=tuple(_carbon(row)))


def _carbon(row: Mapping[str, str]) -> Iterable[CarbonIntensity]:
    for column, boundary, method in CARBON_COLUMNS:
        if row[column]:  # a market figure of 0 is a figure: all energy is matched by contracts
            yield CarbonIntensity(
                kg_per_j=float(row[column]) * GRAM / KWH,
                boundary=boundary,
                method=method,
                year=int(row["carbon_year"]),
                source=row["carbon_source"],
            )


def _among(found: Iterable[Region], cloud: str | None) -> list[Region]:
    return [region for region in found if cloud is None or region.cloud == cloud]


@cache
def _index() -> dict[str, tuple[Region, ...]]:
    names: dict[str, list[Region]] = defaultdict(list)
    aliases = {row["id"]: row["aliases"].split("|") for row in _rows("regions.csv")}
    for region in read_regions():
        spoken = [region.id, *aliases[region.id]]
        spoken.append(region.id.partition(":")[2] if region.cloud else region.name)
        for name in {text.casefold() for text in spoken if text}:
            names[name].append(region)
    for region in read_regions():
        bearers = names[region.name.casefold()]  # a city, unless a country bears its name
        if region.cloud and region not in bearers and all(other.cloud for other in bearers):
            bearers.append(region)
    return {name: tuple(regions) for name, regions in names.items() if regions}


@cache
def _loose_index() -> dict[str, tuple[Region, ...]]:
    names: dict[str, list[Region]] = defaultdict(list)
    for name, regions in _index().items():
        names[squeeze(name)] += regions
    return {name: tuple(regions) for name, regions in names.items()}


@cache
def names_in_use(kind: str) -> dict[str, str]:
    """What people call clouds, places and, in other languages, countries; squeezed."""
    rows = _rows("place_names.csv")
    return {squeeze(row["name"]): row["id"] for row in rows if row["kind"] == kind}


@cache
def clouds_named() -> dict[str, str]:
    """Clouds that have regions, by their names squeezed."""
    known = {squeeze(region.cloud): region.cloud for region in read_regions() if region.cloud}
    return names_in_use("cloud") | known


def squeeze(name: str) -> str:
    """Letters and digits alone, without accents: Zürich is Zurich."""
    return re.sub(r"[\s_.-]", "", _unaccented(name))


def _unaccented(name: str) -> str:
    spread = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in spread if not unicodedata.combining(letter))


def _preference(region: Region) -> tuple[int, str]:
    order = PREFERRED_CLOUDS
    return (order.index(region.cloud) if region.cloud in order else len(order), region.id)


def _unknown(text: str, cloud: str | None) -> PlannerError:
    """The error for a name that no place bears, with the nearest names."""
    wanted = text.strip().casefold()
    regions = [region for region in read_regions() if cloud in (None, region.cloud)]
    at_place = [f"{r.id} ({r.name})" for r in regions if wanted and wanted in r.name.casefold()]
    keys = [key for key, found in _index().items() if _among(found, cloud)]
    nearest = difflib.get_close_matches(wanted, keys, n=3, cutoff=0.6)
    known = at_place[:3] or nearest or ["us-east-1", "europe-west4", "westeurope", "NLD", "US-VA"]
    what = f"no region of {cloud}" if cloud else "no region, country or state"
    return one(InputError, "region", repr(text), what, f"did you mean {', '.join(known)}?")


def _place_assumption(text: str, place: Region, found: Iterable[Region]) -> Assumption:
    others = ", ".join(region.id for region in found if region is not place)
    return Assumption(
        what=f"place meant by {text!r}",
        value=f"{place.name} ({place.id})",
        why=f"also the name of {others}; without a cloud it is read as the {place.kind}",
        change="write cloud:region",
    )


def _cloud_assumption(text: str, ranked: list[Region]) -> Assumption:
    others = ", ".join(region.id for region in ranked[1:])
    return Assumption(
        what=f"cloud of region {text!r}",
        value=ranked[0].cloud,
        why=f"also the name of {others}; read as the best known of them",
        change=f"write {ranked[1].id}, or name the cloud",
    )


def _wider(region: Region) -> list[Region]:
    by_id = {other.id: other for other in read_regions() if other.kind != "cloud"}
    ids = [region.state, region.country] if region.kind != "country" else []
    return [by_id[place] for place in ids if place in by_id and place != region.id]


def _fallback(what: str, value: str, region: Region, wider: Region) -> Assumption:
    figure = wider.electricity if what == "electricity price" else None
    source = figure.source if figure else (wider.carbon[0].source if wider.carbon else "")
    dated = f", {figure.basis} of {figure.year or 'unknown year'}" if figure else ""
    return Assumption(
        what=f"{what} at {region.id}",
        value=value,
        why=f"not published for {region.id}; taken from {wider.name} ({wider.id}){dated}",
        change="site.electricity_usd_per_kwh" if figure else "site.carbon_g_per_kwh",
        source=source,
    )


def _pue(region: Region) -> tuple[float, tuple[Assumption, ...]]:
    """The region's PUE; else the mean of its cloud's published regions; else the industry's."""
    if region.pue_ratio is not None:
        return region.pue_ratio, ()
    published = [
        other.pue_ratio
        for other in read_regions()
        if region.cloud and other.cloud == region.cloud and other.pue_ratio is not None
    ]
    value = mean(published) if published else INDUSTRY_PUE_RATIO
    why = f"not published for {region.id}; " + (
        f"mean of the {len(published)} regions that {region.cloud} publishes"
        if published
        else "average of the industry, which new large sites undercut"
    )
    return value, (
        Assumption(
            what=f"PUE at {region.id}",
            value=f"{value:.2f}",
            why=why,
            change="site.pue",
            source="gsf-cloud-regions" if published else "uptime-survey",
        ),
    )


def _rows(name: str) -> tuple[dict[str, str], ...]:
    return packaged_rows("gpuplan.catalog", f"data/{name}")
