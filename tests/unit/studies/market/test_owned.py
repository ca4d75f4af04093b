"""Nodes of one's own: where figures come from, and arithmetic of worth and running costs."""

from dataclasses import replace

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.regions import INDUSTRY_PUE_RATIO
from gpuplan.domain.money.rates import Capital
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.site import NodeNetwork, OwnedNodes, Site
from gpuplan.domain.scenario.terms import HardwarePrice
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.market.owned import (
    bought_nodes,
    lead_time_s,
    site_power,
    staff_usd_per_h,
    standing_nodes,
    worth_by_age,
)
from gpuplan.studies.power.carbon import ELECTRICITY_USD_PER_J
from gpuplan.units import DAY, KWH, MONTH, YEAR

CATALOG = read_catalog()
SCENARIO = scenario_from_dict(
    {
        "version": 1,
        "name": "x",
        "workloads": [{"name": "w", "kind": "generic", "work": {"accelerators": 4}}],
    },
    name="s",
)


def with_site(**given):
    return replace(SCENARIO, site=Site(**given))


def test_nothing_given_is_assumed_and_said():
    place = site_power(SCENARIO)
    assert place.pue_ratio == INDUSTRY_PUE_RATIO
    assert place.electricity_usd_per_j == ELECTRICITY_USD_PER_J
    assert {note.change for note in place.assumptions} == {
        "site.pue",
        "site.electricity_usd_per_kwh",
    }


def test_the_sites_own_figures_win_over_its_region():
    price = exactly(0.05 / KWH)
    place = site_power(with_site(pue_ratio=1.1, electricity_usd_per_j=price))
    assert (place.pue_ratio, place.electricity_usd_per_j) == (1.1, price)
    assert place.assumptions == ()


def test_a_standing_node_costs_what_running_it_costs():
    """One node of 10 kW at most: power, PUE 1.2 and 0.10 USD/kWh, nothing else."""
    site = Site(pue_ratio=1.2, electricity_usd_per_j=exactly(0.10 / KWH))
    nodes = OwnedNodes(
        accelerator="h100-sxm", n_nodes=3, n_accelerators_per_node=8, node_max_w=10_000.0
    )
    scenario = replace(SCENARIO, site=site, owned=(nodes,))
    [found] = standing_nodes(scenario, CATALOG, site_power(scenario))
    # Busy nodes draw 70 % of their limit on average.
    assert found.rate.price_usd_per_h.mid == pytest.approx(0.7 * 10 * 1.2 * 0.10)
    assert (found.n_nodes, found.rate.terms.n_nodes_max) == (3, 3)
    assert found.rate.id == "existing/your h100-sxm x8"


def test_nothing_is_bought_unless_the_policy_allows_it():
    price = HardwarePrice(accelerator="h100-sxm", node_usd=exactly(250_000.0))
    scenario = replace(SCENARIO, prices=replace(SCENARIO.prices, hardware=(price,)))
    policy = replace(scenario.policy, purchases=("on_demand",))
    place = site_power(scenario)
    assert list(bought_nodes(replace(scenario, policy=policy), CATALOG, place)) == []
    owned = replace(scenario, policy=replace(scenario.policy, purchases=("owned",)))
    [rate] = bought_nodes(owned, CATALOG, place)
    assert (rate.purchase, rate.node.n_accelerators) == ("owned", 8)
    # Over four years the outlay alone is 7.1 USD an hour.
    assert rate.price_usd_per_h.mid > 250_000.0 * 0.9 / (4 * 8760)
    assert {"budget.depreciation_years", "budget.residual_frac"} <= {
        note.change for note in rate.assumptions
    }


def test_lead_times_are_the_offers_own_or_the_scenarios():
    given = HardwarePrice(accelerator="h100-sxm", lead_time_s=exactly(30 * DAY))
    assert lead_time_s(SCENARIO, given) == 30 * DAY
    growing = replace(SCENARIO, growth=replace(SCENARIO.growth, lead_time_s=exactly(YEAR)))
    assert lead_time_s(growing, None) == YEAR
    assert lead_time_s(SCENARIO, None) == 0.0


