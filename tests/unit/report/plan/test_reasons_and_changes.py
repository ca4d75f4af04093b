"""Explanations, differences and plan files: every reason, every change, nothing twice."""

import json
from dataclasses import replace

import pytest
import yaml

from fakes.plans import answer
from fakes.results import GOLDEN_PLANS, column, example_plan, figure, golden_plan, lines, titled
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of
from gpuplan.report.plan.comparison import explain_sheet
from gpuplan.report.plan.difference import diff_sheet
from gpuplan.report.plan.document import plan_document, plan_text
from gpuplan.report.table import to_csv


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_a_plan_file_reads_back_to_the_same_answer(path):
    found = golden_plan(path)
    text = plan_text(found)
    assert plan_of(read_yaml_text(text, name="plan.yaml")) == found
    assert plan_text(found) == text


def test_a_plan_file_is_plain_yaml_without_anchors():
    text = plan_text(example_plan("chat"))
    assert not any(mark in text for mark in ("&id", "*id", "!!"))
    assert text.startswith("# A plan made by gpuplan.")
    assert yaml.safe_load(text)["kind"] == "gpuplan-plan"


def test_columns_of_numbers_stay_on_a_line():
    found = example_plan("chat")
    assert found.charts
    numbers = [line for line in plan_text(found).splitlines() if line.lstrip().startswith("x: [")]
    assert len(numbers) == len(found.charts)


def test_the_document_is_the_answer_and_its_verdict():
    found = example_plan("chat")
    document = plan_document(found)
    assert document["feasible"] is True
    assert document["gap"] == found.gap_frac
    assert len(document["rejected"]) == len(found.rejected)
    json.dumps(document, allow_nan=False)


def bare(text):
    """The same whether accelerators stand there by id or by name."""
    return text.lower().replace("-", " ").replace("×", "x").replace(" tp1", "")


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_explanations_hold_every_reason(path):
    found = golden_plan(path)
    sheet = explain_sheet(found)
    why = found.explanation
    if why.why:
        reasons = column(titled(sheet, "Why this plan"), "reason")
        assert list(map(bare, reasons)) == list(map(bare, why.why))
    if why.why_not:
        asked = column(titled(sheet, "Why not …"), "question")
        assert list(map(bare, asked)) == [bare(q.question) for q in why.why_not]
        assert not any("-sxm" in each or " x " in each for each in asked), "ids for names"
    assert lines(sheet, "What the next $10,000 buys best:") == why.next_spend
    assert len(lines(sheet, "Assumptions:")) == len(found.assumptions)


def test_rejected_candidates_are_cut_on_a_screen_and_whole_in_files():
    found = example_plan("chat")
    sheet = explain_sheet(found)
    [short] = [t for t in sheet.tables if t.title.startswith("Rejected")]
    assert short.title == f"Rejected candidates; 20 of {len(found.rejected)}"
    assert len(titled(sheet, "Rejected").rows) == len(found.rejected)
    assert to_csv(sheet).count("add a10 to policy.accelerators.allowed") >= 1


def test_sensitivities_show_low_before_high():
    table = titled(explain_sheet(example_plan("coding-agents")), "Sensitivity of the cost")
    for low, high in zip(
        column(table, "low ($/month)"), column(table, "high ($/month)"), strict=True
    ):
        assert figure(low) <= figure(high)


def test_the_fleet_of_least_regret_is_marked_once():
    found = example_plan("coding-agents")
    table = titled(explain_sheet(found), f"{found.uncertainty.n_samples} samples of")
    marked = [cell for cell in column(table, "fleet") if "← least regret" in cell]
    assert list(map(bare, marked)) == [bare(f"{found.uncertainty.least_regret} ← least regret")]


def test_growth_is_shown_where_demand_grows():
    table = titled(explain_sheet(example_plan("growth")), "If demand grows")
    assert len(table.rows) == 3
    assert not any(t.title == "If demand grows" for t in explain_sheet(example_plan("chat")).tables)


def test_where_another_choice_takes_over():
    found = example_plan("which-gpu")
    table = titled(explain_sheet(found), "Crossover points")
    assert len(table.rows) == len(found.explanation.crossovers)


def test_an_explanation_says_what_it_was_made_with():
    [line] = lines(explain_sheet(answer()), "Made with:")
    made = answer().provenance
    assert made.package_version in line
    assert f"seed {made.seed}" in line


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_no_plan_differs_from_itself(path):
    found = golden_plan(path)
    sheet = diff_sheet(found, found)
    assert sheet.document["is_same"] is True
    assert sheet.document["changes"] == []
    assert sheet.tables == ()
    assert sheet.head == "the plans are the same"


def test_a_difference_names_fleet_cost_and_input():
    sheet = diff_sheet(answer(6), answer(8, users=9000))
    assert sheet.document["is_same"] is False
    assert sheet.document["cost_difference_usd_per_month"] == pytest.approx(5.9 * 730)
    changed = {row[0]: row[1:] for row in titled(sheet, "What changed").rows}
    assert changed["chat"][0].startswith("6 × H100 SXM")
    assert changed["chat"][1].startswith("8 × H100 SXM")
    assert "(+$4,307)" in changed["cost ($/month)"][1]
    inputs = titled(sheet, "Inputs that changed").rows
    assert ("workloads[0].demand.users", "6000", "9000") in inputs


def test_a_difference_is_the_other_way_round_backwards():
    there, back = (diff_sheet(a, b) for a, b in ((answer(6), answer(8)), (answer(8), answer(6))))
    for ahead, behind in zip(there.document["changes"], back.document["changes"], strict=True):
        assert ahead["what"] == behind["what"]
    assert there.document["cost_difference_usd_per_month"] == pytest.approx(
        -back.document["cost_difference_usd_per_month"]
    )


def test_losing_the_plan_is_a_change_without_a_cost():
    nothing = replace(answer(), plan=None)
    sheet = diff_sheet(answer(), nothing)
    assert sheet.document["cost_difference_usd_per_month"] is None
    changed = {row[0]: row[1:] for row in titled(sheet, "What changed").rows}
    assert changed["feasible"] == ("yes", "no")
    assert changed["chat"][1] == "–"


def test_both_plans_head_the_difference():
    head = diff_sheet(answer(6), answer(8)).head
    before, after = head.split("\n")
    assert "6 × H100 SXM" in before
    assert after.startswith("→ ")
    assert "8 × H100 SXM" in after


def test_an_input_that_is_added_was_absent_before():
    made = answer().provenance
    more = replace(
        answer(), provenance=replace(made, scenario={**made.scenario, "budget": {"x": 1}})
    )
    rows = titled(diff_sheet(answer(), more), "Inputs that changed").rows
    assert rows == (("budget.x", "–", "1"),)
