"""The table of a plan: what it shows, what it sorts by, and why not."""

import pytest

from gpuplan.server.web.drawings import cost_against_odds, curves, heat_map, thinned
from gpuplan.server.web.shown import LAST, Limits, comparison, figures, rejections, targets

FREE = Limits(None, None)


def row(accelerator="h100-sxm", **keys):
    layout = {"tp": 4, "pp": 1, "dp": 1, "ep": 1, "cp": 1, "share": ""}
    first = {
        "workload": "chat",
        "accelerator": accelerator,
        "precision": "fp8",
        "layout": layout,
        "n_replicas": 2,
        "n_accelerators": 8,
        "usd_per_month": 18_980.0,
        "usd_per_million_tokens": 6.19,
        "latency": {"ttft_p95_s": 0.402, "tpot_p95_s": 0.031},
        "probability_frac": 0.84,
        "is_chosen": False,
        "is_eligible": True,
        "power_w": 9880.0,
        "price_source": "on_demand verda 4H100 FIN-03",
        "note": "",
        "reason": "",
        "relaxation": "",
        "run": None,
    }
    return {**first, **keys}


def rejected_row(**keys):
    gone = {"layout": None, "n_accelerators": 0, "usd_per_month": None, "latency": {}}
    gone |= {"usd_per_million_tokens": None, "probability_frac": None, "power_w": None}
    return row("l4", **gone, price_source="", reason="too small", relaxation="tp 8", **keys)


def document(*rows, **keys):
    return {"comparison": list(rows), "alternatives": [], **keys}


def test_a_row_says_accelerator_precision_and_purchase_option():
    [found] = comparison(document(row(is_chosen=True)), FREE).rows
    assert (found.accelerator, found.precision, found.purchase) == ("H100 SXM", "FP8", "on demand")
    assert found.where == "verda 4H100 FIN-03"
    assert found.layout == "2 × TP4"
    assert [cell.text for cell in found.cells] == [
        "8",
        "$18,980",
        "6.19",
        "402",
        "31",
        "84 %",
        "9.9",
    ]
    assert found.status == "chosen"


def test_columns_are_named_by_quantity_and_unit():
    found = comparison(document(row()), FREE)
    wanted = ("GPUs", "$/month", "$/M tokens", "TTFT p95 (ms)", "TPOT p95 (ms)", "P(SLO)", "kW")
    assert found.columns == wanted
    assert not found.is_mixed


def test_what_cannot_run_says_why_and_sorts_last():
    found = comparison(document(row(is_chosen=True), rejected_row()), FREE).rows[1]
    assert found.status == "rejected"
    assert found.why == "too small; tp 8"
    assert [cell.sort for cell in found.cells] == [LAST] * 5 + [-1.0, LAST]


def test_limits_of_the_page_mark_rows():
    [found] = comparison(document(row()), Limits(10_000.0, 9.0)).rows
    assert found.over == ("$8,980/month over budget", "0.9 kW over the power limit")
    assert comparison(document(row()), Limits(20_000.0, 10.0)).rows[0].over == ()


def test_other_purchase_options_of_a_fleet_are_rows_of_their_own():
    other = {"workload": "chat", "accelerator": "h100-sxm", "precision": "fp8", "purchase": "spot"}
    other |= {"source": "aws p5 us-east-1", "usd_per_month": 9490.0, "note": "may be reclaimed"}
    found = comparison(document(row(is_chosen=True)), FREE, [other]).rows
    assert [each.status for each in found] == ["chosen", "not in the plan"]
    last = found[1]
    assert (last.purchase, last.where, last.usd) == ("spot", "aws p5 us-east-1", 9490.0)
    assert (last.why, last.layout, last.kw) == ("may be reclaimed", "2 × TP4", found[0].kw)
    assert last.cells[2].text == f"{6.19 / 2:,.2f}"


def test_runs_have_days_total_and_mfu():
    run = {"wall_s": 2 * 86400.0, "total_usd": 5000.0, "mfu_frac": 0.41}
    found = comparison(document(row(run=run, latency={})), FREE)
    assert found.columns[:4] == ("GPUs", "days", "$ total", "MFU")
    assert [cell.text for cell in found.rows[0].cells[1:4]] == ["2", "$5,000", "41 %"]


def test_a_deadline_is_told_in_hours():
    slo = {"what": "deadline", "reached_s": {"value": 57_693.2}, "limit_s": 86_400.0}
    [found] = targets({"plan": {"slo": {"promises": [{**slo, "is_kept": True}]}}})
    assert (found.name, found.text) == ("Deadline", "16.0 h of 24.0 h")


