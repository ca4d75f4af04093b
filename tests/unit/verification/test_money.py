"""Sums of a plan, broken one at a time."""

from gpuplan.units import MONTH
from gpuplan.verification.money import money_checks


def test_purchases_are_nodes_times_price_times_hours(document, pool, failed):
    pool["purchases"][0]["usd_per_month"] *= 1.01
    found = failed(money_checks(document))
    assert any(name.startswith("purchase 1") for name in found)
    assert "bill: purchases add up to the bill" in found


def test_cost_lines_add_up(document, failed):
    document["plan"]["cost_lines"].append({"what": "staff", "usd_per_month": 1.0})
    assert "bill: cost lines add up to the monthly cost" in failed(money_checks(document))


def test_the_total_is_its_months(document, failed):
    document["plan"]["cash_flow"] = []  # sums without dates: the months alone are judged
    document["plan"]["total_usd"] += 100.0
    assert failed(money_checks(document)) == ["bill: months of the span make the total"]


def test_a_short_run_is_billed_in_its_one_month(document, failed):
    document["plan"]["cash_flow"] = []  # sums without dates: the months alone are judged
    plan = document["plan"]
    plan["span_s"] = MONTH / 1000
    plan["total_usd"] = plan["cost_usd_per_month"]["value"]
    assert not failed(money_checks(document))
    plan["total_usd"] /= 1000
    assert failed(money_checks(document)) == ["bill: months of the span make the total"]


def test_runs_that_end_before_the_services_make_the_total_less(document, failed):
    document["plan"]["cash_flow"] = []  # sums without dates: the months alone are judged
    job = {"name": "docs", "kind": "batch_inference", "batch": {"docs": 1e6, "deadline_h": 24}}
    document["provenance"]["scenario"]["workloads"].append(job)
    document["plan"]["total_usd"] -= 100.0
    assert not failed(money_checks(document))
    document["plan"]["total_usd"] += 200.0
    assert failed(money_checks(document)) == ["bill: months of the span make the total"]


def test_an_alternative_stands_on_the_basis_of_the_plan(document, failed):
    cost = document["plan"]["cost_usd_per_month"]["value"]
    row = {"fleet": "4 x l40s", "usd_per_month": cost + 10, "extra_usd_per_month": 10.0}
    document["alternatives"] = [row]
    assert not failed(money_checks(document))
    row["extra_usd_per_month"] = 0.0
    [name] = failed(money_checks(document))
    assert name == "alternative 1 (4 x l40s): difference from the plan"


def test_a_bound_above_the_bill_is_no_bound(document, failed):
    document["proof"]["bound_usd"] = 2 * document["proof"]["bill_usd"]
    assert "proof: the bound is no dearer" in failed(money_checks(document))


def test_a_gap_that_is_understated_is_found(document, failed):
    document["proof"]["bound_usd"] = 0.5 * document["proof"]["bill_usd"]
    assert "proof: gap" in failed(money_checks(document))


def test_every_range_holds_its_value(document, failed):
    document["plan"]["power_w"]["low"] = 2 * document["plan"]["power_w"]["value"]
    assert "range of plan.power_w: low" in failed(money_checks(document))