def test_a_region_gives_what_the_site_leaves_open():
    given = site_power(with_site(region="aws:eu-central-1", pue_ratio=1.05))
    assert given.pue_ratio == 1.05
    assert given.electricity_usd_per_j.mid > 0
    assert "site.pue" not in {note.change for note in given.assumptions}


def test_staff_is_paid_by_the_site_and_by_no_node():
    """87,600 USD a year are 10 USD an hour, however many nodes stand there."""
    prices = replace(SCENARIO.prices, staff_usd_per_year=87_600.0)
    site = Site(pue_ratio=1.0, electricity_usd_per_j=exactly(0.0))
    nodes = OwnedNodes(accelerator="h100-sxm", n_nodes=3, n_accelerators_per_node=8)
    scenario = replace(SCENARIO, prices=prices, site=site, owned=(nodes,))
    [found] = standing_nodes(scenario, CATALOG, site_power(scenario))
    assert found.rate.price_usd_per_h.mid == 0.0
    assert staff_usd_per_h(scenario) == pytest.approx(10.0)


def test_what_is_not_sold_with_a_node_is_not_got_back():
    """Bought for 1,000 and 200 of freight, residual 10 %: sold at half its life for 550."""
    capital = Capital(
        hardware_usd=exactly(1000.0), outlay_usd=exactly(1200.0), residual_frac=exactly(0.1),
        life_s=12 * MONTH, discount_frac_per_year=0.1,
    )  # fmt: skip
    worth = worth_by_age(capital, MONTH, 13)
    assert worth[0] == pytest.approx(1000.0)
    assert worth[6] == pytest.approx(550.0)
    assert worth[12] == worth[13] == pytest.approx(100.0)


def test_own_nodes_are_joined_by_their_nics_or_the_sites_network():
    nodes = OwnedNodes(accelerator="h100-sxm", n_nodes=2, n_accelerators_per_node=8)
    nics = replace(nodes, n_nics=8, nic_bytes_per_s=50e9)
    network = NodeNetwork(
        kind="infiniband", n_nics_per_node=4, nic_bytes_per_s=25e9, oversubscription_ratio=2.0
    )

    def joined(site: Site | None, owned: OwnedNodes) -> float | None:
        scenario = replace(SCENARIO, site=site, owned=(owned,))
        [found] = standing_nodes(scenario, CATALOG, site_power(scenario))
        return found.rate.node.network_bytes_per_s

    assert joined(None, nodes) is None
    assert joined(None, nics) == 400e9
    assert joined(Site(network=network), nodes) == 50e9
    assert joined(Site(network=network), nics) == 400e9


def test_where_all_must_be_bought_street_prices_stand_in():
    only = replace(SCENARIO.policy, purchases=("owned",))
    scenario = replace(SCENARIO, policy=only)
    rates = list(bought_nodes(scenario, CATALOG, site_power(scenario)))
    named = {rate.node.accelerator for rate in rates}
    assert "h100-sxm" in named
    [h100] = [rate for rate in rates if rate.node.accelerator == "h100-sxm"]
    street = CATALOG.node_price("h100-sxm", 8)
    assert h100.evidence.source == street.source
    assert any("purchase price" in note.what for note in h100.assumptions)


def test_where_renting_is_allowed_only_known_prices_are_bought():
    assert not list(bought_nodes(SCENARIO, CATALOG, site_power(SCENARIO)))


def test_forbidden_boards_are_not_for_sale():
    choice = replace(SCENARIO.policy.accelerators, allowed=("H100",))
    policy = replace(SCENARIO.policy, purchases=("owned",), accelerators=choice)
    scenario = replace(SCENARIO, policy=policy)
    rates = bought_nodes(scenario, CATALOG, site_power(scenario))
    assert {rate.node.accelerator for rate in rates} == {"h100-sxm"}
