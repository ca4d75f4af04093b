"""What can be had: prices that may not win do not, and every one that is left out is told."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from gpuplan import api
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.money.market import InstanceShape, Offer, OfferFabric
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.scenario.terms import Choice
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.market.offers import has_room, market_of, networks_of, no_price
from gpuplan.studies.market.places import countries, fits, is_place_allowed
from gpuplan.studies.market.published import fresh_days, oldest_days

TODAY = date(2026, 11, 1)
TREE = {
    "version": 1,
    "name": "x",
    "workloads": [{"name": "w", "kind": "generic", "work": {"accelerators": 4}}],
}


def shape(n: float = 8, **rest) -> InstanceShape:
    given = {"accelerators": ("h100-sxm",), "ram_bytes": 1e12, "n_vcpu": 96}
    given |= {"network_bytes_per_s": None, **rest}
    if given["network_bytes_per_s"] is None:
        return InstanceShape(cloud="acme", name="m8", n_accelerators=n, **given)
    kind = given.pop("kind", "infiniband")
    fabric = OfferFabric(kind=kind, placement="cluster", source="docs")
    name = f"m8-{kind}-{given['network_bytes_per_s']:.0f}"
    return InstanceShape(cloud="acme", name=name, n_accelerators=n, fabric=fabric, **given)


def offer(usd: float, *, age_days: int = 10, spot: float | None = None, **rest) -> Offer:
    return Offer(
        shape=shape(**rest), region="eu-1", usd_per_h=usd, spot_usd_per_h=spot,
        price_date=TODAY - timedelta(days=age_days), source="price-list",
    )  # fmt: skip


def market(*offers: Offer, **tree):
    scenario = scenario_from_dict({**TREE, **tree}, name="s")
    return market_of(scenario, read_catalog(), offers=offers, today=TODAY)


def candidate(tp: int = 1) -> Candidate:
    return Candidate(
        workload="w", accelerator=AcceleratorId("h100-sxm"), precision="fp8",
        layout=ServingLayout(tp=tp),
    )  # fmt: skip


def test_the_cheapest_of_equal_machines_is_taken():
    found = market(offer(20.0), offer(16.0), offer(18.0))
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]


@pytest.mark.parametrize("usd", [0.0, float("nan"), -1.0])
def test_no_price_never_wins(usd):
    found = market(offer(usd), offer(16.0))
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]
    assert len(found.refused) == 1


def test_stale_prices_never_win():
    found = market(offer(1.0, age_days=400), offer(16.0))
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]
    assert found.refused[0].code == "stale"


def test_an_old_catalog_still_plans_and_says_so():
    found = market(offer(16.0, age_days=300))
    assert len(found.rates) == 1
    assert any(note.what == "age of the prices" for note in found.assumptions)


def test_a_very_old_one_does_not():
    found = market(offer(16.0, age_days=900))
    assert not found.ways
    assert "stale" in str(no_price(found))
    assert no_price(found).exit_code == 5


def test_ambiguous_and_bare_offers_are_left_out():
    found = market(
        offer(1.0, accelerators=("h100-sxm", "h100-pcie")), offer(1.0, basis="bid-floor"),
        offer(1.0, ram_bytes=16e9), offer(16.0),
    )  # fmt: skip
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]
    assert any("hosts" in note.what for note in found.assumptions)


def test_spot_and_commitments_are_shown_not_taken():
    found = market(offer(16.0, spot=4.0))
    assert {rate.purchase for rate in found.rates} == {"on_demand"}
    assert "spot" in {rate.purchase for rate in found.shown}


def test_advertised_discounts_win_only_where_they_are_asked_for():
    policy = {"purchases": ["on_demand", "reserved"]}
    found = market(of("aws", offer(16.0)), policy=policy)
    assert {rate.purchase for rate in found.rates} == {"on_demand"}
    assert "reserved" in {rate.purchase for rate in found.shown}
    elsewhere = market(of("verda", offer(16.0)), policy=policy)
    assert "reserved" not in {rate.purchase for rate in elsewhere.shown}
    asked = market(of("aws", offer(16.0)), policy={**policy, "indicative_prices_allowed": True})
    assert "reserved" in {rate.purchase for rate in asked.rates}


def of(cloud: str, given: Offer) -> Offer:
    return replace(given, shape=replace(given.shape, cloud=cloud))


@pytest.mark.parametrize("cheap", [of("vast", offer(9.0)), offer(9.0, age_days=185)])
def test_marketplaces_and_old_prices_are_shown_not_taken(cheap):
    found = market(cheap, offer(16.0))
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]
    [shown] = [rate for rate in found.shown if rate.purchase == "on_demand"]
    assert shown.price_usd_per_h.mid == 9.0
    assert shown.evidence.is_weak
    assert shown.evidence.note in ("marketplace price", "price of 2026-04-30 is 185 days old")


def test_indicative_prices_win_where_they_are_asked_for():
    cheap = of("vast", offer(9.0))
    for policy in ({"indicative_prices_allowed": True}, {"clouds": {"allowed": ["vast", "acme"]}}):
        found = market(cheap, offer(16.0), policy=policy)
        assert [rate.price_usd_per_h.mid for rate in found.rates] == [9.0]


def test_what_only_marketplaces_have_is_taken_where_it_is_named():
    only = of("shadeform", offer(9.0))
    found = market(only)
    assert not found.rates
    assert "policy.indicative_prices_allowed" in str(no_price(found))
    named = market(only, policy={"accelerators": {"allowed": ["H100"]}})
    [rate] = named.rates
    assert (rate.price_usd_per_h.mid, rate.evidence.is_weak) == (9.0, True)


def test_half_a_year_is_fresh_unless_all_are_older():
    assert fresh_days([offer(1.0, age_days=10)], TODAY) == 180
    assert fresh_days([offer(1.0, age_days=200)], TODAY) == 380


def test_own_offers_stand_for_the_market():
    own = {"offers": [{"accelerator": "H100", "usd_per_accelerator_h": 3.0}]}
    found = market(offer(1.0, n=1), prices=own)
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [3.0]
    assert any(note.what == "offers" for note in found.assumptions)


def test_clouds_and_regions_are_kept_to():
    other = replace(offer(1.0), shape=replace(shape(), cloud="other"))
    found = market(other, offer(16.0), policy={"clouds": {"forbidden": ["other"]}})
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]
    assert not market(offer(16.0), policy={"regions": {"allowed": ["mars"]}}).rates


def test_prices_count_whole_nodes():
    found = market(offer(16.0))
    assert found.price_usd_per_h(candidate(tp=2), 1) == 16.0
    assert found.price_usd_per_h(candidate(tp=2), 5) == 32.0
    assert found.price_usd_per_h(candidate(tp=16), 1) is None


def test_half_a_year_behind_the_newest_is_stale():
    fresh, old = offer(1.0, age_days=10), offer(1.0, age_days=100)
    assert oldest_days([fresh, old], TODAY) == 190
    assert oldest_days([offer(1.0, age_days=500)], TODAY) == 540


def test_regions_are_allowed_by_name_country_or_union():
    where = Choice(allowed=("EU",))
    inside = [key for key, country in countries().items() if country == "DEU"]
    cloud, region = inside[0].split(":", 1)
    german = replace(offer(10.0), region=region, shape=replace(shape(), cloud=cloud))
    assert is_place_allowed(german, where)
    assert is_place_allowed(german, Choice(allowed=("DEU",)))
    assert not is_place_allowed(german, Choice(forbidden=(region,)))
    assert not is_place_allowed(offer(10.0), where)  # a region that nobody describes
    assert is_place_allowed(offer(10.0), Choice())


@pytest.mark.parametrize(("ram_bytes", "has"), [(None, True), (2e11, True), (1e11, False)])
def test_hosts_need_a_quarter_of_their_accelerators_memory(ram_bytes, has):
    """Eight H100 of 80 GB are 640 GB: 160 GB of host memory are enough."""
    assert has_room(offer(10.0, ram_bytes=ram_bytes), read_catalog()) is has


def test_a_price_holds_for_whole_nodes_only():
    found = market(offer(16.0))
    assert found.price_usd_per_h(candidate(tp=4), 2) == 16.0
    assert found.price_usd_per_h(candidate(tp=4), 3) == 32.0
    other = replace(candidate(), accelerator=AcceleratorId("l4"))
    assert found.price_usd_per_h(other, 1) is None


def staged(network_bytes_per_s: float | None) -> Candidate:
    layout = ServingLayout(tp=8, pp=2, network_bytes_per_s=network_bytes_per_s)
    return replace(candidate(), layout=layout, engine=EngineChoice(name="vllm", version="0.15"))


def test_replicas_of_several_servers_need_a_stated_network():
    plain, joined = offer(16.0), offer(24.0, network_bytes_per_s=400e9)
    assert market(plain).price_usd_per_h(staged(None), 1) is None
    assert market(plain).price_usd_per_h(staged(50e9), 1) is None
    both = market(plain, joined)
    assert networks_of(both) == {"h100-sxm": (400e9,)}
    assert both.price_usd_per_h(staged(50e9), 2) == 4 * 24.0
    assert both.price_usd_per_h(staged(500e9), 1) is None
    # Inside one server the network is not worth its price.
    assert both.price_usd_per_h(candidate(tp=8), 1) == 16.0
    assert [rate.terms.is_for_spanning for rate in both.rates] == [False, True]


def test_a_node_that_states_its_network_at_a_lower_price_serves_all():
    found = market(offer(16.0, network_bytes_per_s=400e9), offer(24.0))
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0]
    assert found.price_usd_per_h(staged(400e9), 1) == 32.0
    assert found.price_usd_per_h(candidate(tp=8), 1) == 16.0


def test_dearer_servers_stay_only_where_their_network_is_better():
    slow = offer(20.0, network_bytes_per_s=100e9, kind="tcp")
    fast, faster = offer(24.0, network_bytes_per_s=100e9), offer(30.0, network_bytes_per_s=400e9)
    dear = offer(40.0, network_bytes_per_s=400e9, kind="tcp")
    found = market(offer(16.0), slow, fast, faster, dear)
    assert [rate.price_usd_per_h.mid for rate in found.rates] == [16.0, 20.0, 24.0, 30.0]
    assert [rate.terms.is_for_spanning for rate in found.rates] == [False, True, True, True]
    assert networks_of(found) == {"h100-sxm": (100e9, 400e9)}


@pytest.mark.parametrize(
    ("choice", "is_allowed"),
    [
        (Choice(), True),
        (Choice(allowed=("a",)), True),
        (Choice(allowed=("c",)), False),
        (Choice(forbidden=("b",)), False),
        (Choice(allowed=("a",), forbidden=("b",)), False),  # what is forbidden wins
    ],
)
def test_any_name_may_allow_and_any_may_forbid(choice, is_allowed):
    assert fits(choice, "a", "b") is is_allowed


def test_equal_prices_are_chosen_by_name_whatever_their_order():
    first, second = offer(16.0), replace(offer(16.0), region="eu-0")
    assert market(first, second).rates == market(second, first).rates


def test_sizes_of_machines_do_not_compete():
    found = market(offer(16.0), offer(2.5, n=1, ram_bytes=1e11))
    assert sorted(rate.price_usd_per_h.mid for rate in found.rates) == [2.5, 16.0]


def test_nothing_at_all_is_an_error_that_names_the_remedy():
    error = no_price(market())
    assert "none is known" in str(error)
    assert "gpuplan catalog update" in str(error)


def cpu_plan(n_vcpus, **offer):
    work = {
        "name": "docs",
        "kind": "batch_inference",
        "model": "BAAI/bge-small-en-v1.5",
        "request": {"input_tokens": 128, "output_tokens": 0},
        "batch": {"docs_per_day": 1e8, "deadline_h": 24},
    }
    box = {"accelerator": "cpu-xeon-8480", "name": "box", "usd_per_node_h": 1.0, **offer}
    tree = {
        "version": 1,
        "name": "t",
        "workloads": [work],
        "prices": {"offers": [box | {"vcpus_per_node": n_vcpus}]},
        "policy": {"accelerators": {"allowed": ["cpu-xeon-8480"]}},
    }
    return api.plan(tree, n_samples=0).plan


def test_a_node_with_few_vcpus_carries_its_part_of_a_cpu():
    whole, small = cpu_plan(112), cpu_plan(8)
    assert small.cost_usd_per_month.value == pytest.approx(14 * whole.cost_usd_per_month.value)
    [line] = small.pools[0].purchases
    assert line.offer == "14 x box"
    twice = cpu_plan(224)
    assert twice.cost_usd_per_month.value <= whole.cost_usd_per_month.value
