"""Parts of networks and balanced systems: lengths, prices, the cheapest that will do."""

from dataclasses import replace

import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.design.balance import best_within, most_work_first, sizes
from gpuplan.design.fabric import (
    cable_runs,
    cheapest_sufficient,
    fabric_counts,
    fabric_options,
    fabric_plan,
    node_bytes_per_s,
    switch_for,
)
from gpuplan.design.storage import choose_units, tiers
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.site import NodeNetwork
from gpuplan.domain.system.parts import BalancedSystem, DataDemand
from gpuplan.units import GB, GBIT, TB

NETWORK = read_catalog().network
LINKS = tuple(NETWORK.links.values())


def network(gbit: float, *, kind: str = "ethernet", n: int = 8) -> NodeNetwork:
    return NodeNetwork(
        kind=kind, n_nics_per_node=n, nic_bytes_per_s=gbit * GBIT, oversubscription_ratio=1.0
    )


def plan(n_nodes: int, ratio: float = 1.0):
    counts = fabric_counts(n_nodes, 8, n_switch_ports=64, oversubscription_ratio=ratio)
    switch = NETWORK.switches["qm9700"]
    return fabric_plan(
        counts, switch, port_bytes_per_s=400 * GBIT, n_racks=n_nodes // 4, parts=NETWORK
    )


def test_ports_are_bits_and_switches_fast_enough():
    assert switch_for(NETWORK.switches, network(400, kind="infiniband"), 64).id == "qm9700"
    assert switch_for(NETWORK.switches, network(100), 64).port_bytes_per_s == 12.5 * GB
    assert switch_for(NETWORK.switches, network(1600), 64) is None


def test_copper_ends_after_three_metres():
    counts = fabric_counts(4, 8, n_switch_ports=64)
    near = cable_runs(counts, 1, bytes_per_s=50 * GB, links=LINKS)
    far = cable_runs(counts, 4, bytes_per_s=50 * GB, links=LINKS)
    assert (near[0].medium, far[0].medium) == ("copper", "optic")
    assert far[0].link is not None
    assert far[0].link.reach_m >= far[0].longest_m


def test_draw_and_price_grow_with_the_switches():
    small, large = plan(32), plan(256)
    assert small.max_w == small.counts.n_switches * 1720
    assert large.usd.mid > 7 * small.usd.mid
    assert small.usd.low < small.usd.mid < small.usd.high


def test_oversubscription_saves_money_and_costs_rate():
    full, half = plan(64), plan(64, 2.0)
    assert half.usd.mid < full.usd.mid
    assert node_bytes_per_s(half) < node_bytes_per_s(full) == 8 * 50 * GB


def test_the_cheapest_that_will_do_wins():
    options = fabric_options(
        8,
        n_accelerators_per_node=8,
        n_racks=2,
        parts=NETWORK,
        kind="ethernet",
    )
    need = 40 * GB
    best = cheapest_sufficient(options, lambda rate: min(1.0, rate / need))
    assert best is not None
    chosen, reached = best
    assert reached >= 0.9
    others = [o for o in options if min(1.0, node_bytes_per_s(o) / need) >= 0.9]
    assert chosen.usd.mid == min(o.usd.mid for o in others)
    modest, _ = cheapest_sufficient(options, lambda rate: 1.0)
    assert modest.usd.mid < chosen.usd.mid
    assert cheapest_sufficient(options, lambda rate: 0.5) is None


def demand(rate: float, reads: float) -> DataDemand:
    return DataDemand(
        samples_per_s=1.0,
        bytes_per_s=rate,
        operations_per_s=reads,
        open_operations_per_s=0.0,
    )


@pytest.mark.parametrize(
    ("rate", "reads", "held", "n", "word"),
    [
        (27.2 * GB, 10.0, 1 * TB, 4, "reading"),
        (1 * GB, 10.0, 76.8 * TB, 10, "holding"),
        (1 * GB, 2.5e6, 1 * TB, 3, "reads a second"),
    ],
)
def test_units_of_storage_are_decided_by_the_hardest_need(rate, reads, held, n, word):
    nvme = tiers(read_catalog().storage)[0]
    choice = choose_units(nvme, demand(rate, reads), held_bytes=held)
    assert choice.n_units == n
    assert word in choice.reason
    assert choice.usd.mid == pytest.approx(n * nvme.unit_usd.mid)


def system(n: int, usd: float) -> BalancedSystem:
    return BalancedSystem(what="x", n_accelerators=n, busy_frac=1.0, usd=exactly(usd))


def test_balance_keeps_the_budget_and_takes_most_work():
    made = [system(n * size, 100.0 * n * size + 50.0 * n) for n, size in sizes(2, 4)]
    assert {s.n_accelerators for s in made} == {8, 4, 2, 1}
    best = best_within(made, 800.0)
    assert all(s.usd.mid <= 800 for s in best)
    assert best[0].n_accelerators == max(s.n_accelerators for s in made if s.usd.mid <= 800)
    assert min(made, key=most_work_first).n_accelerators == 8
    assert not best_within(made, 10.0)


def test_a_faster_kind_counts_for_more_and_an_idle_one_for_less():
    slow, fast = system(8, 100.0), replace(system(4, 100.0), speed_ratio=2.5)
    idle = replace(system(16, 100.0), busy_frac=0.4)
    assert [s.n_at_work for s in best_within([slow, idle, fast], 100.0)] == [10.0, 8.0, 6.4]
