"""Reference cases: own or burst, which accelerator, growth with lead time."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from fakes.selection import horizon, owned_base
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    FleetOption,
    FleetPart,
    MixedFleet,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.selection.choose import select

WEEK = {"always": 118, "day": 30, "peak": 20}


def own_or_burst(need, weight, *, own=1.45, rent=3.00, n_per_node=1):
    return SelectionProblem(
        horizon=horizon(hours=weight),
        pools=(NodePool(name="p", accelerator="x", n_accelerators_per_node=n_per_node),),
        terms=(
            NodeTerms(name="own", pool="p", purchase="owned", usd_per_node_h=own),
            NodeTerms(name="cloud", pool="p", purchase="on_demand", usd_per_node_h=rent),
        ),
        options=(FleetOption(workload="w", name="o", pool="p", need=ints([[need]])),),
    )


def n_owned(found):
    return sum(order.n_nodes for order in found.orders)


@pytest.mark.parametrize(("n_hours", "usd"), [(8736, 452_275.20), (8760, 453_517.71)])
def test_burst_to_cloud_at_peaks(n_hours, usd):
    weight = np.array(list(WEEK.values())) * n_hours / 168
    found = select(own_or_burst([16, 40, 60], weight))
    assert n_owned(found) == 16
    assert found.worth_usd == pytest.approx(usd, abs=0.01)


def test_peaks_doubled_leave_the_base_as_it_is():
    found = select(own_or_burst([16, 80, 120], np.array([118, 30, 20]) * 52))
    assert n_owned(found) == 16
    assert found.worth_usd == pytest.approx(826_675, abs=1)


@pytest.mark.parametrize("seed", range(60))
def test_closed_form_is_the_program_is_trying_all(seed):
    rng = np.random.default_rng(seed)
    n_hours, size = rng.integers(1, 8), int(rng.integers(1, 5))
    load, weight = rng.integers(0, 40, n_hours), rng.integers(1, 50, n_hours).astype(float)
    own, rent = np.round(rng.uniform(0.5, 3.0, 2), 2)
    nodes = np.array([ceil(x / size) for x in load])
    owned, usd = owned_base(nodes, weight, own_usd_per_h=own, rent_usd_per_h=rent)
    tried = [
        k * weight.sum() * own + (np.maximum(0, nodes - k) * weight).sum() * rent
        for k in range(nodes.max() + 1)
    ]
    assert tried[owned] == pytest.approx(usd)
    found = select(own_or_burst(load, weight, own=own, rent=rent, n_per_node=size))
    assert usd == pytest.approx(min(tried))
    assert found.worth_usd == pytest.approx(usd, abs=0.006)


# Which accelerator: price an hour, output tokens a second within the promise.
CARDS = {"l4": (0.80, 900), "l40s": (1.60, 2600), "h100": (2.95, 9000)}


def which_card(load, *, n_spare=0):
    pools, terms, options = [], [], []
    for name, (usd, rate) in CARDS.items():
        pools.append(NodePool(name=name, accelerator=name, n_accelerators_per_node=1))
        terms.append(
            NodeTerms(name=f"{name}-cloud", pool=name, purchase="on_demand", usd_per_node_h=usd)
        )
        need = ints([[[ceil(load / (0.7 * rate))]]])
        options.append(
            FleetOption(workload="chat", name=name, pool=name, need=need, n_reserve=n_spare)
        )
    return SelectionProblem(
        horizon=horizon(), pools=tuple(pools), terms=tuple(terms), options=tuple(options)
    )


def mixed(problem, load, *, n_lost=0):
    parts = tuple(
        FleetPart(name=n, pool=n, n_accelerators_per_replica=1, n_load_per_replica=0.7 * rate)
        for n, (_, rate) in CARDS.items()
    )
    fleet = MixedFleet(workload="chat", n_load=floats([[[load]]]), parts=parts, n_lost=n_lost)
    return replace(problem, options=(), mixed=(fleet,))


@pytest.mark.parametrize(
    ("load", "n_spare", "card", "usd"),
    [
        (500, 0, "l4", 0.80),
        (4000, 0, "h100", 2.95),
        (40_000, 0, "h100", 20.65),
        (500, 1, "l4", 1.60),
        (4000, 1, "h100", 5.90),
        (40_000, 1, "h100", 23.60),
        (1200, 0, "l4", 1.60),
        (1300, 0, "l40s", 1.60),
        (1900, 0, "h100", 2.95),
    ],
)
def test_the_winner_changes_with_the_load(load, n_spare, card, usd):
    found = select(which_card(load, n_spare=n_spare))
    assert found.worth_usd == pytest.approx(usd)
    if load != 1200:  # two L4 and one L40S cost the same there
        assert found.option_of("chat").name == card


@pytest.mark.parametrize(
    ("load", "n_lost", "usd", "fleet"),
    [
        (40_000, 0, 20.10, {"h100": 6, "l40s": 1, "l4": 1}),
        (4000, 1, 5.60, {"l40s": 3, "l4": 1}),
    ],
)
def test_mixed_fleets_can_be_cheaper(load, n_lost, usd, fleet):
    found = select(mixed(which_card(load), load, n_lost=n_lost))
    assert found.worth_usd == pytest.approx(usd)
    counts = {share.option: int(share.n_amount.sum()) for share in found.shares}
    assert {name: n for name, n in counts.items() if n} == fleet


def test_growth_beyond_the_lead_time_is_bridged_in_the_cloud():
    """48 accelerators at 70 % growing 8 % a month; 85 % is passed in week 10.9, orders take 16."""
    n_weeks = 24
    growth = 1.08 ** (np.arange(n_weeks) * 12 / 52)
    need = np.ceil(48 * 0.70 * growth / 0.85 - 1e-9).astype(int)
    problem = SelectionProblem(
        horizon=horizon(n_periods=n_weeks, hours=(168.0,)),
        pools=(
            NodePool(
                name="p", accelerator="x", n_accelerators_per_node=1, n_nodes_existing=48,
                existing_usd_per_node_h=0.5,
            ),
        ),
        terms=(
            NodeTerms(
                name="buy", pool="p", purchase="owned", usd_per_node_h=1.45, n_lead_periods=16
            ),
            NodeTerms(name="cloud", pool="p", purchase="on_demand", usd_per_node_h=3.0),
        ),
        options=(
            FleetOption(workload="w", name="o", pool="p", need=ints(need[None, :, None])),
        ),
    )  # fmt: skip
    found = select(problem)
    cloud = next(held for held in found.provisioned if held.terms == "cloud").n_nodes[0, :, 0]
    assert list(np.flatnonzero(cloud)) == [11, 12, 13, 14, 15]
    assert list(cloud[11:16]) == list(need[11:16] - 48)
    assert found.orders[0].period == 0
    assert found.orders[0].n_nodes == need[16] - 48
