"""Rent, buy or both: reference arithmetic, brute force, and other numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.cost.crossover import (
    cheapest_fleet,
    crossovers,
    fleet_for,
    flip_point,
    own_or_burst,
    regret_usd,
    use_curve,
)
from gpuplan.domain.money.worth import LoadBlock, NodeOffer
from gpuplan.errors import InputError

L4 = NodeOffer(name="L4", usd_per_node_h=0.80, n_tokens_per_s=900)
L40S = NodeOffer(name="L40S", usd_per_node_h=1.60, n_tokens_per_s=2600)
H100 = NodeOffer(name="H100", usd_per_node_h=2.95, n_tokens_per_s=9000)
OFFERS = (L4, L40S, H100)
# 52 weeks: 16 always, 40 for 50 h a week, 60 for 20 of those.
WEEKLY = (LoadBlock(n_nodes=16, n_hours=118), LoadBlock(n_nodes=40, n_hours=30),
          LoadBlock(n_nodes=60, n_hours=20))  # fmt: skip
YEAR = tuple(LoadBlock(n_nodes=b.n_nodes, n_hours=52 * b.n_hours) for b in WEEKLY)


@pytest.mark.parametrize(
    ("load", "name", "n", "usd", "usd_per_m"),
    [
        (500, "L4", 1, 0.80, 0.44),
        (4_000, "H100", 1, 2.95, 0.20),
        (40_000, "H100", 7, 20.65, 0.14),
    ],
)
def test_the_winner_hangs_on_the_load(load, name, n, usd, usd_per_m):
    best = cheapest_fleet(OFFERS, load, max_load_frac=0.7)
    assert (best.name, best.n_nodes) == (name, n)
    assert best.usd_per_h == pytest.approx(usd)
    assert best.usd_per_m_tokens == pytest.approx(usd_per_m, abs=0.005)


def test_cost_per_token_is_on_paid_hours():
    """Trap 35: at the offered load, not at peak throughput."""
    best = fleet_for(H100, 500, max_load_frac=0.7)
    at_peak = 2.95 / (9000 * 3600) * 1e6
    assert best.usd_per_m_tokens == pytest.approx(at_peak * 18)


def test_surviving_one_loss_shrinks_the_margin():
    """Trap 44: the spare is a whole node of the kind that fails."""
    alone = {o.name: fleet_for(o, 4_000, max_load_frac=0.7, n_spare=1) for o in OFFERS}
    assert alone["H100"].usd_per_h == pytest.approx(5.90)
    assert alone["L40S"].usd_per_h == pytest.approx(6.40)
    assert alone["L4"].usd_per_h == pytest.approx(6.40)
    assert cheapest_fleet(OFFERS, 500, max_load_frac=0.7, n_spare=1).n_nodes == 2
    plain = {o.name: fleet_for(o, 4_000, max_load_frac=0.7) for o in OFFERS}
    assert 1 - plain["H100"].usd_per_h / plain["L40S"].usd_per_h == pytest.approx(0.39, abs=0.01)
    assert 1 - alone["H100"].usd_per_h / alone["L40S"].usd_per_h == pytest.approx(0.08, abs=0.005)


def test_crossovers_on_the_grid():
    loads = [100.0 * step for step in range(1, 100)]
    found = crossovers(OFFERS, loads, max_load_frac=0.7)
    assert found[:2] == ((100.0, "L4"), (1300.0, "L40S"))
    assert (1900.0, "H100") in found
    assert found[-1][1] == "H100"


def test_a_full_node_is_enough():
    assert fleet_for(L4, 630, max_load_frac=0.7).n_nodes == 1
    assert fleet_for(L4, 631, max_load_frac=0.7).n_nodes == 2


@pytest.mark.parametrize("price", [0.0, -1.0])
def test_nothing_is_free(price):
    with pytest.raises(InputError):
        fleet_for(NodeOffer(name="x", usd_per_node_h=price, n_tokens_per_s=1), 1, max_load_frac=1)


def test_burst_above_the_base():
    found = own_or_burst(YEAR, own_usd_per_node_h=1.45, cloud_usd_per_node_h=3.00)
    assert found.break_even_frac == pytest.approx(0.483, abs=0.001)
    assert found.n_owned == 16
    assert found.total_usd == pytest.approx(452_275, abs=1)
    assert found.usd_by_owned[60] == pytest.approx(760_032, abs=1)
    assert found.usd_by_owned[0] == pytest.approx(668_928, abs=1)


def test_a_year_of_8760_hours_costs_more():
    hours = 8760 / 168
    year = [LoadBlock(n_nodes=b.n_nodes, n_hours=hours * b.n_hours) for b in WEEKLY]
    found = own_or_burst(year, own_usd_per_node_h=1.45, cloud_usd_per_node_h=3.00)
    assert found.total_usd == pytest.approx(453_518, abs=1)


def test_regret_when_peaks_double():
    doubled = [
        LoadBlock(n_nodes=16 if b.n_nodes == 16 else 2 * b.n_nodes, n_hours=b.n_hours) for b in YEAR
    ]
    found = own_or_burst(doubled, own_usd_per_node_h=1.45, cloud_usd_per_node_h=3.00)
    assert found.n_owned == 16
    assert found.total_usd == pytest.approx(826_675, abs=1)
    assert regret_usd(found.usd_by_owned[60], found.total_usd) == pytest.approx(214_157, abs=1)


blocks_strategy = st.lists(
    st.builds(LoadBlock, n_nodes=st.integers(0, 30), n_hours=st.floats(1, 2000)),
    min_size=1,
    max_size=6,
)


@given(
    blocks=blocks_strategy,
    own=st.floats(0.1, 5.0),
    cloud=st.floats(0.1, 5.0),
)
def test_closed_form_equals_brute_force(blocks, own, cloud):
    found = own_or_burst(blocks, own_usd_per_node_h=own, cloud_usd_per_node_h=cloud)
    assert found.total_usd == pytest.approx(min(found.usd_by_owned), rel=1e-9)
    assert found.total_usd == pytest.approx(found.usd_by_owned[found.n_owned], rel=1e-9)


def test_cpu_until_the_third_node():
    """One L4 at 0.80 overtakes CPU nodes at 0.40 when a third is needed: above 84 docs/s."""
    cpu = NodeOffer(name="cpu", usd_per_node_h=0.40, n_tokens_per_s=60)
    gpu = NodeOffer(name="L4", usd_per_node_h=0.80, n_tokens_per_s=2000)
    flip = flip_point(
        lambda load: fleet_for(cpu, load, max_load_frac=0.7).usd_per_h,
        lambda load: fleet_for(gpu, load, max_load_frac=0.7).usd_per_h - 1e-6,
        [float(load) for load in range(1, 200)],
    )
    # Equal price from 43 docs/s on; strictly dearer from 85.
    assert flip == 43
    assert fleet_for(cpu, 84, max_load_frac=0.7).usd_per_h == pytest.approx(0.80)
    assert fleet_for(cpu, 85, max_load_frac=0.7).usd_per_h == pytest.approx(1.20)


def test_the_chart_crosses_at_break_even():
    shares = [share / 100 for share in range(10, 101)]
    lines = use_curve(shares, own_usd_per_available_h=1.45, ways={"cloud": 3.00})
    first = next(
        s for s, own, rent in zip(shares, lines["own"], lines["cloud"], strict=True) if own <= rent
    )
    assert first == pytest.approx(0.49)
