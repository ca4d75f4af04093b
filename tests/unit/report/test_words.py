"""The field's words: no title, heading or label of any sheet speaks a language of its own."""

import re

import pytest

from fakes.plans import answer
from fakes.results import (
    GOLDEN_PLANS,
    checked,
    designed,
    diagnosis,
    fit,
    golden_plan,
    network,
    prediction,
    roofline,
    scale,
    simulation,
    survey,
    training_fit,
    training_run,
)
from gpuplan.report.plan.answer import plan_sheet
from gpuplan.report.plan.comparison import explain_sheet
from gpuplan.report.plan.difference import diff_sheet
from gpuplan.report.prediction.fit import fit_sheet, survey_sheet
from gpuplan.report.prediction.serving import network_sheet, predict_sheet, roofline_sheet
from gpuplan.report.prediction.training_run import run_sheet, scale_sheet, training_sheet
from gpuplan.report.simulation.run import simulate_sheet
from gpuplan.report.system.check import check_sheet
from gpuplan.report.system.design import design_sheet
from gpuplan.report.telemetry.diagnosis import diagnose_sheet

HOME_MADE = re.compile(
    r"\b(promis\w*|broken|kept|left out|urgenc\w+|whole answer|key-value|in all|price of|of hours"
    r"|how it is paid|machines?|devices?|mean use|how busy|told|objections?)\b",
    re.IGNORECASE,
)
SHEETS = {
    "plan": lambda: plan_sheet(answer()).with_details(),
    "explain": lambda: explain_sheet(answer()),
    "diff": lambda: diff_sheet(answer(6), answer(8)),
    "fit": lambda: fit_sheet(fit("H100", context_tokens=16000)),
    "survey": lambda: survey_sheet(survey()),
    "training fit": lambda: training_sheet(training_fit()),
    "predict": lambda: predict_sheet(prediction()),
    "roofline": lambda: roofline_sheet(roofline()),
    "network": lambda: network_sheet(network()),
    "training run": lambda: run_sheet(training_run(n_tokens=1e12)),
    "scale": lambda: scale_sheet(scale()),
    "simulate": lambda: simulate_sheet(simulation()),
    "check": lambda: check_sheet(checked("power-shortfall")),
    "design": lambda: design_sheet(designed("chat")),
    "diagnose": lambda: diagnose_sheet(diagnosis()),
}


def own_words(sheet):
    """What this room writes itself: titles, headings of columns and of remarks."""
    for table in sheet.file_tables:
        yield table.title
        yield from table.columns
    yield from (heading for heading, _ in sheet.remarks)


@pytest.mark.parametrize("name", SHEETS)
def test_titles_and_headings_use_the_fields_words(name):
    sheet = SHEETS[name]()
    for text in own_words(sheet):
        assert not HOME_MADE.search(text), text


@pytest.mark.parametrize("name", SHEETS)
def test_every_sheet_has_a_head_or_a_title(name):
    sheet = SHEETS[name]()
    assert sheet.head or any(table.title for table in sheet.tables)
    assert all(table.rows for table in sheet.tables)
    assert all(len(row) == len(table.columns) for table in sheet.tables for row in table.rows)


@pytest.mark.parametrize("name", SHEETS)
def test_what_is_set_right_is_a_column(name):
    for table in SHEETS[name]().file_tables:
        assert set(table.right) <= set(table.columns)
        assert len(set(table.columns)) == len(table.columns)


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_headlines_use_the_fields_words(path):
    found = golden_plan(path)
    head = plan_sheet(found).head.replace(found.name, "")
    for load in found.load:
        head = head.replace(load.workload, "")
    assert not HOME_MADE.search(head), head
