"""Energy and carbon of a fleet in a place, in: nodes, region or site; out: a CarbonAccount."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpuplan.catalog.regions import INDUSTRY_PUE_RATIO, find_region, site_energy
from gpuplan.cost.carbon import carbon_account, embodied_kg, energy_use
from gpuplan.design.rules import assumed
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.money.carbon import CarbonAccount, Embodied
from gpuplan.domain.money.market import CarbonIntensity
from gpuplan.domain.money.rates import NodeRate
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.ranges import Range, exactly, total
from gpuplan.domain.scenario.build import USUAL, BuildRules
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.site import Site
from gpuplan.errors import PlannerError
from gpuplan.units import KWH

# Where no model has the board: from the one figure that a model gives for all to the largest of
# another for one die [ecologits, boavizta]. Assumption.
UNKNOWN_BOARD_KG = Range(low=124.0, mid=570.0, high=1_415.0)
# The least of models over the most, for one board that two of them know: 273 and 575 kg.
MODEL_SPREAD_RATIO = 273.0 / 575.0
# Assumption, told where it is used: large consumers, from cheap to dear countries.
ELECTRICITY_USD_PER_J = Range(low=0.07 / KWH, mid=0.12 / KWH, high=0.20 / KWH)
PUE_KEY, PRICE_KEY = "site.pue", "site.electricity_usd_per_kwh"
CARBON_KEY = "site.carbon_g_per_kwh"


class EnergyPlace(NamedTuple):
    """What a place adds to power, emits for it and asks for it."""

    pue_ratio: float
    intensities: tuple[CarbonIntensity, ...]
    electricity_usd_per_j: Range
    assumptions: tuple[Assumption, ...]  # each with the key that changes it

    def without(self, *changes: str) -> tuple[Assumption, ...]:
        """The assumptions but those that these keys would change: what an answer rests on."""
        return tuple(note for note in self.assumptions if note.change not in changes)


class NodeGroup(NamedTuple):
    """Equal nodes that draw so much on average."""

    accelerator: str
    n_accelerators_per_node: int
    n_nodes: float
    mean_w: float  # of one node at its plug


def place_at(
    region: str | None, *, cloud: str | None = None, site: Site | None = None
) -> EnergyPlace:
    """The site's own figures, else its region's, each with its meaning; else what is assumed."""
    named = region or (site.region if site else None)
    assumed: list[Assumption] = []
    pue, price = (site.pue_ratio, site.electricity_usd_per_j) if site else (None, None)
    figures: tuple[CarbonIntensity, ...] = ()
    if named is not None:
        found, notes = find_region(named, cloud=cloud)
        energy = site_energy(found)
        given = {PUE_KEY: pue, PRICE_KEY: price, CARBON_KEY: site and site.carbon_kg_per_j}
        assumed += [*notes, *(n for n in energy.assumptions if given.get(n.change) is None)]
        pue = energy.pue_ratio if pue is None else pue
        figures = found.carbon or ((energy.carbon,) if energy.carbon else ())
        if price is None and energy.electricity is not None:
            price = exactly(energy.electricity.usd_per_j)
    if site is not None and site.carbon_kg_per_j is not None:
        figures = (_given(site.carbon_kg_per_j),)
        assumed.append(_meaning_note(site.carbon_kg_per_j))
    assumed += [pue_note()] if pue is None else []
    assumed += [_electricity_note()] if price is None else []
    return EnergyPlace(
        INDUSTRY_PUE_RATIO if pue is None else pue,
        figures,
        ELECTRICITY_USD_PER_J if price is None else price,
        tuple(assumed),
    )


def carbon_of(
    catalog: Catalog,
    groups: Sequence[NodeGroup],
    *,
    place: EnergyPlace,
    seconds: float,
    build: BuildRules = USUAL,
) -> CarbonAccount:
    """Everything that the groups emit in this time, manufacture's part with it."""
    drawn = sum(group.n_nodes * group.mean_w for group in groups)
    notes = [*place.without(PRICE_KEY), *assumed(build, "footprint.water_l_per_kwh")]
    if groups:
        notes += assumed(build, "footprint.server_kg", "footprint.life_years")
        notes += [note for group in groups for note in _board_notes(catalog, group, build)]
    account = carbon_account(
        energy_use(drawn, seconds, place.pue_ratio),
        intensities=place.intensities,
        embodied_kg=total(embodied_kg(_embodied(catalog, g, build), seconds) for g in groups),
        water_kg_per_j=build.footprint.water_kg_per_j,
    )
    return replace(account, assumptions=tuple(dict.fromkeys(notes)))


