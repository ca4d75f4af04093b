"""Tables: one way to make them; as Markdown and CSV nothing of a cell becomes structure or code."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.table import FORMULA_STARTS, _harmless, pairs, table, to_csv, to_markdown

COLUMNS = {"name": lambda row: row[0], ">value": lambda row: f"{row[1]:.1f}"}
HOSTILE = ("=cmd|'/c calc'!A0", "+SUM(A1)", "-2+3", "@import", "\tx", "\rx")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)


def sheet(*tables, **more):
    return Sheet(document={}, tables=tables, **more)


def one_cell(text):
    return sheet(Table(title="t", columns=("a", "b"), rows=((text, "x"),)))


def test_headings_and_cells_stand_in_the_order_given():
    made = table("Figures", [("a", 1.0), ("b", 2.25)], COLUMNS)
    assert made.columns == ("name", "value")
    assert made.rows == (("a", "1.0"), ("b", "2.2"))


def test_a_mark_in_the_heading_sets_a_column_to_the_right():
    made = table("Figures", [("a", 1.0)], COLUMNS)
    assert made.right == ("value",)
    assert not any(head.startswith(">") for head in made.columns)


def test_items_may_come_from_a_generator_and_may_be_none_at_all():
    assert len(table("t", (pair for pair in [("a", 1.0)]), COLUMNS).rows) == 1
    empty = table("t", [], COLUMNS)
    assert empty.rows == ()
    assert empty.columns == ("name", "value")


def test_pairs_have_the_usual_headings_unless_others_are_given():
    assert pairs("t", [("power", "1 W")]).columns == ("quantity", "value")
    made = pairs("t", [("power", "1 W", "10 %")], "part", "size", "share")
    assert made.right == ("size", "share")


def test_markdown_shows_the_head_titles_and_alignment():
    text = to_markdown(sheet(table("Figures", [("a", 1.0)], COLUMNS), head="the answer"))
    assert text.startswith("the answer\n\n**Figures**")
    assert "| name | value |" in text
    assert "| --- | ---: |" in text


def test_markdown_escapes_pipes():
    text = to_markdown(one_cell("a|b"))
    assert "a\\|b" in text
    body = text.strip().splitlines()[-1]
    assert body.replace("\\|", "").count("|") == 3


@given(TEXT)
def test_a_markdown_row_has_as_many_cells_as_columns(cell):
    [*_, row, end] = to_markdown(one_cell(cell)).split("\n")
    assert end == ""
    assert row.replace("\\|", "").count("|") == 3


@pytest.mark.parametrize("cell", HOSTILE)
def test_csv_never_starts_a_cell_as_a_formula(cell):
    [_, row] = csv.reader(io.StringIO(to_csv(one_cell(cell)), newline=""))
    assert not row[0].startswith(FORMULA_STARTS)
    assert row[0].endswith(cell.strip())


@pytest.mark.parametrize("cell", ["-5", "+365", "-1,234.5", "+12.5 %", "-0.3 ms"])
def test_csv_leaves_signed_figures_alone(cell):
    [_, row] = csv.reader(io.StringIO(to_csv(one_cell(cell))))
    assert row[0] == cell


@given(TEXT)
def test_csv_reads_back_as_it_was_written(cell):
    [_, row] = csv.reader(io.StringIO(to_csv(one_cell(cell)), newline=""))
    line = " ".join(cell.splitlines())
    assert row[0] in (line, f"'{line}")
    assert row[1] == "x"


def test_csv_quotes_commas_quotes_and_keeps_them():
    [_, row] = csv.reader(io.StringIO(to_csv(one_cell('a "b", c'))))
    assert row[0] == 'a "b", c'


def test_several_tables_are_apart_by_a_blank_line():
    made = table("t", [("a", 1.0)], COLUMNS)
    assert to_csv(sheet(made, made)) == "name,value\na,1.0\n\nname,value\na,1.0\n"


def test_files_get_the_whole_where_a_terminal_gets_a_part():
    short, whole = (table("t", [("a", 1.0)] * n, COLUMNS) for n in (1, 3))
    text = to_csv(sheet(short, whole_tables=(whole,)))
    assert text.count("a,1.0") == 3


def test_details_come_after_what_is_shown_anyway():
    first, more = (table(title, [("a", 1.0)], COLUMNS) for title in ("first", "more"))
    made = sheet(
        first, remarks=(("Why:", ("x",)),), detail_tables=(more,), detail_remarks=(("All:", ()),)
    ).with_details()
    assert [shown.title for shown in made.tables] == ["first", "more"]
    assert [heading for heading, _ in made.remarks] == ["Why:", "All:"]


@pytest.mark.parametrize("cell", ["-2 +3+cmd|' /C calc'!A0", "+1 cmd|x", "-1e5=2", "-2 +cmd"])
def test_a_formula_behind_a_figure_is_guarded_too(cell):
    assert _harmless(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["-2.5 %", "-6 +11", "+1,000", "-3e-5", "-2 ms"])
def test_figures_stay_figures(cell):
    assert _harmless(cell) == cell
