"""Every offer becomes a price with evidence or a refusal with a reason."""

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from math import inf, nan

import pytest

from gpuplan.catalog.offers import read_discounts, read_offers
from gpuplan.cost.rates import catalog_rates, effective_spot_usd_per_h, user_rates
from gpuplan.domain.money import market
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario import terms
from gpuplan.units import DAY, HOUR

TODAY = date(2026, 11, 15)
SHAPE = market.InstanceShape(
    cloud="aws",
    name="p5.48xlarge",
    accelerators=("h100-sxm",),
    n_accelerators=8,
    n_vcpu=192,
    ram_bytes=2e12,
    network_bytes_per_s=4e11,
)
OFFER = market.Offer(
    shape=SHAPE,
    region="us-east-1",
    usd_per_h=55.04,
    spot_usd_per_h=20.0,
    price_date=TODAY - timedelta(days=30),
    source="skypilot-catalog",
)
DISCOUNT = market.Discount(
    provider="aws",
    instrument="Plan",
    term="1yr",
    low_frac=0.3,
    high_frac=0.45,
    applies="",
    source="yobitel",
    is_weak=True,
)


def rate_of(offer, purchase, **more):
    found = [r for r in catalog_rates([offer], TODAY, **more).accepted if r.purchase == purchase]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"usd_per_h": 0.0}, "zero"),
        ({"usd_per_h": -1.0}, "zero"),
        ({"usd_per_h": nan}, "not-finite"),
        ({"usd_per_h": inf}, "not-finite"),
        ({"price_date": TODAY - timedelta(days=541)}, "stale"),
        ({"shape": replace(SHAPE, accelerators=("h100-sxm", "h100-pcie"))}, "ambiguous"),
        ({"shape": replace(SHAPE, basis="bid-floor")}, "bid-floor"),
        ({"shape": replace(SHAPE, basis="accelerator-only")}, "accelerator-only"),
        ({"shape": replace(SHAPE, n_accelerators=0.5)}, "share-of-card"),
    ],
)
def test_what_is_no_price_is_refused_with_its_reason(change, code):
    """Trap 40: $0 and NaN never win."""
    rates = catalog_rates([replace(OFFER, **change)], TODAY, discounts=[DISCOUNT])
    assert rates.accepted == ()
    assert [refusal.code for refusal in rates.refused] == [code]
    assert rates.refused[0].what
    assert rates.refused[0].fix


@pytest.mark.parametrize(("spot", "code"), [(0.0, "zero"), (nan, "not-finite")])
def test_a_broken_spot_price_leaves_the_on_demand_price(spot, code):
    rates = catalog_rates([replace(OFFER, spot_usd_per_h=spot)], TODAY)
    assert [rate.purchase for rate in rates.accepted] == ["on_demand"]
    assert [(r.purchase, r.code) for r in rates.refused] == [("spot", code)]


def test_spot_above_on_demand_is_refused():
    rates = catalog_rates([replace(OFFER, spot_usd_per_h=60.0)], TODAY)
    assert [refusal.code for refusal in rates.refused] == ["spot-above-on-demand"]


def test_ages_at_the_edges():
    at_limit = replace(OFFER, price_date=TODAY - timedelta(days=540))
    assert rate_of(at_limit, "on_demand").evidence.is_weak
    fresh = replace(OFFER, price_date=TODAY - timedelta(days=180))
    assert not rate_of(fresh, "on_demand").evidence.is_weak


def test_a_price_carries_source_day_and_parts():
    rate = rate_of(OFFER, "on_demand")
    assert rate.price_usd_per_h == exactly(55.04)
    assert rate.evidence.source == "skypilot-catalog"
    assert rate.evidence.price_date == OFFER.price_date
    assert sum(part.usd_per_h.mid for part in rate.parts) == rate.price_usd_per_h.mid
    assert rate.usd_per_accelerator_h == exactly(55.04 / 8)


def test_whole_machines_are_rented():
    """Trap 36: the unit is the machine with all eight accelerators."""
    assert rate_of(OFFER, "on_demand").node.n_accelerators == 8