def board_kg(catalog: Catalog, accelerator: str) -> Range:
    """Manufacture of one board: the preferred figure between all that are published.

    A single figure is widened by how far models differ for one accelerator.
    """
    facts = [f for f in catalog.facts_of(accelerator) if f.quantity == "embodied_carbon"]
    figures = [float(fact.value) for fact in facts]
    if not figures:
        return UNKNOWN_BOARD_KG
    most = max(figures)
    low = min(*figures, most * MODEL_SPREAD_RATIO)
    preferred = next(float(fact.value) for fact in facts if fact.preferred)
    return Range(low=low, mid=preferred if len(figures) > 1 else (low + most) / 2, high=most)


def _embodied(catalog: Catalog, group: NodeGroup, build: BuildRules) -> Embodied:
    n, known = group.n_accelerators_per_node, build.footprint
    # The figure for servers is that of nodes of eight accelerators; smaller ones are smaller.
    share = min(1.0, max(n, 1) / 8)
    return Embodied(
        accelerator_kg=known.accelerator_kg or board_kg(catalog, group.accelerator),
        server_kg=known.server_kg.times(share),
        n_accelerators=n * group.n_nodes,
        n_servers=group.n_nodes,
        life_s=known.life_s,
    )


def _board_notes(catalog: Catalog, group: NodeGroup, build: BuildRules) -> tuple[Assumption, ...]:
    """What the figure of a board rests on, where the user gave none."""
    if build.footprint.accelerator_kg is not None:
        return ()
    found = board_kg(catalog, group.accelerator)
    is_known = found != UNKNOWN_BOARD_KG
    why = "published models of it, widened by how far models differ for one accelerator"
    if not is_known:
        why = "no model covers this accelerator: from the least to the most of any that is covered"
    facts = [f for f in catalog.facts_of(group.accelerator) if f.quantity == "embodied_carbon"]
    if len(facts) > 1:
        why = next(fact.note for fact in facts if fact.preferred)
    return (
        assume(
            f"embodied carbon of one {group.accelerator}",
            f"{found.mid:,.0f} ({found.low:,.0f} to {found.high:,.0f}) kg CO2e",
            why,
            "build.footprint.accelerator_kg",
            ", ".join(fact.source for fact in facts),
        ),
    )


def _given(kg_per_j: float) -> CarbonIntensity:
    return CarbonIntensity(
        kg_per_j=kg_per_j, boundary="location", method="average", year=0, source="user"
    )


def _meaning_note(kg_per_j: float) -> Assumption:
    return assume(
        "meaning of your carbon intensity",
        f"{kg_per_j * KWH * 1e3:.0f} g/kWh: location, average",
        "the figure does not say whether it counts contracts or marginal plants",
        CARBON_KEY,
        "user",
    )


def pue_note() -> Assumption:
    """The industry's average PUE is assumed where the site gives none."""
    return assume(
        "power usage effectiveness (PUE)",
        f"{INDUSTRY_PUE_RATIO:.2f}",
        "average of the industry",
        PUE_KEY,
        "uptime-survey",
    )


def _electricity_note() -> Assumption:
    low, mid, high = (
        value * KWH
        for value in (
            ELECTRICITY_USD_PER_J.low,
            ELECTRICITY_USD_PER_J.mid,
            ELECTRICITY_USD_PER_J.high,
        )
    )
    return assume(
        "price of electricity",
        f"{low:.2f} … {mid:.2f} … {high:.2f} USD/kWh",
        "no site is given",
        PRICE_KEY,
    )


def carbon_counts(scenario: Scenario) -> bool:
    """Whether the choice depends on carbon, so that what is not known may not be chosen."""
    weights = scenario.policy.weights
    is_weighed = weights is not None and weights.carbon_ratio > 0
    is_limited = scenario.policy.carbon_max_kg_per_year is not None
    return scenario.objective == "carbon" or is_weighed or is_limited


def carbon_kg_per_j(rate: NodeRate | None, scenario: Scenario) -> float | None:
    """The grid's average at the place, cooling and losses included; None where it is not known.

    Without a rate: nodes that stand at the site already.
    """
    is_own = rate is None or rate.purchase == "owned" or rate.capital is not None
    site = scenario.site if is_own else None
    region, cloud = (rate.node.region, rate.node.cloud) if rate else (None, None)
    try:
        place = place_at(region, cloud=cloud, site=site)
    except PlannerError:
        return None  # a region that nobody describes
    for figure in place.intensities:
        if (figure.boundary, figure.method) == ("location", "average"):
            return figure.kg_per_j * place.pue_ratio
    return None


def emitted_kg(
    energy_j: Mapping[str, float], rates: Mapping[str, NodeRate], scenario: Scenario
) -> float | None:
    """Of energy by terms; None where any of it comes from a place that is not known."""
    total = 0.0
    for terms, joules in energy_j.items():
        each = carbon_kg_per_j(rates.get(terms), scenario)
        if each is None:
            return None
        total += joules * each
    return total
