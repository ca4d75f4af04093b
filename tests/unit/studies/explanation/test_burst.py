"""Own the base, rent the peak: sums by hand, and every number of owned nodes tried."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import rate
from fakes.selection import horizon
from gpuplan.domain.columns import ints
from gpuplan.domain.money.rates import RateTerms
from gpuplan.domain.money.worth import LoadBlock
from gpuplan.domain.plan.selection import FleetOption, NodePool, NodeTerms, SelectionProblem
from gpuplan.domain.ranges import Range
from gpuplan.selection.choose import select
from gpuplan.studies.explanation.burst import BurstPool, burst_alternatives, burst_reasons
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.options import FleetTable

OPTION = FleetOption(workload="teams", name="o", pool="h100 x1", need=ints([[[1]]]))
HOURS = (118 * 52, 30 * 52, 20 * 52)


def pool(nodes=(16, 40, 60), *, own=1.45, cloud=3.0, **terms):
    blocks = tuple(LoadBlock(n_nodes=n, n_hours=h) for n, h in zip(nodes, HOURS, strict=True))
    rented = rate("h100", cloud, terms=RateTerms(**terms))
    return BurstPool(OPTION, rate("h100", own, purchase="owned"), rented, blocks)


def usd(nodes, n_owned, *, own=1.45, cloud=3.0):
    """Owned nodes for every hour, the rest by need."""
    rented = sum(max(0, n - n_owned) * h for n, h in zip(nodes, HOURS, strict=True))
    return n_owned * sum(HOURS) * own + rented * cloud


def alternatives(nodes, *, own=1.45, cloud=3.0):
    """The alternatives to the best choice of the same problem."""
    terms = tuple(
        NodeTerms(name=name, pool="h100 x1", purchase=name, usd_per_node_h=price)
        for name, price in (("owned", own), ("on_demand", cloud))
    )
    node = NodePool(name="h100 x1", accelerator="h100", n_accelerators_per_node=1)
    option = replace(OPTION, need=ints([[list(nodes)]]))
    time = horizon(hours=HOURS)
    problem = SelectionProblem(horizon=time, pools=(node,), terms=terms, options=(option,))
    table = FleetTable(problem=problem, by_name={}, rates={})
    found = Choice(table, select(problem))
    return found, {each.kind: each for each in burst_alternatives(found, option)}


def test_all_owned_and_all_rented_cost_what_the_hours_say():
    nodes = (16, 40, 60)
    mine, found = alternatives(nodes)
    months = sum(HOURS) / 730
    best = usd(nodes, 16)
    assert mine.usd_per_month == pytest.approx(best / months)
    for kind, n_owned in (("own everything", 60), ("rent everything", 0)):
        assert found[kind].usd_per_month == pytest.approx(usd(nodes, n_owned) / months)
        assert found[kind].extra_usd_per_month == pytest.approx(
            (usd(nodes, n_owned) - best) / months
        )
        assert f"{n_owned} nodes owned" in found[kind].fleet


def test_what_is_best_is_no_alternative():
    assert {*alternatives((8, 8, 8))[1]} == {"rent everything"}


@given(st.lists(st.integers(0, 30), min_size=3, max_size=3), st.floats(0.2, 2.9))
def test_the_owned_base_is_the_best_of_all_numbers(nodes, own):
    found = pool(nodes, own=own).best
    tried = [usd(nodes, n, own=own) for n in range(max(nodes) + 1)]
    assert found.usd_by_owned == pytest.approx(tried)
    assert tried[found.n_owned] == pytest.approx(min(tried))


def test_the_next_node_pays_at_the_price_that_is_said():
    found = burst_reasons(pool())
    each, after = found.crossovers
    assert each.what == "utilization of a node of h100 x1"
    assert each.at == f"{1.45 / 3:.1%} of hours"
    share = 50 / 168
    assert f"{share:.1%}" in after.at
    assert f"below ${share * 3.0:,.2f}/h" in after.then
    assert f"more than ${1.45 / share:,.2f}/h" in after.then
    # At that price owning the seventeenth node costs as much as renting it.
    even = share * 3.0
    owned = even * sum(HOURS)
    assert owned == pytest.approx(3.0 * (HOURS[1] + HOURS[2]))


def test_regret_if_peaks_double_is_the_distance_to_the_best():
    found = pool()
    doubled = (16, 80, 120)
    tried = [usd(doubled, n) for n in range(121)]
    years = sum(HOURS) / 730 / 12
    regret, all_owned = ((tried[n] - min(tried)) / years for n in (16, 60))
    [line] = [line for line in burst_reasons(found).why if "peaks double" in line]
    assert f"the regret of owning 16 is ${regret:,.0f}/year" in line
    assert f"today's peak ${all_owned:,.0f}/year" in line


def test_a_cold_start_is_said_in_minutes_and_only_where_it_is_known():
    known = pool(cold_start_s=Range(low=240.0, mid=300.0, high=480.0))
    assert any("4 … 8 minutes" in line for line in burst_reasons(known).why)
    assert not any("minutes" in line for line in burst_reasons(pool()).why)


def test_a_pool_that_is_always_full_has_no_next_node():
    found = burst_reasons(pool((8, 8, 8)))
    assert [each.what for each in found.crossovers] == ["utilization of a node of h100 x1"]