def test_targets_say_how_much_of_each_slo_is_used():
    slo = {"what": "ttft p95", "limit_s": 2.0, "is_kept": True, "reached_s": {"value": 0.5}}
    given = {**slo, "reached_s": None}
    [found] = targets({"plan": {"slo": {"promises": [slo, given]}}})
    assert (found.name, found.text, found.used_frac) == ("TTFT p95", "500 ms of 2,000 ms", 0.25)


def test_figures_of_a_plan():
    plan = {
        "cost_usd_per_month": {"value": 100_000.0, "low": 90_000.0, "high": 110_000.0},
        "power_w": {"value": 9880.0},
        "pools": [{"accelerator": "h100-sxm", "n_accelerators": 8}],
    }
    found = {name: (value, beside) for name, value, beside in figures({"plan": plan})}
    assert found["Cost per month"] == ("$100,000", "$90,000 … $110,000")
    assert found["GPUs"] == ("8", "H100 SXM")
    two = figures({"plan": {**plan, "pools": plan["pools"] * 2}})
    assert two[1] == ("GPUs", "16", "8 × H100 SXM, 8 × H100 SXM")
    assert found["Power at the peak"][0] == "9.9 kW"
    assert figures({"plan": None}) == []


def test_rejections_with_a_remedy_come_first_and_policy_is_no_news():
    rows = [
        {"candidate": "a", "constraint": "memory", "relaxation": ""},
        {"candidate": "b", "constraint": "slo", "relaxation": "tp 2"},
        {"candidate": "c", "constraint": "policy", "relaxation": "allow it"},
    ]
    assert [each["candidate"] for each in rejections({"rejected": rows})] == ["b", "a"]


def test_the_picture_marks_the_plan_and_the_target():
    rows = comparison(document(row(is_chosen=True), row("mi300x", usd_per_month=5000.0)), FREE).rows
    picture = cost_against_odds(rows, 0.8)
    assert picture.count("<circle") == 2
    assert "dot chosen" in picture
    assert "asked for: 80%" in picture
    assert "style=" not in picture  # the content policy forbids it
    assert cost_against_odds(rows[:1], 0.8) == ""


def test_names_in_a_picture_do_not_hide_each_other():
    rows = [row(f"card{i}", usd_per_month=10_000.0 + i) for i in range(9)]
    picture = cost_against_odds(comparison(document(*rows), FREE).rows, None)
    assert picture.count("CARD") - picture.count("<title>") + 1 <= 2 + 1


def test_the_plans_own_charts_are_drawn():
    curve = {"chart": "cost", "name": "a", "x_name": "x", "y_name": "y", "x": [0, 1], "y": [1, 2]}
    [(title, picture)] = curves({"charts": [curve]})
    assert title == "cost"
    assert "<polyline" in picture


def test_a_chart_of_cost_marks_the_planned_load_and_a_flat_one_is_left_out():
    title = "Monthly cost of chat over load"
    cost = {"chart": title, "name": "h100-sxm", "x_name": "x", "y_name": "y"}
    flat = {**cost, "chart": "Utilization", "x": [0, 168], "y": [80.0, 80.0]}
    load = [{"workload": "chat", "peak_requests_per_s": 2.0}]
    [found] = curves({"charts": [{**cost, "x": [1, 3], "y": [1, 2]}, flat], "load": load})
    assert found[0] == title
    assert ">planned<" in found[1]


def test_figures_of_growth_say_what_is_now_and_what_is_the_mean():
    pool = {"n_accelerators": 4, "accelerator": "h100-sxm"}
    periods = [{"n_accelerators": 4}, {"n_accelerators": 7}]
    cost = {"value": 10.0, "low": 9.0, "high": 12.0}
    plan = {"cost_usd_per_month": cost, "pools": [pool], "by_period": periods}
    found = {name: beside for name, _, beside in figures({"plan": plan})}
    assert found["GPUs now"] == "H100 SXM, 7 at the end"
    assert "Cost per month, on average" in found


def test_a_heat_map_has_a_cell_for_each_value():
    picture = heat_map(["gpu 0", "<b>"], [[0.0, 0.5, None], [0.8, 0.92, 0.99]], "Utilization")
    assert picture.count("<rect") == 6
    assert [f"b{i}" in picture for i in (0, 2, 3, 4, 5)] == [True] * 5
    assert "&lt;b&gt;" in picture
    assert heat_map([], [], "nothing") == ""


@pytest.mark.parametrize(("n", "most"), [(10, 10), (97, 49), (1000, 91)])
def test_long_recordings_are_thinned_to_means(n, most):
    [found] = thinned([[0.5] * n])
    assert len(found) == most
    assert set(found) == {0.5}
    assert thinned([[None, None]]) == [[None, None]]
