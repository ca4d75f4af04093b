"""The same plan as Markdown, JSON, CSV, a workbook and pictures: one number everywhere."""

import io
import json
import re
import zipfile
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from fakes.plans import answer
from fakes.results import GOLDEN_PLANS, example_plan, golden_plan
from gpuplan.cli.explain import ReportForm
from gpuplan.report.formats import usd
from gpuplan.report.page import svg_style
from gpuplan.report.page.files import FORMS, chart_files, plan_file
from gpuplan.report.plan.headline import headline

PNG = b"\x89PNG\r\n"


def cells(workbook: bytes) -> str:
    """All text and figures of a workbook."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as packed:
        names = [n for n in packed.namelist() if n.endswith(".xml")]
        return " ".join(packed.read(name).decode() for name in names)


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_the_monthly_cost_is_one_number_in_every_form(path):
    found = golden_plan(path)
    if found.plan is None:
        pytest.skip("no plan, no cost")
    value = found.plan.cost_usd_per_month.value
    for form in ("html", "md", "csv"):
        assert usd(value) in plan_file(found, form).replace("&#39;", "'")
    document = json.loads(plan_file(found, "json"))
    assert document["plan"]["cost_usd_per_month"]["value"] == pytest.approx(value)
    assert usd(value) in plan_file(found, "html")


def test_a_workbook_has_a_tab_for_each_table_and_numbers_as_numbers():
    found = example_plan("chat")
    text = cells(plan_file(found, "xlsx"))
    value = found.plan.cost_usd_per_month.value
    assert f"<v>{value:.0f}</v>" in text
    tabs = re.findall(r'<sheet name="([^"]+)"', text)
    assert len(tabs) == len({tab.lower() for tab in tabs}) >= 4
    assert all(len(tab) <= 31 for tab in tabs)


def test_text_that_looks_like_a_formula_stays_text():
    text = cells(plan_file(replace(answer(), name="=1+1"), "xlsx"))
    assert "<f>" not in text


def test_markdown_begins_with_the_answer_and_names_risks_and_steps():
    found = example_plan("chat")
    text = plan_file(found, "md")
    assert text.startswith(f"# {headline(found)}\n")
    assert text.index("## What could go wrong") < text.index("## What to do next")


def test_every_chart_is_a_drawing_that_stands_alone():
    files = dict(chart_files(example_plan("chat")))
    drawings = {name: content for name, content in files.items() if name.endswith(".svg")}
    assert len(drawings) >= 3
    for content in drawings.values():
        root = ElementTree.fromstring(content)
        assert root.tag.endswith("svg")
        assert b"var(--" not in content
    pictures = [content for name, content in files.items() if name.endswith(".png")]
    assert pictures
    assert all(content.startswith(PNG) for content in pictures)


def test_the_style_of_drawings_has_its_colours_in_it():
    assert ".curve{" in svg_style()
    assert "var(" not in svg_style()
    assert ".card" not in svg_style()


def test_forms_are_those_that_the_command_offers():
    assert set(FORMS) == {form.value for form in ReportForm}
