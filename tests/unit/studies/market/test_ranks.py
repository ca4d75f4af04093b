"""Servers for training: sizes, networks that are stated or assumed, prices by the accelerator."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.fakes.fleets import rate

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.money.rates import PriceEvidence
from gpuplan.domain.scenario.site import NodeNetwork, Site
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.market.offers import Market
from gpuplan.studies.market.ranks import (
    NO_FABRIC,
    joint_market,
    market_for_ranks,
    rented_servers,
)
from gpuplan.units import GBIT

CATALOG = read_catalog()
SCENARIO = read_scenario(Path(__file__).parents[4] / "examples" / "large-training.yaml")
LISTED = PriceEvidence(source="list")


def market(*rates):
    return Market(rates=rates, shown=(), refused=(), assumptions=(), porting_usd={})


def listed(kind, usd, n, *, network=None, fabric_kind=""):
    found = rate(kind, usd, n=n, evidence=LISTED)
    node = replace(found.node, network_bytes_per_s=network, fabric_kind=fabric_kind)
    return replace(found, node=node)


def fabrics(found):
    return {(r.node.n_accelerators, r.node.fabric, r.node.fabric_source) for r in found.rates}


@pytest.mark.parametrize(("kind", "word"), [("efa", "EFA"), ("roce", "RoCE"), ("tcp", "TCP")])
def test_what_an_offer_states_is_used_and_what_states_nothing_stays_alone(kind, word):
    stated = listed("h100-sxm", 60.0, 8, network=3200 * GBIT, fabric_kind=kind)
    silent = listed("h100-sxm", 24.0, 8)
    found = market_for_ranks(market(silent, stated), SCENARIO, CATALOG)
    assert fabrics(found) == {
        (8, f"3200 Gbit/s {word} per node", "stated"),
        (8, NO_FABRIC, "none"),
    }
    most = {server.node.fabric_source: server.n_most for server in rented_servers(found)}
    assert most == {"stated": None, "none": 1}


def test_the_sites_network_joins_the_users_servers_and_no_clouds():
    network = NodeNetwork(
        kind="infiniband", n_nics_per_node=4, nic_bytes_per_s=100 * GBIT, oversubscription_ratio=2.0
    )
    scenario = replace(SCENARIO, site=Site(network=network))
    found = market_for_ranks(market(rate("h100-sxm", 24.0, n=8)), scenario, CATALOG)
    assert fabrics(found) == {(8, "200 Gbit/s InfiniBand per node", "site")}
    clouds = market_for_ranks(market(listed("h100-sxm", 24.0, 8)), scenario, CATALOG)
    assert fabrics(clouds) == {(8, NO_FABRIC, "none")}


def test_a_price_by_the_accelerator_is_that_of_whole_servers_and_of_parts_of_one():
    mine = replace(rate("h100-sxm", 2.0, n=1), id="user/0/mine/on_demand")
    found = market_for_ranks(market(mine), SCENARIO, CATALOG)
    prices = {r.node.n_accelerators: r.price_usd_per_h.mid for r in found.rates}
    assert prices == {1: 2.0, 2: 4.0, 4: 8.0, 8: 16.0}
    most = {r.node.n_accelerators: r.terms.n_nodes_max for r in found.rates}
    assert most == {1: 1, 2: 1, 4: 1, 8: None}
    assert all(sum(p.usd_per_h.mid for p in r.parts) == r.price_usd_per_h.mid for r in found.rates)
    assert {r.node.fabric for r in found.rates if r.node.n_accelerators == 8} == {
        "3200 Gbit/s InfiniBand per node"
    }
    assert len({r.id for r in found.rates}) == 4


def test_quotas_of_single_accelerators_become_whole_servers():
    limited = replace(rate("h100-sxm", 2.0, n=1), id="user/0/mine/on_demand")
    limited = replace(limited, terms=replace(limited.terms, n_nodes_max=20))
    found = market_for_ranks(market(limited), SCENARIO, CATALOG)
    assert {r.node.n_accelerators: r.terms.n_nodes_max for r in found.rates}[8] == 2


def test_odd_servers_are_left_unless_they_are_the_users():
    assert market_for_ranks(market(listed("h100-sxm", 9.0, 3)), SCENARIO, CATALOG).rates == ()
    mine = rate("h100-sxm", 9.0, n=3)
    assert len(market_for_ranks(market(mine), SCENARIO, CATALOG).rates) == 1


def test_only_the_largest_servers_are_joined():
    joined = {"network": 400 * GBIT, "fabric_kind": "roce"}
    small, large = listed("h100-sxm", 3.0, 1, **joined), listed("h100-sxm", 24.8, 8, **joined)
    found = rented_servers(market_for_ranks(market(large, small), SCENARIO, CATALOG))
    assert [(s.node.n_accelerators, s.n_most) for s in found] == [(1, 1), (8, None)]
    assert found[1].usd_per_h == pytest.approx(24.8)


def test_equal_servers_are_one_kind_at_the_least_price():
    joined = {"network": 400 * GBIT, "fabric_kind": "roce"}
    dear, cheap = listed("h100-sxm", 30.0, 8, **joined), listed("h100-sxm", 24.0, 8, **joined)
    cheap = replace(cheap, id="other", terms=replace(cheap.terms, n_nodes_max=2))
    [found] = rented_servers(market_for_ranks(market(dear, cheap), SCENARIO, CATALOG))
    assert found.usd_per_h == 24.0
    assert found.n_most is None


def test_both_markets_side_by_side_keep_their_names():
    plain = market(listed("h100-sxm", 24.0, 8))
    joint = joint_market(plain, market_for_ranks(plain, SCENARIO, CATALOG))
    assert len({r.id for r in joint.rates}) == len(joint.rates) == 2
    assert [bool(r.node.fabric) for r in joint.rates] == [False, True]
