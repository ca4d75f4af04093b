"""Work per dollar and joule by hand, the calendar of a week, engines side by side."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest

from fakes.fleets import candidate, demand, estimate, rate, sized, sizing
from fakes.plans import answer, chosen, comparison_row, decision, pool
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.columns import floats, ints
from gpuplan.domain.money.rates import PriceEvidence
from gpuplan.domain.plan.comparison import RowEvidence
from gpuplan.domain.plan.selection import FleetOption, NodePool, ProvisionedNodes
from gpuplan.domain.requests.plan import PlanBasis, PlanRequest
from gpuplan.errors import InputError
from gpuplan.studies.explanation.alternatives import spot_prices
from gpuplan.studies.explanation.engines import best_engine, request_for
from gpuplan.studies.explanation.growth import calendar_of
from gpuplan.studies.explanation.rivals import ACCURACY, purchase_answers, quality_lines, trade_rows
from gpuplan.studies.explanation.rows import PricedRow
from gpuplan.units import HOUR


def choice_of(need, hour_s, *, n_reserve=0, is_jobs=False, n_per_node=2, usd=6.0):
    """A service or job on nodes of a pool, rented at one price."""
    need = np.array(need).reshape(1, 1, -1)
    option = FleetOption(workload="w", name="o", pool="p", need=ints(need), n_reserve=n_reserve)
    held = ProvisionedNodes(
        terms="t",
        pool="p",
        purchase="on_demand",
        n_nodes=ints((need + n_per_node - 1) // n_per_node),
    )
    node = NodePool(name="p", accelerator="h100-sxm", n_accelerators_per_node=n_per_node)
    horizon = SimpleNamespace(hour_s=floats(hour_s))
    price = SimpleNamespace(price_usd_per_h=SimpleNamespace(mid=usd))
    return SimpleNamespace(
        is_jobs=is_jobs,
        repeats=False,
        selection=SimpleNamespace(chosen=(option,), provisioned=(held,)),
        table=SimpleNamespace(problem=SimpleNamespace(horizon=horizon), rates={"t": price}),
        pool=lambda _: node,
    )


def priced(capacity, *, power_w=1000.0, usd=6.0):
    row = comparison_row(
        evidence=RowEvidence(is_eligible=True, power_w=power_w, tier="fitted", price_source="")
    )
    fleet = sized(3, kind="h100-sxm", capacity_per_s=estimate(capacity))
    return PricedRow(row, choice_of([4], [HOUR], usd=usd), fleet)


def test_tokens_per_dollar_and_joule_of_one_accelerator():
    """5 requests/s of 300 tokens on one accelerator at $3; 2 requests/s offered at 1 kW."""
    load = demand(2.0, output_tokens=300.0)
    (row,) = trade_rows([priced(5.0)], load, read_catalog())
    assert row.n_work_per_s == pytest.approx(1500.0)
    assert row.usd_per_h == pytest.approx(3.0)
    assert row.n_work_per_usd == pytest.approx(1500 * 3600 / 3.0)
    assert row.n_work_per_j == pytest.approx(2.0 * 300 / 1000.0)
    assert (row.unit, row.accelerator) == ("output tokens", "h100-sxm")
    assert row.memory_bytes_per_s == pytest.approx(3.35e12, rel=0.01)


def test_work_without_tokens_counts_requests():
    load = demand(2.0, output_tokens=0.0)
    (row,) = trade_rows([priced(5.0, power_w=None, usd=0.0)], load, read_catalog())
    assert (row.unit, row.n_work_per_s) == ("requests", 5.0)
    assert (row.n_work_per_j, row.n_work_per_usd) == (None, None)


def test_rows_without_a_fleet_have_no_trade():
    assert [*trade_rows([PricedRow(comparison_row())], demand(1.0), read_catalog())] == []


def test_quality_is_said_of_precision_alone():
    lines = quality_lines(chosen())
    assert lines[0] == ACCURACY
    assert lines[1].startswith("chat in fp8: low")
    wide = replace(chosen(), pools=(replace(pool(), precision="bf16"),))
    assert quality_lines(wide) == (ACCURACY,)


def group(choice):
    return SimpleNamespace(choice=choice)


def test_a_profile_of_a_day_repeats_over_the_week_spares_included():
    day = [0] * 8 + [3] * 16
    found = calendar_of([group(choice_of(day, [HOUR] * 24, n_reserve=1))])
    (row,) = found.rows
    assert len(found.hours) == len(row.accelerators) == 168
    assert row.accelerators[:24] == (0,) * 8 + (4,) * 16
    assert row.accelerators[24:48] == row.accelerators[:24]
    assert (row.kind, found.remark) == ("service", "")


def test_a_load_duration_curve_has_no_order_and_says_so():
    """60 for 20 hours, 16 for the other 148."""
    found = calendar_of([group(choice_of([60, 16], [20 * HOUR, 148 * HOUR]))])
    assert found.rows[0].accelerators == (60,) * 20 + (16,) * 148
    assert "not when" in found.remark


def test_a_job_takes_its_hours_and_then_none():
    choice = choice_of([8, 8, 0], [10 * HOUR] * 3, is_jobs=True)
    (row,) = calendar_of([group(choice)]).rows
    assert row.accelerators == (8,) * 20 + (0,) * 148
    assert row.kind == "job"


def test_nothing_chosen_is_an_empty_calendar():
    assert calendar_of([]).hours == ()


def test_spot_is_priced_and_not_planned_with():
    weak = PriceEvidence(source="list")
    market = SimpleNamespace(
        rates=(rate("a", 0.5, purchase="spot"), rate("a", 1.0)),
        shown=(rate("a", 0.9, purchase="spot", n=2, evidence=weak),),
    )
    mine = sizing(10.0, sized=(sized(3, n_spare=1),))
    (found,) = spot_prices(market, mine, chosen_usd=4 * 730.0)
    assert found.usd_per_month == pytest.approx(2 * 0.9 * 730)  # two nodes of two beat four of one
    assert found.extra_usd_per_month == pytest.approx((1.8 - 4.0) * 730)
    assert "reclaimed" in found.remark
    assert [*spot_prices(SimpleNamespace(rates=(), shown=()), mine, chosen_usd=1.0)] == []


def test_purchase_options_without_a_price_say_so():
    fleets = SimpleNamespace(
        chosen=SimpleNamespace(kind="a", candidate=candidate()),
        sizing=sizing(),
        fleet_name=lambda _: "4 x a",
    )
    none = [*purchase_answers(fleets, SimpleNamespace(rates=(rate("a", 1.0),), shown=()))]
    assert [one.question for one in none] == ["reserved capacity, for w", "spot capacity, for w"]
    assert "prices.offers" in none[0].answer
    spot = SimpleNamespace(rates=(), shown=(rate("a", 0.5, purchase="spot"),))
    assert [one.question.split()[0] for one in purchase_answers(fleets, spot)] == ["reserved"]


def test_the_cheapest_engine_wins_and_the_other_stands_beside_it():
    dear, cheap = answer(8), answer(6)
    found = best_engine(("vllm", "sglang"), (dear, cheap))
    assert found.plan == cheap.plan
    n = len(decision().comparison)
    assert len(found.decision.comparison) == 2 * n
    assert not any(row.is_chosen for row in found.decision.comparison[n:])
    other = found.alternatives[-1]
    assert (other.kind, "vllm" in other.fleet) == ("another engine", True)
    usd = [each.plan.cost_usd_per_month.value for each in (dear, cheap)]
    assert other.extra_usd_per_month == pytest.approx(usd[0] - usd[1])


def test_an_engine_without_a_plan_does_not_win():
    lost = replace(answer(), plan=None)
    assert best_engine(("vllm", "sglang"), (lost, answer())).plan is not None
    assert best_engine(("vllm", "sglang"), (lost, lost)) is lost


def test_each_engine_is_asked_for_by_its_key():
    asked = PlanRequest(
        target="x", today=date(2026, 11, 1), basis=PlanBasis(engines=("vllm", "sglang"))
    )
    made = request_for(asked, "sglang")
    assert made.changes == ("site.software.framework=sglang",)
    assert made.basis.engines == ()
    with pytest.raises(InputError, match="vllm or sglang"):
        request_for(asked, "tgi")