def test_reserved_is_a_range_and_an_assumption():
    rate = rate_of(OFFER, "reserved", discounts=[DISCOUNT])
    price = rate.price_usd_per_h
    assert price.low == pytest.approx(55.04 * 0.55)
    assert price.high == pytest.approx(55.04 * 0.70)
    assert price.mid == pytest.approx(55.04 * 0.625)
    assert rate.terms.term_s == 365 * DAY
    assert rate.evidence.is_weak
    assert "30%" in rate.assumptions[0].value


def test_reserved_and_owned_are_paid_whether_used_or_not():
    """Trap 39: a reservation is not free at the margin."""
    assert rate_of(OFFER, "reserved", discounts=[DISCOUNT]).is_committed
    assert not rate_of(OFFER, "on_demand").is_committed
    assert not rate_of(OFFER, "spot").is_committed


def test_a_term_that_is_none_is_refused():
    unclear = replace(DISCOUNT, term="up to", high_frac=0.72)
    rates = catalog_rates([OFFER], TODAY, discounts=[unclear], purchases=["reserved"])
    assert rates.accepted == ()
    assert rates.refused[0].code == "unclear-term"


def test_what_others_take_off_says_nothing_of_this_cloud():
    general = [replace(DISCOUNT, provider="any", term=term) for term in ("1yr", "3yr")]
    rates = catalog_rates([OFFER], TODAY, discounts=[DISCOUNT, *general], purchases=["reserved"])
    assert [rate.terms.term_s for rate in rates.accepted] == [365 * DAY]


def test_spot_is_at_worst_the_on_demand_price():
    rate = rate_of(OFFER, "spot")
    assert rate.price_usd_per_h == Range(low=20.0, mid=20.0, high=55.04)


def effective(lost_s, per_s, n=1):
    return effective_spot_usd_per_h(
        Range(low=18.0, mid=20.0, high=55.0),
        interruptions_per_s=per_s,
        lost_s_per_interruption=lost_s,
        n_nodes_together=n,
    )


def test_interruptions_make_the_spot_hour_more_expensive():
    """Trap 38: every interruption costs lost work and a restart."""
    found = effective(0.5 * HOUR, 1 / (5 * HOUR))
    assert (found.low, found.mid, found.high) == pytest.approx((20.0, 20.0 / 0.9, 55.0 / 0.9))
    assert effective(HOUR, 0.0).mid == 20.0
    assert effective(2 * HOUR, 1 / HOUR) is None


def test_nodes_of_one_replica_are_interrupted_together():
    """Trap 38: a replica over four nodes on spot loses four times as often."""
    assert effective(HOUR, 1 / (10 * HOUR)).mid == pytest.approx(20 / 0.9)
    assert effective(HOUR, 1 / (10 * HOUR), n=4).mid == pytest.approx(20 / 0.6)


def user_offer(price, purchase="on_demand"):
    return terms.StatedOffer(
        name="H100 at home",
        accelerator="h100-sxm",
        price_usd_per_h=price,
        n_accelerators_per_node=1,
        purchase=purchase,
        interruptions_per_s=0.0,
    )


def test_the_users_prices_stand_as_given():
    rates = user_rates([user_offer(exactly(2.95)), user_offer(exactly(1.45), "owned")])
    assert [rate.price_usd_per_h.mid for rate in rates.accepted] == [2.95, 1.45]
    assert {rate.evidence.source for rate in rates.accepted} == {"user"}
    assert len({rate.id for rate in rates.accepted}) == 2


@pytest.mark.parametrize("usd", [0.0, nan, -2.0])
def test_the_users_nonsense_is_refused(usd):
    rates = user_rates([user_offer(exactly(usd))])
    assert rates.accepted == ()
    assert "prices.offers[0]" in rates.refused[0].fix


def test_the_packaged_market_is_sorted_out_whole():
    offers = read_offers()
    rates = catalog_rates(offers, TODAY, discounts=read_discounts(), purchases=["on_demand"])
    assert len(rates.accepted) + len(rates.refused) == len(offers)
    codes = Counter(refusal.code for refusal in rates.refused)
    assert codes["ambiguous"] > 50
    assert codes["stale"] > 50
    assert all(rate.price_usd_per_h.low > 0 for rate in rates.accepted)
    sold = [rate for rate in rates.accepted if rate.node.cloud == "aws"]
    assert len({rate.id for rate in sold}) == len(sold)
