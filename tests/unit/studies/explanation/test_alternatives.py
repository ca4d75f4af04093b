"""Other ways to the same work: sums by hand, and mixes against trying everything."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

from fakes.fleets import curve, demand, rate, sized, sizing
from fakes.selection import horizon
from gpuplan.domain.columns import ints
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.money.rates import PriceEvidence, RateTerms
from gpuplan.domain.plan.selection import (
    BillLine,
    FleetOption,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.terms import TokenPrice
from gpuplan.domain.scenario.workload import Serving
from gpuplan.selection.choose import select
from gpuplan.studies.explanation.alternatives import (
    mixed_fleet,
    other_purchase,
    shown_offers,
    token_services,
    trade_offs,
)
from gpuplan.studies.explanation.comparison import FleetComparison
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import FleetTable
from gpuplan.units import YEAR

KINDS = {"small": (3.0, 1.0), "large": (10.0, 2.9)}  # requests/s of a replica, USD an hour


def problem(n_hours=730.0, **rest):
    pools = tuple(
        NodePool(name=f"{kind} x1", accelerator=kind, n_accelerators_per_node=1, **rest)
        for kind in KINDS
    )
    terms = tuple(
        NodeTerms(name=kind, pool=f"{kind} x1", purchase="on_demand", usd_per_node_h=usd)
        for kind, (_, usd) in KINDS.items()
    )
    return SelectionProblem(horizon=horizon(hours=(n_hours,)), pools=pools, terms=terms)


def compared(peak, *, n_spare=0):
    """The cheapest kind of fleet first, as the planner would have it."""
    load = replace(demand(peak), workload="w")
    curves = [
        curve(kind, rate_, usd, name=f"c on {kind} x1, on_demand", n_spare=n_spare)
        for kind, (rate_, usd) in KINDS.items()
    ]
    curves.sort(key=lambda each: float(each.usd_per_h(load.hours.load_frac * peak, 1.0)))
    return FleetComparison(replace(sizing(peak), demand=load), sized(1), curves, None, None)


@pytest.mark.parametrize("peak", [5.0, 11.0, 12.5, 23.0, 33.0])
def test_a_mix_is_offered_where_trying_everything_finds_it_cheaper(peak):
    fleets = compared(peak)
    tried = {
        (small, large): small * 1.0 + large * 2.9
        for small, large in product(range(15), range(5))
        if 3.0 * small + 10.0 * large >= peak
    }
    best = min(tried, key=lambda n: tried[n])
    found = [*mixed_fleet(problem(), fleets)]
    is_cheaper = tried[best] < fleets.chosen_usd / 730 * 0.995
    assert bool(found) == (is_cheaper and min(best) > 0)
    if found:
        assert found[0].usd_per_month == pytest.approx(tried[best] * 730)
        assert found[0].fleet == f"{best[0]} x small + {best[1]} x large"


def test_a_mix_names_accelerators_not_replicas():
    """Replicas of two accelerators each: twice as many of them."""
    fleets = compared(12.5)
    [alone] = mixed_fleet(problem(), fleets)
    pairs = [
        replace(
            each,
            candidate=replace(each.candidate, layout=ServingLayout(tp=2)),
            n_per_node=2,
        )
        for each in fleets.curves
    ]
    pools = tuple(replace(pool, n_accelerators_per_node=2) for pool in problem().pools)
    [found] = mixed_fleet(replace(problem(), pools=pools), replace(fleets, curves=pairs))
    assert alone.fleet == "1 x small + 1 x large"
    assert found.fleet == "2 x small + 2 x large"
    assert found.usd_per_month == alone.usd_per_month


def test_a_mix_survives_the_loss_of_any_one_replica():
    [found] = mixed_fleet(problem(), compared(46.0, n_spare=1))
    counts = {part.split(" x ")[1]: int(part.split()[0]) for part in found.fleet.split(" + ")}
    carried = sum(KINDS[kind][0] * n for kind, n in counts.items())
    assert counts == {"small": 2, "large": 5}
    assert all(carried - KINDS[kind][0] >= 46.0 for kind in counts)


def test_one_kind_is_no_mix():
    fleets = compared(11.0)
    assert [*mixed_fleet(problem(), replace(fleets, curves=fleets.curves[:1]))] == []


class Chat(Serving):
    """A service of which only the prefix hit rate is asked."""

    def __init__(self, hit):
        request = SimpleNamespace(prefix_hit_frac=exactly(hit))
        object.__setattr__(self, "request", request)


def test_tokens_are_billed_by_kind_over_a_month():
    price = TokenPrice(
        name="api",
        input_usd_per_token=2e-6,
        cached_usd_per_token=5e-7,
        output_usd_per_token=8e-6,
    )
    scenario = SimpleNamespace(
        workload=lambda _: SimpleNamespace(work=Chat(0.25)),
        prices=SimpleNamespace(tokens=(price,)),
    )
    load = demand(4.0, mean_requests_per_s=2.0, input_tokens=1000.0, output_tokens=200.0)
    [found] = token_services(scenario, load, chosen_usd=5_000.0)
    n = 2.0 * 730 * 3600
    usd = n * (750 * 2e-6 + 250 * 5e-7 + 200 * 8e-6)
    assert found.usd_per_month == pytest.approx(usd, abs=0.02)
    assert found.extra_usd_per_month == pytest.approx(usd - 5_000.0, abs=0.02)
    assert found.kind == "API tokens"


def choice(given, *, options, **rest):
    whole = replace(given, options=options)
    found = select(whole)
    table = FleetTable(problem=whole, by_name={}, rates={})
    return Choice(table=table, selection=found, **rest)


def option(kind, n, **rest):
    return FleetOption(workload="w", name=kind, pool=f"{kind} x1", need=ints([[[n]]]), **rest)


def test_less_energy_for_more_money_is_offered_with_what_it_saves():
    pools = tuple(
        replace(pool, mean_w=watts)
        for pool, watts in zip(problem().pools, (1000.0, 600.0), strict=True)
    )
    given = replace(problem(), pools=pools)
    # Three small nodes at $1 draw 3 kW; two large ones at $2.9 draw 1.2 kW.
    [found] = trade_offs(choice(given, options=(option("small", 3), option("large", 2))))
    assert found.fleet == "large"
    assert found.extra_usd_per_month == pytest.approx((2 * 2.9 - 3 * 1.0) * 730)
    assert found.remark == f"saves {(3.0 - 1.2) * 730:,.0f} kWh/month"


def test_an_unknown_draw_offers_no_trade():
    mine = choice(problem(), options=(option("small", 3), option("large", 2)))
    assert [*trade_offs(mine)] == []


def market(*shown):
    return SimpleNamespace(shown=shown)


def reserved(usd):
    return rate(
        "small",
        usd,
        purchase="reserved",
        terms=RateTerms(term_s=3 * YEAR),
        evidence=PriceEvidence(source="list", is_weak=False, note="list price"),
    )


def marketplace(usd):
    note = "marketplace price"
    evidence = PriceEvidence(source="list", is_weak=True, note=note)
    return rate("small", usd, evidence=evidence)


def shown(mine, *rates):
    periods = SimpleNamespace(length_s=[730 * 3600.0], start_s=[0.0])
    sizings = [SimpleNamespace(demand=SimpleNamespace(periods=periods))]
    group = SimpleNamespace(choice=mine, sizings=sizings)
    return [*shown_offers(market(*rates), group, mine.selection.chosen[0])]


def test_a_committed_use_discount_is_shown_where_it_is_cheaper():
    mine = choice(problem(), options=(option("small", 3, n_reserve=1),))
    assert isinstance(mine.selection.bill[0], BillLine)
    [found] = shown(mine, reserved(0.6), reserved(0.7))
    assert found.kind == "reserved"
    assert found.usd_per_month == pytest.approx(4 * 0.6 * 730)
    assert found.extra_usd_per_month == pytest.approx(4 * (0.6 - 1.0) * 730)
    assert "3 years, list price" in found.remark
    assert shown(mine, reserved(1.1)) == shown(mine) == []
    advertised = reserved(0.6)
    advertised = replace(advertised, evidence=replace(advertised.evidence, is_weak=True))
    [marked] = shown(mine, advertised)
    assert "advertised, no price list backs it" in marked.remark
    [firm] = shown(mine, advertised, reserved(0.7))  # a price list is shown before what is cheaper
    assert firm.usd_per_month == pytest.approx(4 * 0.7 * 730)


def test_a_marketplace_price_is_shown_beside_the_plan_and_marked():
    mine = choice(problem(), options=(option("small", 3, n_reserve=1),))
    [found] = shown(mine, marketplace(0.9))
    assert (found.kind, found.fleet) == ("indicative price", "4 x small")
    assert found.usd_per_month == pytest.approx(4 * 0.9 * 730)
    assert "marketplace price" in found.remark
    assert shown(mine, marketplace(1.1)) == []


def bought_or_rented(upfront_usd, *, has_rent=True):
    """Three small nodes by the hour, or two large ones that are bought and cost $1/h to run."""
    small, large = problem().terms
    large = replace(large, purchase="owned", usd_per_node_h=1.0, upfront_usd=upfront_usd)
    given = replace(problem(), terms=(small, large) if has_rent else (large,))
    return choice(given, options=(option("small", 3), option("large", 2)))


@pytest.mark.parametrize(
    ("upfront_usd", "kind", "usd"),
    [
        (100.0, "rented instead", 3 * 1.0 * 730),
        (5000.0, "bought instead", 2 * (1.0 * 730 + 5000)),
    ],
)
def test_the_other_way_to_pay_is_told_where_both_are_allowed(upfront_usd, kind, usd):
    mine = bought_or_rented(upfront_usd)
    [found] = other_purchase(mine)
    assert found.kind == kind
    assert found.usd_per_month == pytest.approx(usd)
    assert found.extra_usd_per_month == pytest.approx(usd - mine.usd_per_month)
    assert found.extra_usd_per_month > 0


def test_one_way_to_pay_has_no_other():
    assert [*other_purchase(bought_or_rented(100.0, has_rent=False))] == []
    mine = choice(problem(), options=(option("small", 3),))
    assert [*other_purchase(mine)] == []
