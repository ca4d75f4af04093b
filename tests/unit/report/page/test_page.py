"""The page of a plan and fragments for notebooks: whole, self-contained, and safe to open."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from markupsafe import escape

from fakes.plans import answer, chosen
from fakes.results import GOLDEN_PLANS, example_plan, golden_plan
from gpuplan.domain.plan.answer import Curve, Explanation
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.formats import percent, usd
from gpuplan.report.page import render, sheet_html
from gpuplan.report.page.charts import WIDTH, Bar, bars_chart, line_chart, tornado_chart
from gpuplan.report.page.plan import charts_of, plan_page
from gpuplan.report.plan.answer import plan_sheet
from gpuplan.report.plan.headline import headline, with_names

BARS = [Bar("a" * 28, 157_680.0, " · 84 % sure", False), Bar("b", 9.0, "", True)]
HOSTILE = "<img src=x onerror=alert(1)>\"'&"
VOID = {"meta", "img", "br", "rect", "line", "polyline", "input", "circle"}


class Balance(HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        assert self.open, f"{tag} was never opened"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def parsed(page):
    found = Balance()
    found.feed(page)
    found.close()
    return found


def test_amounts_of_bars_end_within_the_drawing():
    """On a phone letters are large beside the drawing: what is right-aligned is never cut."""
    drawn = bars_chart(BARS, "Cost")
    amount = re.search(r"<text([^>]*)>\$157,680", drawn)[1]
    assert f'x="{float(WIDTH)}"' in amount
    assert 'text-anchor="end"' in amount


def curve(name="a", y=(1.0, 2.0)):
    return Curve(
        chart="c", name=name, x_name="load", y_name="USD", x=tuple(map(float, range(len(y)))), y=y
    )


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_every_example_makes_a_well_formed_page(path):
    page = plan_page(golden_plan(path))
    found = parsed(page)
    assert not found.open
    assert found.tags.count("h1") == 1
    assert "table" in found.tags


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_every_page_asks_nothing_of_the_network(path):
    page = plan_page(golden_plan(path))
    assert not re.search(r"(src|href)\s*=\s*[\"']", page)
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


def test_the_page_begins_with_the_answer_in_a_sentence():
    texts = parsed(plan_page(example_plan("chat"))).texts
    assert headline(example_plan("chat")) in texts
    assert example_plan("chat").name in texts


def test_the_first_screen_has_cost_range_power_and_slos():
    found = example_plan("chat")
    page, cost = plan_page(found), found.plan.cost_usd_per_month
    first = page.partition('<p class="printing">')[0]
    texts = parsed(first).texts
    for wanted in (usd(cost.value), usd(cost.low), usd(cost.high), "SLOs, simulated"):
        assert wanted in texts
    share = percent(found.uncertainty.kept_frac)
    assert f"met with {share} probability" in texts
    assert any(text.endswith("kW") for text in texts)
    assert "svg" in parsed(first).tags
    assert "What could go wrong" in texts
    assert "What to do next" in texts


def test_a_deadline_is_not_called_an_slo():
    texts = parsed(plan_page(example_plan("large-training"))).texts
    assert "Deadline, by estimate" in texts
    assert "SLOs, by estimate" not in texts


def test_violated_slos_are_red():
    page = plan_page(answer(plan=chosen(is_kept=False)))
    assert '<dd class="bad">violated</dd>' in page
    assert re.search(r'class="[^"]*bad[^"]*">VIOLATED<', page)
    assert "VIOLATED" not in plan_page(answer())


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_every_section_asks_a_question_and_answers_it(path):
    page = plan_page(golden_plan(path))
    more = page.partition('<div class="more">')[2]
    questions = re.findall(r"<h2>(.*?)</h2>(.*?)</section>", more, re.DOTALL)
    assert questions
    for question, body in questions:
        assert question.endswith("?")
        assert re.search(r"<(li|td|svg)\b", body)


@pytest.mark.parametrize("path", GOLDEN_PLANS, ids=lambda path: path.stem)
def test_no_table_is_shown_twice_and_none_is_lost(path):
    found = golden_plan(path)
    titles = re.findall(r"<h3>(.*?)</h3>", plan_page(found))
    assert len(titles) == len(set(titles))
    for table in plan_sheet(found).file_tables:
        if table.title != "Figures":
            assert escape(table.title) in titles


def test_long_tables_are_folded_and_nothing_is_lost():
    found = example_plan("chat")
    page = plan_page(found)
    assert f"<summary>{len(found.rejected)} rows</summary>" in page
    texts = set(parsed(page).texts)
    assert {with_names(rejected.candidate) for rejected in found.rejected} <= texts


def test_every_assumption_is_on_the_page_with_its_key():
    found = example_plan("chat")
    texts = set(parsed(plan_page(found)).texts)
    for assumption in found.assumptions:
        assert assumption.what in texts
        assert assumption.change in texts or not assumption.change


@pytest.mark.parametrize("field", ["name"])
def test_what_users_wrote_is_text(field):
    page = plan_page(replace(answer(), **{field: HOSTILE}))
    assert "<img" not in page
    assert HOSTILE in parsed(page).texts


def test_hostile_reasons_assumptions_and_curves_are_text():
    assumed = Assumption(what=HOSTILE, value=HOSTILE, why=HOSTILE, change=HOSTILE, source="")
    found = replace(
        answer(), assumptions=(assumed,), explanation=Explanation(why=(HOSTILE,)),
        charts=(curve(HOSTILE),),
    )  # fmt: skip
    page = plan_page(found)
    assert "<img" not in page
    assert "onerror=alert(1)>" not in page


def test_without_a_plan_the_page_says_what_binds():
    found = replace(
        answer(), plan=None, proof=None, uncertainty=None, charts=(),
        explanation=Explanation(conflicts=("site.power_kw: cannot be kept", "3 kW short")),
    )  # fmt: skip
    page = plan_page(found)
    assert "No plan meets every limit" in page
    assert "3 kW short" in page
    assert 'class="cards"' not in page
    assert not parsed(page).open


def test_the_footer_says_what_the_plan_was_made_with():
    made = answer().provenance
    page = plan_page(answer())
    assert f"gpuplan {made.package_version}" in page
    assert made.catalog_sha256[:12] in page
    assert f"planned on {made.as_of}" in page


def test_the_same_plan_is_the_same_bytes():
    assert plan_page(example_plan("chat")) == plan_page(example_plan("chat"))


def test_a_name_that_a_template_lacks_is_an_error():
    with pytest.raises(Exception, match="undefined"):
        render("charts.html.j2", title="t")


def test_curves_share_axes_and_have_a_legend():
    svg = line_chart([curve("low"), curve("high", (3.0, 9.0))])
    assert svg.count("<polyline") == 2
    assert ">low<" in svg
    assert ">high<" in svg
    assert 'aria-label="c"' in svg


@pytest.mark.parametrize("y", [(float("nan"), 1.0), (float("inf"), 1.0)])
def test_what_is_not_finite_is_not_drawn(y):
    assert line_chart([curve(y=y)]) == ""


def test_a_flat_curve_is_drawn_inside_the_frame():
    svg = line_chart([curve(y=(5.0, 5.0))])
    [points] = re.findall(r'points="([^"]+)"', svg)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert all(34 <= height <= 270 for height in heights)


def test_a_tornado_has_a_bar_for_each_input_and_the_middle():
    bars = example_plan("coding-agents").uncertainty.tornado
    svg = tornado_chart(bars, 376_855.0)
    assert svg.count('class="bar"') == len(bars)
    assert "$376,855/month" in svg
    assert tornado_chart((), 1.0) == ""


def test_a_sheet_as_a_fragment_is_escaped():
    made = Sheet(
        document={}, head=HOSTILE, remarks=((HOSTILE, (HOSTILE,)),),
        tables=(Table(title=HOSTILE, columns=("a", "b"), rows=((HOSTILE, "1"),), right=("b",)),),
    )  # fmt: skip
    text = sheet_html(made)
    assert "<img" not in text
    assert parsed(text).texts.count(HOSTILE) == 5
    assert "text-align:right" in text


def test_an_empty_sheet_is_an_empty_fragment():
    assert "<table" not in sheet_html(Sheet(document={}, tables=()))


def test_growth_is_drawn_period_by_period_and_the_planned_load_is_marked():
    found = example_plan("growth")
    charts = dict(charts_of(found))
    line = ElementTree.fromstring(charts["Monthly cost as load grows"]).find(".//{*}polyline")
    assert len(line.get("points").split()) == 2 * len(found.plan.bill.by_period)
    chat = example_plan("chat")
    (name,) = [name for name in dict(charts_of(chat)) if name.startswith("Monthly cost of")]
    assert "planned" in dict(charts_of(chat))[name]
    assert "Monthly cost as load grows" not in dict(charts_of(chat))
