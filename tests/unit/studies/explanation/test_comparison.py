"""Fleets side by side, rivals and naive choices: prices by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fakes.fleets import candidate, curve, demand, rate, rejection, sized, sizing
from fakes.plans import comparison_row
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.plan.answer import Explanation, WhyNot
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.domain.plan.sizing import LimitMargin, NotSized, PoolUtilization
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.explanation.comparison import FleetComparison
from gpuplan.studies.explanation.explain import (
    _binding,
    _other_rows,
    _usd_per_token,
    _utilization_curves,
    _why,
    joined,
)
from gpuplan.studies.explanation.rivals import naive_choices, rival_answers

H100, L40S, A100 = "h100-sxm", "l40s", "a100-sxm-80gb"


def fleets(*curves, peak=10.0, chosen=None, **rest):
    """The first curve is the chosen one, with as many replicas as carry the peak."""
    found = sizing(peak, **rest)
    rows = [_row(each, peak, is_chosen=place == 0) for place, each in enumerate(curves)]
    return FleetComparison(
        found, chosen or sized(2, peak_frac=0.5), list(curves), None, None, tuple(rows)
    )


def _row(each, peak, *, is_chosen):
    """The curve as a row of the comparison: whole accelerators at the peak."""
    n = int(each.n_nodes(np.array([peak]))[0]) * each.n_per_node
    return comparison_row(
        each.kind, n_accelerators=n, n_replicas=n, layout=PoolLayout(tp=1, pp=1), precision="bf16",
        usd_per_month=n * each.usd_per_node_h * 730, is_chosen=is_chosen,
    )  # fmt: skip


def three(**rest):
    """Two of five at $1, ten of one at $0.5 (dearer), one of ten at $4 (dearest but one)."""
    return fleets(
        curve(H100, 5.0, 1.0, name=f"{H100}, on_demand"),
        curve(L40S, 1.0, 0.5, name=f"{L40S}, on_demand"),
        curve(A100, 10.0, 4.0, name=f"{A100}, on_demand"),
        curve(L40S, 1.0, 0.9, name=f"{L40S}, reserved"),
        **rest,
    )


def test_each_kind_once_the_chosen_first_then_by_price():
    found = three()
    assert [each.kind for each, _ in found.kinds] == [H100, A100, L40S]
    assert [usd for _, usd in found.kinds] == pytest.approx([2 * 730, 4 * 730, 5 * 730])
    assert found.chosen_usd == pytest.approx(2 * 730)


def test_fleets_are_named_by_whole_nodes_and_cpus_by_their_offer():
    found = fleets(curve(H100, 3.0, 1.0, n_per_node=8))
    assert found.fleet_name(found.chosen) == f"8 x {H100} TP1"
    cpu = replace(candidate("cpu-xeon-8480"), offer="c7i.metal")
    servers = curve("cpu-xeon-8480", 4.0, 1.0, candidate=cpu)
    assert found.fleet_name(servers) == "3 x c7i.metal"


def test_the_next_cheapest_is_said_with_what_is_saved():
    [line] = [line for line in _why(three()) if "cheapest" in line]
    assert f"2 x {H100} TP1 bf16 is the cheapest fleet that may be chosen" in line
    assert f"1 x {A100} TP1 bf16 at $2,920/month (50% saved)" in line


def test_a_token_costs_what_its_row_says():
    found = fleets(curve(H100, 5.0, 1.0))
    [row] = found.rows
    found = replace(found, rows=(replace(row, usd_per_million_tokens=1.234),))
    [line] = _usd_per_token(found)
    assert "$1.23 per million output tokens" in line


def test_the_tightest_slo_binds():
    def margin(metric, bound_s, limit_s):
        reached = Estimate(value=bound_s, low=bound_s, high=bound_s, tier="simulated")
        return LimitMargin(
            metric=metric, statistic="p95", limit_s=limit_s, reached_s=reached, bound_s=bound_s
        )

    chosen = sized(2, limits=(margin("ttft", 0.5, 2.0), margin("tpot", 0.045, 0.05)))
    [line] = _binding(fleets(curve(H100, 5.0, 1.0), chosen=chosen))
    assert line == "w: tpot p95 is the binding SLO: 90% of its limit is used"
    assert [*_binding(fleets(curve(H100, 5.0, 1.0)))] == []


def test_other_rows_carry_their_price_and_why_they_are_no_headline():
    rows = three().rows
    narrow = replace(rows[2].evidence, is_eligible=False, note="narrower than published")
    rows = (*rows[:2], replace(rows[2], evidence=narrow))
    found = [*_other_rows(rows)]
    assert [each.kind for each in found] == ["next cheapest", "lower precision"]
    assert [each.extra_usd_per_month for each in found] == pytest.approx([3 * 730, 2 * 730])
    assert found[1].remark == "chat: narrower than published"


def test_utilization_follows_the_hours_and_stays_below_the_peak():
    use = PoolUtilization(peak_frac=0.8, safe_frac=0.9, band="")
    chosen = replace(sized(2, n_spare=2), utilization=use)
    found = fleets(curve(H100, 5.0, 1.0), chosen=chosen)
    load = demand(10.0, (1.0, 0.25), (68.0, 100.0))
    load_line, safe = _utilization_curves(replace(found, sizing=replace(found.sizing, demand=load)))
    # Half of the replicas are spares, so the paid capacity is half as busy.
    assert load_line.x == (0.0, 68.0, 68.0, 168.0)
    assert load_line.y == pytest.approx((40.0, 40.0, 10.0, 10.0))
    assert safe.y == (90.0, 90.0)
    assert [*_utilization_curves(fleets(curve(H100, 5.0, 1.0), chosen=sized(2)))] == []


def test_explanations_are_joined_field_by_field():
    first = Explanation(why=("a",), binding=("b",))
    second = Explanation(why=("c",), conflicts=("d",))
    assert joined(first, second) == Explanation(why=("a", "c"), binding=("b",), conflicts=("d",))


# ── the questions that everyone asks ─────────────────────────────────────────────────────────────


def answers(found, *rates):
    market = SimpleNamespace(rates=rates)
    rows: list[WhyNot] = [*rival_answers(found, market, read_catalog())]
    return {row.question.split(",")[0]: row for row in rows}


RATES = (rate(H100, 3.0), rate(L40S, 0.5), rate(A100, 1.5), rate(A100, 10.0, n=8))


def test_priciest_cheapest_and_largest_are_told_apart():
    found = answers(three(), *RATES)
    assert found["the priciest accelerator"].answer == "it was chosen"
    cheapest = found["the cheapest per hour"]
    assert cheapest.fleet == f"10 x {L40S} TP1 bf16"
    assert cheapest.extra_usd_per_month == pytest.approx(3 * 730)
    # Equal in memory with the H100: by name the later one stands for both.
    assert found["the largest by memory"].extra_usd_per_month is None


def test_an_accelerator_that_was_not_sized_has_a_lower_bound():
    least = NotSized(
        candidate=candidate(A100), n_replicas_least=7, cost_least_usd_per_h=9.0, why="dearer"
    )
    found = answers(
        fleets(curve(H100, 5.0, 1.0), skipped=(least,)), rate(H100, 1.0), rate(A100, 1.5)
    )
    row = found["the priciest accelerator"]
    assert row.fleet == f"7+ x {A100}"
    assert row.extra_usd_per_month == pytest.approx(9.0 * 730 - 2 * 730)
    assert "lower bound" in row.answer


def test_a_rejected_one_says_why_and_a_forbidden_one_is_no_rival():
    lost = rejection(A100, "memory")
    seen = answers(
        fleets(curve(H100, 5.0, 1.0), rejected=(lost,)), rate(H100, 1.0), rate(A100, 1.5)
    )
    row = seen["the priciest accelerator"]
    assert row.extra_usd_per_month is None
    assert row.answer.endswith(f"$1.50/h each, but rejected: {lost.reason}")
    forbidden = rejection(A100, "policy")
    none = answers(
        fleets(curve(H100, 5.0, 1.0), rejected=(forbidden,)), rate(H100, 1.0), rate(A100, 1.5)
    )
    assert none == {}


def test_load_over_throughput_says_what_it_would_violate():
    def naive(chosen):
        found = fleets(curve(H100, 2.5, 1.0), chosen=chosen)
        return next(iter(naive_choices(found)))

    fewer = naive(sized(4, peak_frac=0.5))
    assert fewer.fleet == "2 replicas instead of 4"
    assert fewer.answer == "runs at 100% utilization and violates the SLOs"
    assert fewer.extra_usd_per_month == pytest.approx((2 - 4) * 730)
    bare = naive(sized(4, n_spare=1, peak_frac=0.95))
    assert bare.answer == "meets the SLOs only while nothing fails; a spare"
    assert "is enough here" in naive(sized(4, peak_frac=0.99)).answer


def test_the_dearest_accelerator_is_priced_as_its_row():
    found = fleets(
        curve(H100, 5.0, 1.0),
        curve(A100, 10.0, 3.0),
        curve(L40S, 1.0, 0.5),
    )
    dearest = [*naive_choices(found)][-1]
    assert dearest.question == "buy the priciest accelerator"
    assert dearest.extra_usd_per_month == pytest.approx((3 - 2) * 730)
    assert len([*naive_choices(fleets(curve(H100, 5.0, 1.0)))]) == 1
