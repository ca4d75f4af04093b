"""Statements and places as sheets: what is shown adds up and is the same as what is handed on."""

import json

from fakes.machines import NODE, SITE
from fakes.money import life
from gpuplan.cost.value import npv_usd
from gpuplan.design.facility import Duty, checklist, facility_plan
from gpuplan.report.system.facility import checklist_markdown, facility_sheet
from gpuplan.report.system.statement import statement_sheet
from gpuplan.report.table import to_markdown


def cents(text: str) -> int:
    return round(float(text.replace(",", "")) * 100)


def test_the_table_of_years_adds_up_both_ways():
    account = life()
    sheet = statement_sheet(account, npv_usd=npv_usd(account))
    rows = sheet.tables[0].rows
    assert rows[-1][0] == "total"
    for row in rows:
        assert sum(map(cents, row[1:-1])) == cents(row[-1])
    for column in range(1, len(rows[0])):
        assert sum(cents(row[column]) for row in rows[:-1]) == cents(rows[-1][column])
    assert cents(rows[-1][-1]) == account.total_cents
    assert "net present value $419,989 at 10.0% a year" in sheet.head


def test_the_document_holds_every_month():
    account = life()
    found = json.loads(json.dumps(statement_sheet(account).document))
    assert sum(found["by_month_cents"]) == found["total_cents"] == account.total_cents
    assert sum(found["by_category_cents"].values()) == found["total_cents"]
    assert sum(sum(line["by_month_cents"]) for line in found["lines"]) == found["total_cents"]


def test_a_place_shows_power_caps_and_objections():
    plan = facility_plan(NODE, 4, site=SITE, pue_ratio=1.4, duty=Duty(True))
    sheet = facility_sheet(plan)
    text = to_markdown(sheet)
    assert "40.80 kW IT, 57.12 kW with cooling" in text
    assert "| 450 | 8.20 |" in text
    found = json.loads(json.dumps(sheet.document))
    accepted = [cap["cap_w"] for cap in found["caps"] if cap["accepted"]]
    assert max(accepted) == 450.0
    assert {f["rule"] for f in found["findings"]} >= {"psu-feed-loss", "transients"}


def test_the_checklist_is_a_document_with_boxes():
    plan = facility_plan(NODE, 4, site=SITE, pue_ratio=1.4)
    text = checklist_markdown(checklist(plan, SITE), title="Before the machines arrive")
    assert text.startswith("# Before the machines arrive")
    assert "- [ ] **heat**: 40.8 kW, 139 kBTU/h, 11.6 tons" in text
    assert text.count("- [ ]") == len(checklist(plan, SITE))
