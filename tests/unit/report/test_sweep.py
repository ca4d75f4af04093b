"""A sweep as a table, a document and charts."""

import json

import pytest

from gpuplan.report.sweep import N_LINES, N_SHOWN, sweep_charts, sweep_sheet, value_at
from gpuplan.report.table import to_csv

AXES, COLUMNS = ("on", "n"), ("x.p95",)
ROWS = [((on, n), {"x": {"p95": n * k}}) for k, on in enumerate("ab", 1) for n in (1, 2)]


def test_table_and_charts_hold_every_case():
    sheet = sweep_sheet("simulate", AXES, COLUMNS, ROWS)
    assert sheet.head == "4 cases of gpuplan simulate"
    assert sheet.tables[0].rows[-1] == ("b", "2", "4")
    (chart,) = sweep_charts(AXES, COLUMNS, ROWS)
    assert [(line.name, list(line.y)) for line in chart.series] == [
        ("on a", [1.0, 2.0]),
        ("on b", [2.0, 4.0]),
    ]


def test_refused_cases_are_rows_with_their_reason():
    rows = [*ROWS, (("c", 1), {"error": "does not fit"})]
    sheet = sweep_sheet("fit", AXES, COLUMNS, rows)
    assert sheet.head == "5 cases of gpuplan fit, 1 refused"
    assert sheet.tables[0].rows[-1] == ("c", "1", "", "does not fit")
    (chart,) = sweep_charts(AXES, COLUMNS, rows)
    assert len(chart.series) == 2


def test_a_terminal_gets_some_rows_and_files_get_all():
    rows = [((n,), {"x": n}) for n in range(N_SHOWN + 5)]
    sheet = sweep_sheet("fit", ("n",), ("x",), rows)
    assert len(sheet.tables[0].rows) == N_SHOWN
    assert to_csv(sheet).count("\n") == N_SHOWN + 6
    assert len(json.loads(json.dumps(sheet.document))["cases"]) == N_SHOWN + 5


def test_a_chart_of_many_lines_says_how_many_it_shows():
    rows = [((str(k), n), {"x": n}) for k in range(N_LINES + 3) for n in (1, 2)]
    (chart,) = sweep_charts(("k", "n"), ("x",), rows)
    assert (len(chart.series), chart.note) == (N_LINES, f"{N_LINES} of {N_LINES + 3} lines")


def test_without_an_axis_of_numbers_there_is_no_chart():
    assert sweep_charts(("on",), ("x",), [(("a",), {"x": 1})]) == ()


@pytest.mark.parametrize(
    ("path", "value"),
    [("a.b", 1), ("c.1", 8), ("a.z", None), ("c.9", None), ("c.x", None), ("d.e", 5), ("q", None)],
)
def test_keys_with_dots_lead_into_documents(path: str, value: object):
    assert value_at({"a": {"b": 1}, "c": [7, 8], "d.e": 5}, path) == value
