"""Tables of the week, of work per dollar, and of plan against actual."""

from dataclasses import replace

import pytest

from fakes.plans import answer
from fakes.results import column, titled
from gpuplan.domain.money.statement import ActualComparison, CostRow
from gpuplan.domain.plan.comparison import Calendar, CalendarRow, TradeRow
from gpuplan.report.plan.comparison import explain_sheet
from gpuplan.report.plan.details import calendar_table, trade_table
from gpuplan.report.plan.difference import actual_sheet
from gpuplan.units import HOUR

DAY = (0,) * 8 + (4,) * 16


def planned(**changes):
    made = answer()
    return replace(made, decision=replace(made.decision, **changes))


def week(accelerators, remark=""):
    row = CalendarRow(
        workload="chat", accelerator="h100-sxm", kind="service", accelerators=accelerators
    )
    return Calendar(hours=tuple(range(168)), rows=(row,), remark=remark)


def test_equal_days_are_one_row_of_three_hours_each():
    shown = calendar_table(planned(calendar=week(DAY * 7)))
    assert column(shown, "day") == ["every day"]
    assert column(shown, "06 h") == ["0–4"]
    assert column(shown, "09 h") == ["4"]


def test_days_that_differ_have_a_row_each():
    shown = calendar_table(planned(calendar=week(DAY * 5 + (0,) * 48, "as it is")))
    assert column(shown, "day") == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    assert column(shown, "21 h") == ["4"] * 5 + ["0"] * 2
    assert shown.title.endswith("; as it is")


def test_a_plan_without_hours_has_no_calendar():
    assert not calendar_table(planned(calendar=Calendar())).rows


TRADE = TradeRow(
    workload="chat",
    accelerator="h100-sxm",
    precision="fp8",
    unit="output tokens",
    n_work_per_s=1500.0,
    n_work_per_usd=1.8e6,
    n_work_per_j=None,
    usd_per_h=3.0,
    memory_bytes=80e9,
    memory_bytes_per_s=3.35e12,
    peak_flop_per_s=989e12,
)


def test_work_per_dollar_stands_beside_the_data_sheet():
    shown = trade_table(planned(trade=(TRADE,)))
    assert "output tokens" in shown.title
    assert column(shown, "accelerator") == ["H100 SXM fp8"]
    assert column(shown, "GB/s") == ["3,350"]
    assert column(shown, "TFLOP/s") == ["989"]
    assert column(shown, "per $") == ["1,800,000"]
    assert column(shown, "per J") == ["–"]


def test_explain_tells_quality_calendar_and_trade():
    sheet = explain_sheet(
        planned(quality=("same accuracy",), trade=(TRADE,), calendar=week(DAY * 7))
    )
    assert sheet.document["quality"] == ["same accuracy"]
    assert sheet.document["trade"][0]["n_work_per_usd"] == 1.8e6
    assert len(sheet.document["calendar"]["hours"]) == 168
    assert ("Quality of outputs:", ("same accuracy",)) in [
        (head, tuple(lines)) for head, lines in sheet.remarks
    ]


def test_plan_against_actual_adds_up():
    rows = (
        CostRow(what="chat", team="core", model="m", planned_usd=100.0, actual_usd=130.0),
        CostRow(what="batch", team="", model="", planned_usd=50.0, actual_usd=None),
        CostRow(what="idle", team="", model="", planned_usd=None, actual_usd=20.0),
    )
    team = CostRow(what="core", team="core", model="", planned_usd=100.0, actual_usd=130.0)
    found = ActualComparison(name="p", window_s=168 * HOUR, rows=rows, teams=(team,))
    sheet = actual_sheet(found)
    assert "$150 paid in 168 h, $150 planned" in sheet.head
    assert column(titled(sheet, "By workload"), "actual ($)") == ["$130", "–", "$20.00"]
    assert column(titled(sheet, "By team"), "what") == ["core"]
    body = sheet.document
    assert (body["planned_usd"], body["actual_usd"], body["window_h"]) == (150.0, 150.0, 168.0)
    gaps = [row["difference_usd"] for row in body["plan_against_actual"]]
    assert gaps == pytest.approx([30.0, -50.0, 20.0])
