"""One rule of the program at a time: slices, batch, spot, existing nodes, scenarios, objectives."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.selection import horizon
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.plan.selection import (
    BatchOption,
    DeferrableWork,
    FleetOption,
    NamedLimit,
    NodePool,
    NodeTerms,
    SelectionProblem,
)
from gpuplan.selection.choose import select
from gpuplan.selection.sensitivity.pareto import pareto
from gpuplan.selection.slices import (
    SliceRule,
    maximal_geometries,
    mig_rules,
    time_slices,
)

# Memory places of a seven-slice accelerator: first places, and how many are taken from there.
RULES = (
    SliceRule(kind="1g", starts=(0, 1, 2, 3, 4, 5, 6), n_places=1),
    SliceRule(kind="2g", starts=(0, 2, 4), n_places=2),
    SliceRule(kind="3g", starts=(0, 4), n_places=4),
    SliceRule(kind="4g", starts=(0,), n_places=4),
    SliceRule(kind="7g", starts=(0,), n_places=8),
)


def pool(name="p", **more):
    given = {"n_accelerators_per_node": 1} | more
    return NodePool(name=name, accelerator=name, **given)


def cloud(name="p", usd=1.0, **more):
    return NodeTerms(
        name=f"{name}-cloud", pool=name, purchase="on_demand", usd_per_node_h=usd, **more
    )


def option(workload, need, *, at="p", **more):
    return FleetOption(workload=workload, name=f"{workload}-{at}", pool=at, need=ints(need), **more)


def sliced(asked):
    options = [
        option(f"w{i}", [[[n]]], slice_kind=kind) for i, (kind, n) in enumerate(asked.items())
    ]
    return SelectionProblem(
        horizon=horizon(),
        pools=(pool(),),
        terms=(cloud(),),
        options=tuple(options),
        geometries=maximal_geometries(RULES, pool="p"),
    )


def test_twelve_ways_to_cut_are_worth_keeping():
    found = maximal_geometries(RULES, pool="p")
    assert len(found) == 12
    assert (("1g", 7),) in [geometry.counts for geometry in found]


@pytest.mark.parametrize(
    ("asked", "n_accelerators"),
    [
        ({"1g": 7}, 1),
        ({"1g": 8}, 2),
        ({"3g": 2}, 1),
        ({"3g": 2, "1g": 1}, 2),  # the sizes add up to seven, the places do not
        ({"4g": 1, "2g": 1, "1g": 1}, 1),
        ({"7g": 1, "1g": 1}, 2),
        ({"2g": 3, "1g": 1}, 1),
    ],
)
def test_slices_take_whole_accelerators(asked, n_accelerators):
    assert select(sliced(asked)).worth_usd == pytest.approx(n_accelerators)


def test_turns_are_slices_too():
    problem = replace(sliced({"quarter": 9}), geometries=(time_slices("quarter", 4, pool="p"),))
    assert select(problem).worth_usd == pytest.approx(3.0)


def batch(work, *, may_use_spot=True, rate=1.0):
    options = (BatchOption(name="b", pool="p", n_work_per_accelerator_h=rate),)
    return DeferrableWork(
        workload="nightly", n_work=floats([[work]]), options=options, may_use_spot=may_use_spot
    )


def test_deferrable_work_fills_the_valleys():
    """Two owned nodes are idle twelve hours; batch takes them before anything is rented."""
    problem = SelectionProblem(
        horizon=horizon(hours=(12.0, 12.0)),
        pools=(pool(),),
        terms=(
            NodeTerms(name="own", pool="p", purchase="owned", usd_per_node_h=1.0, n_nodes_max=2),
            cloud(usd=3.0),
        ),
        options=(option("chat", [[[2, 0]]]),),
        deferrable=(batch(24.0),),
    )
    assert select(problem).worth_usd == pytest.approx(48.0)
    more = replace(problem, deferrable=(batch(25.0),))
    assert select(more).worth_usd == pytest.approx(48.0 + 36.0)  # a node for one block of hours


@pytest.mark.parametrize(
    ("may_use_spot", "useful_frac", "usd"), [(True, 1.0, 4.0), (True, 0.5, 8.0), (False, 1.0, 12.0)]
)
def test_spot_carries_only_work_that_can_wait(may_use_spot, useful_frac, usd):
    spot = NodeTerms(
        name="spot", pool="p", purchase="spot", usd_per_node_h=1.0, useful_frac=useful_frac
    )
    problem = SelectionProblem(
        horizon=horizon(hours=(1.0, 1.0)),
        pools=(pool(),),
        terms=(cloud(usd=3.0), spot),
        deferrable=(batch(4.0, may_use_spot=may_use_spot),),
    )
    assert select(problem).worth_usd == pytest.approx(usd)
    firm = replace(problem, options=(option("chat", [[[1, 1]]]),), deferrable=())
    assert select(firm).worth_usd == pytest.approx(6.0)


def test_workloads_share_a_pool_by_the_hour():
    day, night = option("day", [[[4, 0]]]), option("night", [[[0, 4]]])
    terms = (NodeTerms(name="own", pool="p", purchase="owned", usd_per_node_h=1.0),)
    problem = SelectionProblem(
        horizon=horizon(hours=(12.0, 12.0)), pools=(pool(),), terms=terms, options=(day, night)
    )
    assert select(problem).worth_usd == pytest.approx(4 * 24)


def test_a_spare_is_shared_within_a_pool():
    options = tuple(option(name, [[[3]]], n_reserve=2) for name in ("a", "b"))
    problem = SelectionProblem(
        horizon=horizon(), pools=(pool(),), terms=(cloud(),), options=options
    )
    assert select(problem).worth_usd == pytest.approx(3 + 3 + 2)


def two_scenarios(**more):
    """Demand of 1 or 5 nodes; owning costs 6 a node for the time, renting 10."""
    return SelectionProblem(
        horizon=horizon(n_scenarios=2, hours=(10.0,)),
        pools=(pool(),),
        terms=(
            NodeTerms(name="own", pool="p", purchase="owned", usd_per_node_h=0.6),
            cloud(usd=1.0),
        ),
        options=(option("w", [[[1]], [[5]]]),),
        **more,
    )


def test_orders_are_placed_before_the_scenario_is_known():
    found = select(two_scenarios())
    # A node needed half of the time is worth 5, and costs 6 to own: only the sure one is bought.
    assert sum(order.n_nodes for order in found.orders) == 1
    assert found.worth_usd == pytest.approx(6 + 0.5 * 40)


def test_least_regret_stands_between_the_scenarios():
    found = select(two_scenarios(objective="regret"))
    owned = sum(order.n_nodes for order in found.orders)
    # With k owned the regret is 6(k-1) if demand is low and 10(5-k) - 6(5-k) if it is high.
    regret = {k: max(6 * (k - 1), 4 * (5 - k)) for k in range(1, 6)}
    assert owned == min(regret, key=regret.get)
    assert found.proof.value == pytest.approx(min(regret.values()), abs=1e-4)


def test_later_orders_may_wait_for_the_scenario():
    problem = SelectionProblem(
        horizon=replace(
            horizon(n_scenarios=2, n_periods=2, hours=(10.0,)), n_shared_periods=1
        ),
        pools=(pool(),),
        terms=(
            NodeTerms(
                name="own", pool="p", purchase="owned", usd_per_node_h=0.6, n_term_periods=1
            ),
        ),
        options=(option("w", [[[1], [1]], [[1], [5]]]),),
    )  # fmt: skip
    assert select(problem).worth_usd == pytest.approx(6 + 0.5 * 6 + 0.5 * 30)
    blind = replace(problem, horizon=replace(problem.horizon, n_shared_periods=None))
    assert select(blind).worth_usd == pytest.approx(6 + 30)


def clean_or_cheap(**more):
    pools = (
        pool("dirty", mean_w=1000.0, carbon_kg_per_j=floats([2e-7])),
        pool("clean", mean_w=1000.0, carbon_kg_per_j=floats([1e-8])),
    )
    options = [
        option(f"w{i}", [[[n]]], at=at, time_s=(5.0 if at == "dirty" else 9.0) * n)
        for i, n in enumerate((1, 2, 4))
        for at in ("dirty", "clean")
    ]
    return SelectionProblem(
        horizon=horizon(hours=(1000.0,)),
        pools=pools,
        terms=(cloud("dirty", 1.0), cloud("clean", 1.5)),
        options=tuple(options),
        **more,
    )


def test_each_objective_has_its_own_winner():
    def pools(objective):
        return {option.pool for option in select(clean_or_cheap(objective=objective)).chosen}

    assert pools("cost") == {"dirty"}
    assert pools("carbon") == {"clean"}
    assert pools("time") == {"dirty"}
    # Both draw the same: the tie goes to the cheaper.
    assert pools("energy") == {"dirty"}


def test_trade_off_of_cost_and_carbon_is_every_subset_that_matters():
    points = pareto(clean_or_cheap(), "carbon", n_points=40)
    costs = [point.cost_usd for point in points]
    # Moving 0 … 7 nodes to the clean pool: eight plans, none better in both.
    assert costs == pytest.approx([7000 + 500 * n for n in range(7, -1, -1)])
    assert list(np.diff([point.other for point in points]) > 0) == [True] * 7


def test_a_limit_on_carbon_moves_just_enough():
    most = 1000 * 3600 * 1000 * (3 * 2e-7 + 4 * 1e-8)
    limit = NamedLimit(name="carbon", kind="carbon", most=most)
    found = select(clean_or_cheap(limits=(limit,)))
    assert found.worth_usd == pytest.approx(7000 + 500 * 4)
    assert found.option_of("w2").pool == "clean"


# Geometries as the vendor's tool lists them: "1g.10gb": 7, and mixed ones.
@pytest.mark.parametrize(
    ("accelerator", "kinds", "wanted"),
    [
        ("a100-sxm-80gb", {"1g.10gb"}, {"7x1g.10gb"}),
        ("a100-sxm-80gb", {"3g.40gb"}, {"2x3g.40gb"}),
        (
            "a100-sxm-80gb",
            {"1g.10gb", "3g.40gb"},
            {"7x1g.10gb", "4x1g.10gb+1x3g.40gb", "2x3g.40gb"},
        ),
        ("a30", {"1g.6gb", "2g.12gb"}, {"4x1g.6gb", "2x1g.6gb+1x2g.12gb", "2x2g.12gb"}),
    ],
)
def test_mig_profiles_of_the_catalog_mix_as_the_vendor_lists_them(accelerator, kinds, wanted):
    rules = [r for r in mig_rules(read_catalog().mig_profiles_of(accelerator)) if r.kind in kinds]
    assert {found.name for found in maximal_geometries(rules, pool="p")} == wanted


def test_every_mig_profile_fits_as_often_as_the_catalog_says():
    for profile in read_catalog().mig_profiles:
        rules = mig_rules(read_catalog().mig_profiles_of(profile.accelerator))
        [alone] = maximal_geometries([r for r in rules if r.kind == profile.name], pool="p")
        assert dict(alone.counts) == {profile.name: profile.n_max}
