"""Fleets at prices that a plan may not use: whole nodes, every hour, the cheapest of each."""

from dataclasses import replace

import pytest

from fakes.fleets import rate
from gpuplan.domain.money.rates import PriceEvidence, RateTerms
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.domain.plan.comparison import ComparisonRow, RowEvidence, RunFigures
from gpuplan.domain.plan.packing import whole_nodes
from gpuplan.studies.market.offers import Market
from gpuplan.studies.market.purchases import INDICATIVE, other_purchases

WEAK = PriceEvidence(source="list", is_weak=True, note="marketplace")


def row(tp=2, n=3, *, share="", run=None, has_fleet=True):
    layout = PoolLayout(tp=tp, pp=1, share=share) if has_fleet else None
    evidence = RowEvidence(is_eligible=True, power_w=1.0, tier="fitted", price_source="x", run=run)
    return ComparisonRow(
        workload="chat",
        accelerator="h100-sxm",
        precision="fp8",
        layout=layout,
        n_replicas=n,
        n_accelerators=tp * n,
        usd_per_month=1000.0,
        usd_per_million_tokens=1.0,
        latency={},
        probability_frac=0.9,
        is_chosen=True,
        evidence=evidence,
    )


def market(*shown):
    return Market(rates=(), shown=shown, refused=(), assumptions=(), porting_usd={})


def found(rows, *shown):
    return {each.purchase: each for each in other_purchases(market(*shown), rows)}


def test_the_cheapest_spot_price_pays_for_whole_nodes_every_hour():
    dear = rate("h100-sxm", 10.0, purchase="spot", n=4)
    cheap = rate("h100-sxm", 6.0, purchase="spot", n=4)
    spot = found([row()], dear, cheap)["spot"]
    # 3 replicas of 2 accelerators stand on 2 nodes of 4.
    assert spot.usd_per_month == pytest.approx(2 * 6.0 * 730)
    assert (spot.workload, spot.accelerator, spot.precision) == ("chat", "h100-sxm", "fp8")


def test_a_listing_is_indicative_and_a_discount_without_a_price_list_is_no_price():
    listed = replace(rate("h100-sxm", 8.0, n=8), evidence=WEAK)
    advertised = replace(rate("h100-sxm", 1.0, purchase="reserved", n=8), evidence=WEAK)
    stated = rate("h100-sxm", 5.0, purchase="reserved", n=8)
    assert set(found([row()], listed, advertised)) == {INDICATIVE}
    assert found([row()], listed)[INDICATIVE].note.startswith("marketplace; ask for a quote")
    assert found([row()], advertised, stated)["reserved"].usd_per_month == pytest.approx(5 * 730)


def test_other_cards_small_nodes_and_short_supply_give_no_price():
    assert not found([row()], rate("a100", 1.0, purchase="spot", n=8))
    assert not found([row(tp=8)], rate("h100-sxm", 1.0, purchase="spot", n=4))
    few = replace(rate("h100-sxm", 1.0, purchase="spot", n=2), terms=RateTerms(n_nodes_max=2))
    assert not found([row()], few)


def test_rows_without_a_fleet_slices_and_runs_have_none():
    spot = rate("h100-sxm", 1.0, purchase="spot", n=8)
    run = RunFigures(wall_s=1.0, total_usd=1.0, mfu_frac=None)
    assert not found([row(has_fleet=False), row(share="1g.10gb"), row(run=run)], spot)


@pytest.mark.parametrize(("n", "size", "per_node", "nodes"), [(3, 2, 8, 1), (5, 2, 8, 2)])
def test_replicas_fill_nodes_and_never_straddle(n, size, per_node, nodes):
    assert whole_nodes(n, size, per_node) == nodes
    assert whole_nodes(n, 3, 8) == -(-n // 2)
    assert whole_nodes(n, 16, 8) is None
