"""One bill: every verb prints the same money, to the cent, at the time at which it is paid."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consistency.plans import failed, planned
from gpuplan.catalog.load import read_catalog
from gpuplan.pipeline.design import design_plan
from gpuplan.report.plan.difference import diff_sheet
from gpuplan.units import MONTH

CONSISTENCY = settings.get_profile("consistency")
CATALOG = read_catalog()


@st.composite
def fleets(draw):
    """Accelerators for so many hours, growing or not, owned, rented or bought."""
    growth = draw(st.sampled_from([None, {"low": 0.0, "mid": 0.03, "high": 0.06}]))
    tree = {
        "version": 1,
        "name": "drawn",
        "workloads": [
            {"name": "w", "kind": "generic", "work": {"accelerators": draw(st.integers(1, 60))}}
        ],
        "policy": {"accelerators": {"allowed": ["H100"]}},
        "budget": {
            "horizon_months": draw(st.sampled_from([12, 24, 36, 60])),
            "discount_rate_frac_per_year": draw(st.sampled_from([0.0, 0.08])),
        },
        "site": {"power_kw": 5000, "pue": 1.3, "electricity_usd_per_kwh": 0.12},
        "prices": {
            "offers": [
                {
                    "name": "cloud",
                    "accelerator": "H100",
                    "usd_per_accelerator_h": draw(st.sampled_from([1.5, 2.5, 4.0])),
                    "accelerators_per_node": draw(st.sampled_from([1, 8])),
                }
            ]
        },
    }
    if growth:
        tree["growth"] = {"per_month_frac": growth}
    if draw(st.booleans()):
        nodes = draw(st.integers(1, 4))
        tree["owned"] = [{"accelerator": "H100", "nodes": nodes, "accelerators_per_node": 8}]
    if draw(st.booleans()):
        tree["prices"]["hardware"] = [{"accelerator": "H100", "usd_per_node": 260_000}]
        tree["prices"]["staff_usd_per_year"] = draw(st.sampled_from([0, 90_000]))
    return tree


def cents(usd: float) -> int:
    return round(usd * 100)


@CONSISTENCY
@given(fleets())
def test_parts_make_the_bill_to_the_cent(tree):
    answer = planned(tree)
    plan, bill = answer.plan, answer.plan.bill
    months = plan.span_s / MONTH
    assert not failed(answer.proof.certificate)
    assert sum(cents(line.usd) for line in bill.cash_flow) == cents(bill.total_usd)
    assert cents(sum(x.usd_per_month for x in bill.cost_lines) * months) == cents(bill.total_usd)
    mean = sum(p.usd_per_month * p.span_s for p in bill.by_period) / plan.span_s
    assert mean == pytest.approx(plan.cost_usd_per_month.value, abs=0.01)
    by_cause = Counter()
    for line in bill.cash_flow:
        by_cause[line.what] += cents(line.usd)
    told = {x.what: cents(x.usd_per_month * months) for x in bill.cost_lines}
    assert {what: n for what, n in by_cause.items() if n} == pytest.approx(told, abs=1)


@CONSISTENCY
@given(fleets())
def test_a_plan_and_its_design_hold_the_same_money(tree):
    answer = planned(tree)
    money = design_plan(answer, CATALOG).money
    assert money.difference_cents == 0
    assert money.npv_usd == pytest.approx(answer.plan.bill.present_value_usd, rel=1e-6, abs=0.5)
    by_month = [0] * (money.statement.n_months + 1)
    for line in answer.plan.bill.cash_flow:
        if not line.span_s:
            by_month[round(line.start_s / MONTH)] += cents(line.usd)
    capital = ("hardware", "network", "spares", "freight", "tax", "installation", "residual")
    once = [0] * len(by_month)
    for line in money.statement.lines:
        if line.category in capital:
            once = [a + b for a, b in zip(once, line.cents, strict=True)]
    assert once == by_month  # bought in the month of the order, sold in the last


@CONSISTENCY
@given(fleets())
def test_a_discount_of_nothing_changes_nothing(tree):
    budget = {**tree["budget"], "discount_rate_frac_per_year": 0.0}
    bill = planned({**tree, "budget": budget}).plan.bill
    assert cents(bill.present_value_usd) == pytest.approx(cents(bill.total_usd), abs=1)


@CONSISTENCY
@given(fleets())
def test_the_middle_growth_is_the_plan(tree):
    answer = planned(tree)
    for row in answer.explanation.growth:
        if row.name == "mid":
            cost = answer.plan.cost_usd_per_month.value
            assert row.mean_usd_per_month == pytest.approx(cost, abs=0.01)


@CONSISTENCY
@given(fleets(), st.sampled_from([1.1, 2.0]))
def test_dearer_offers_never_make_a_plan_cheaper(tree, ratio):
    [offer] = tree["prices"]["offers"]
    dear = {**offer, "usd_per_accelerator_h": offer["usd_per_accelerator_h"] * ratio}
    other = {**tree, "prices": {**tree["prices"], "offers": [dear]}}
    first, second = (planned(each).plan.bill.present_value_usd for each in (tree, other))
    assert second >= first - 0.01


@CONSISTENCY
@given(fleets())
def test_a_plan_differs_from_itself_by_nothing(tree):
    answer = planned(tree)
    assert diff_sheet(answer, answer).document["cost_difference_usd_per_month"] == 0.0


@CONSISTENCY
@given(fleets(), st.sampled_from([50_000, 300_000]))
def test_staff_is_paid_once_or_not_at_all(tree, usd_per_year):
    prices = {**tree["prices"], "staff_usd_per_year": usd_per_year}
    answer = planned({**tree, "prices": prices})
    plan, bill = answer.plan, answer.plan.bill
    paid = sum(line.usd for line in bill.cash_flow if line.what == "staff")
    years = tree["budget"]["horizon_months"] / 12
    is_own = any(line.what == "hardware" for line in bill.cash_flow)
    is_own |= any(x.purchase == "existing" for pool in plan.pools for x in pool.purchases)
    assert paid == pytest.approx(usd_per_year * years if is_own else 0.0, abs=0.05)
    if "owned" in tree and not is_own:  # named beside the bill, not in it
        [line] = [line for line in answer.explanation.why if " stay idle" in line]
        assert f"${usd_per_year / 12:,.0f} of staff, not in the total" in line


def test_ranges_are_bills_at_other_loads():
    """More load, or growth of it, costs what a plan of that load costs; owned nodes count once."""
    tree = {
        "version": 1,
        "name": "growth",
        "workloads": [{"name": "all", "kind": "generic", "work": {"accelerators": 44.8}}],
        "owned": [{"accelerator": "A100", "nodes": 8, "accelerators_per_node": 8}],
        "growth": {"per_month_frac": 0.06},
    }
    answer = planned(tree)
    [bar] = [bar for bar in answer.uncertainty.tornado if bar.what == "demand"]
    ends = [float(end.strip("% ")) / 100 for end in bar.span.split(" of ")[0].split("…")]
    for end, usd in zip(ends, (bar.low_usd_per_month, bar.high_usd_per_month), strict=True):
        work = {"name": "all", "kind": "generic", "work": {"accelerators": 44.8 * end}}
        forced = planned({**tree, "workloads": [work]})
        assert usd == pytest.approx(forced.plan.cost_usd_per_month.value, rel=0.03)
    chart = next(each for each in answer.charts if each.chart.startswith("Monthly cost"))
    now = chart.y[18]  # of 59 from a tenth of the load to three times it
    assert now == pytest.approx(answer.plan.cost_usd_per_month.value, rel=0.01)


def test_a_run_beside_a_service_leaves_the_service_its_range():
    """A small run beside a service: the bill is as uncertain as that of the service alone."""
    chat = {
        "name": "chat",
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "demand": {"requests_per_s": 10},
        "request": {"input_tokens": 1000, "output_tokens": 200},
        "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
    }
    run = {
        "name": "run",
        "kind": "finetuning",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "training": {"method": "lora", "tokens": 2e7, "deadline_days": 1},
    }
    policy = {"accelerators": {"allowed": ["L40S"]}}
    tree = {"version": 1, "name": "both", "workloads": [chat], "policy": policy}
    alone, both = (planned({**tree, "workloads": works}) for works in ([chat], [chat, run]))
    narrow, wide = (each.plan.cost_usd_per_month for each in (alone, both))
    assert wide.value > narrow.value
    assert wide.high - wide.low >= 0.99 * (narrow.high - narrow.low) > 0
    assert wide.low <= wide.value <= wide.high
    assert both.uncertainty.cost_usd_per_month.value == pytest.approx(wide.value, abs=0.01)
    assert not failed(both.proof.certificate)
