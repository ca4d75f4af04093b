"""Plans, their reasons, their differences and their page say what the plan says."""

import json
import re
from dataclasses import replace

import pytest

from fakes.plans import answer, chosen
from gpuplan.domain.plan.answer import Explanation
from gpuplan.report.charts.axis import tick_label, ticks
from gpuplan.report.page.charts import line_chart, tornado_chart
from gpuplan.report.page.plan import plan_page
from gpuplan.report.plan.answer import plan_sheet
from gpuplan.report.plan.comparison import explain_sheet
from gpuplan.report.plan.difference import diff_sheet
from gpuplan.report.table import to_markdown

NO_PLAN = replace(
    answer(),
    plan=None,
    proof=None,
    uncertainty=None,
    charts=(),
    explanation=Explanation(conflicts=("site.power_kw: 3 kW short",)),
)


def test_document_keeps_the_contract():
    document = json.loads(json.dumps(plan_sheet(answer()).document, allow_nan=False))
    assert document["feasible"] is True
    assert document["gap"] == 0.0
    found = document["plan"]["pools"][0]
    wanted = {"workload", "accelerator", "n_accelerators", "n_replicas", "tp", "pp", "precision",
              "source"}  # fmt: skip
    assert wanted <= set(found)
    assert {"value", "low", "high"} <= set(document["plan"]["cost_usd_per_month"])
    assert {"power_w", "slo"} <= set(document["plan"])
    assert {"candidate", "reason", "relaxation"} <= set(document["rejected"][0])
    assert {"alternatives", "assumptions", "schema_version"} <= set(document)


def test_head_says_what_how_many_and_how_much():
    head = plan_sheet(answer()).head
    assert "6 × H100 SXM (3 replicas, TP2)" in head
    assert "$12,921/month" in head
    assert "on demand at Acme" in head


def test_broken_promises_are_loud():
    broken = plan_sheet(answer(plan=chosen(is_kept=False)))
    assert "VIOLATED: chat TTFT p95" in broken.head
    assert any("VIOLATED" in row for table in broken.tables for row in table.rows)


def test_without_a_plan_the_conflict_is_told():
    sheet = plan_sheet(NO_PLAN)
    assert "No plan meets every limit" in sheet.head
    assert sheet.document["feasible"] is False
    assert sheet.document["gap"] is None
    assert "site.power_kw" in plan_page(NO_PLAN)


def test_explanation_answers_why_not():
    text = to_markdown(explain_sheet(answer()))
    assert "the priciest" in text
    assert "5.2 requests/s" in text
    assert "least regret" in text


def test_a_plan_does_not_differ_from_itself():
    sheet = diff_sheet(answer(), answer())
    assert sheet.document["is_same"]
    assert not sheet.tables


def test_difference_names_fleet_cost_and_input():
    sheet = diff_sheet(answer(6), answer(8, users=9000))
    text = to_markdown(sheet)
    assert "workloads[0].demand.users" in text
    assert "8 × H100 SXM" in text
    assert sheet.document["cost_difference_usd_per_month"] == pytest.approx(5.9 * 730)


def test_page_asks_nothing_of_the_network():
    page = plan_page(answer())
    assert not re.search(r"(src|href)\s*=", page)
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page


def test_page_escapes_what_users_wrote():
    page = plan_page(replace(answer(), name="<img onerror=1>"))
    assert "<img" not in page


def test_page_holds_the_answer_charts_and_reasons():
    page = plan_page(answer())
    for wanted in ("6 × H100 SXM", "$12,921", "the priciest", "growth.per_month_frac", "<svg"):
        assert wanted in page
    # Two lines of one chart, which stands on the first screen and in its section.
    assert page.count("<polyline") == 4


def test_empty_charts_draw_nothing():
    assert line_chart([]) == ""
    assert tornado_chart([], 1.0) == ""


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 97), (3.2, 3.3), (0, 2.4e6), (-5, 5)])
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert min(found) >= low - 1e-9
    assert max(found) <= high + 1e-9


def test_labels_are_short():
    assert [tick_label(v) for v in (0.5, 40, 12000, 2.5e6)] == ["0.5", "40", "12k", "2.5M"]
