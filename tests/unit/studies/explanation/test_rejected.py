"""Rejected candidates and conflicts: none is lost, near misses come first, gaps are right."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import candidate, rate, rejection, sized, sizing
from fakes.selection import horizon
from gpuplan.domain.plan.selection import Conflict, NamedLimit, Relaxation, SelectionProblem
from gpuplan.domain.plan.sizing import NotSized
from gpuplan.studies.explanation.rejected import (
    ORDER,
    conflict_lines,
    infeasible_lines,
    narrower_lines,
    nearest_first,
    rejected_of,
    unsettled_lines,
    without_fleet,
)

CONSTRAINTS = sorted({*ORDER} - {"cost", "price", "policy"})


def market(*rates, refused=()):
    return SimpleNamespace(ways=rates, refused=refused)


def skipped(kind, usd):
    return NotSized(
        candidate=candidate(kind), n_replicas_least=2, cost_least_usd_per_h=usd, why="dearer"
    )


@given(st.lists(st.sampled_from(CONSTRAINTS), max_size=12), st.integers(0, 3))
def test_every_candidate_is_shown_once_and_near_misses_come_first(constraints, n_skipped):
    lost = tuple(rejection(f"k{i}", c) for i, c in enumerate(constraints))
    dear = tuple(skipped(f"s{i}", 3.0 if i else None) for i in range(n_skipped))
    found = rejected_of(sizing(rejected=lost, skipped=dear), market())
    assert len(found) == len(lost) + len(dear)
    assert all(ORDER.index(a.constraint) <= ORDER.index(b.constraint) for a, b in pairwise(found))


def test_a_skipped_candidate_says_whether_a_price_is_missing_or_too_high():
    found = rejected_of(sizing(skipped=(skipped("a", None), skipped("b", 9.0))), market())
    by_constraint = {each.constraint: each for each in found}
    assert by_constraint["price"].relaxation == "give a price under prices.offers"
    assert by_constraint["cost"].relaxation == "a lower price"


def test_what_policy_forbids_is_one_line_for_each_accelerator():
    lost = (
        rejection("a", "policy"),
        rejection("a", "policy", precision="bf16"),
        rejection("b", "policy"),
    )
    found = rejected_of(sizing(rejected=lost), market())
    assert [each.candidate for each in found] == ["a, any layout", candidate("b").name]


def test_a_feasible_fleet_without_a_price_is_named_with_the_reason():
    lost = sizing(sized=(sized(1, kind="a"), sized(1, kind="b")))
    stale = SimpleNamespace(node=SimpleNamespace(accelerator="b"), what="the price is old")
    found = rejected_of(lost, market(rate("c", 1.0), refused=(stale,)))
    reasons = {each.candidate: each.reason for each in found}
    assert reasons[candidate("a").name] == "feasible, but there is no price among the offers"
    assert reasons[candidate("b").name] == "feasible, but there is no price: the price is old"
    assert rejected_of(lost, market(rate("a", 1.0), rate("b", 1.0))) == []


def test_the_nearest_miss_is_first_and_unknown_distances_are_last():
    gaps = [None, 3.0, 1.2, None, 1.5]
    found = nearest_first(rejection(f"k{i}", "memory", gap=gap) for i, gap in enumerate(gaps))
    assert [each.gap_ratio for each in found] == [1.2, 1.5, 3.0, None, None]


def test_without_any_fleet_reasons_are_counted_and_the_nearest_named():
    lost = sizing(
        rejected=(
            rejection("a", "memory", gap=4.0, relaxation="buy more memory"),
            rejection("b", "memory", gap=1.1, relaxation="quantize"),
            rejection("c", "slo", relaxation="allow 3 s"),
            rejection("d", "policy", relaxation=""),
        ),
        skipped=(skipped("e", None),),
    )
    first, *rest, unpriced = infeasible_lines([lost])
    assert first == (
        "w: none of 5 candidates is feasible (rejected: 2 by memory, 1 by slo, 1 by policy)"
    )
    assert unpriced == "w: 1 candidates have no price; give prices.offers"
    assert [line.split("; ")[1] for line in rest] == ["allow 3 s", "quantize"]


def test_weights_as_published_are_a_smaller_change_than_narrower_ones():
    narrow = rejection("a", "accelerators", gap=2.0, relaxation="allow 2")
    narrow = replace(narrow, candidate=replace(narrow.candidate, is_quantized_below=True))
    far = rejection("b", "accelerators", gap=20.0, relaxation="allow 20")
    near = rejection("c", "accelerators", gap=9.0, relaxation="allow 9")
    _, first, *_ = infeasible_lines([sizing(rejected=(narrow, near, far))])
    assert first.endswith("; allow 9")


def test_workloads_without_fleets_and_runs_are_lost():
    lost, kept = sizing(), sizing(sized=(sized(1),))
    assert without_fleet([lost, kept]) == [lost]


def problem(*limits):
    return SelectionProblem(horizon=horizon(hours=(730.0,)), pools=(), terms=(), limits=limits)


def test_a_conflict_says_what_is_short_and_what_would_be_enough():
    limits = (
        NamedLimit(name="site.power_kw", kind="power", most=8_000.0),
        NamedLimit(name="budget.usd_per_month", kind="spend", most=1_000.0),
    )
    alone = Relaxation(limits=("site.power_kw",), most=(8_000.0,), needed=(10_500.0,))
    found = Conflict(limits=tuple(x.name for x in limits), alone=(alone,), together=None)
    first, gap = conflict_lines(found, problem(*limits), problem(*limits))
    assert first == "site.power_kw, budget.usd_per_month: cannot be met together"
    assert gap == "site.power_kw: 2.5 kW short; 10.5 kW would be enough (now 8.0 kW)"


def test_one_limit_alone_cannot_be_met_and_no_limit_at_all_is_said():
    limit = NamedLimit(name="budget.usd_per_month", kind="spend", most=1_000.0)
    alone = Relaxation(limits=(limit.name,), most=(1_000.0,), needed=(1_250.0,))
    found = Conflict(limits=(limit.name,), alone=(alone,), together=None)
    first, gap = conflict_lines(found, problem(limit), problem(limit))
    assert first == "budget.usd_per_month: cannot be met"
    assert "$250/month short; $1,250/month would be enough" in gap
    bare = Conflict(limits=(), alone=(), together=None, without_limits="w: no nodes")
    assert [*conflict_lines(bare, problem(), problem())] == ["w: no nodes"]


def test_what_is_enough_counts_what_others_use():
    whole = NamedLimit(name="policy.max_accelerators", kind="accelerators", most=8.0)
    left = replace(whole, most=0.0)
    alone = Relaxation(limits=(whole.name,), most=(0.0,), needed=(8.0,))
    found = Conflict(limits=(whole.name,), alone=(alone,), together=None)
    *_, gap = conflict_lines(found, problem(left), problem(whole))
    assert "8 accelerators short; 16 accelerators would be enough (now 8 accelerators)" in gap


def test_rounds_that_never_end_are_counted():
    assert unsettled_lines(range(1, 9)) == (
        "an SLO is still violated after 8 rounds of adding replicas",
    )


def test_a_narrower_format_that_would_do_is_the_help():
    narrow = replace(candidate("l4"), precision="fp8", is_quantized_below=True)
    lost = sizing(rejected=(rejection("l4", "tpot"),), compared=(sized(1, candidate=narrow),))
    lines = infeasible_lines([lost])
    assert "l4 TP1 fp8: meets the SLOs; name it (workloads[].precision: fp8)" in lines[1]


def test_a_fleet_that_is_not_sure_enough_says_how_it_may_be_had():
    unsure = replace(candidate("tpu-v5e"), is_quantized_below=False)
    lost = sizing(rejected=(rejection("l4", "tpot"),), compared=(sized(1, candidate=unsure),))
    assert "policy.min_probability_frac" in infeasible_lines([lost])[1]


def test_a_budget_that_narrower_weights_would_keep_says_so():
    limit = NamedLimit(name="budget.usd_per_month", kind="spend", most=1_000.0)
    found = Conflict(limits=(limit.name,), alone=(), together=None)
    narrow = replace(candidate("l4"), precision="fp8", is_quantized_below=True)
    fours = replace(candidate("l4"), precision="int4", is_quantized_below=True)
    mine = sizing(compared=(sized(1, candidate=fours), sized(1, candidate=narrow)))
    (line,) = narrower_lines(found, problem(limit), [mine], lambda *_: 1.0)
    assert line.startswith("1 x l4 TP1 fp8: meets the SLOs")
    assert line.endswith("$730/month")
    assert [*narrower_lines(found, problem(limit), [mine], lambda *_: 2.0)] == []
    other = replace(found, limits=("site.power_kw",))
    assert [*narrower_lines(other, problem(limit), [mine], lambda *_: 1.0)] == []
