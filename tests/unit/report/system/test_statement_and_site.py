"""Statements and sites: what is shown adds up and is the same as what is handed on."""

import json
from dataclasses import replace

from fakes.machines import NODE, SITE
from fakes.money import life
from fakes.results import figure
from gpuplan.cost.statement import npv_usd
from gpuplan.design.facility import checklist, facility_plan
from gpuplan.report.system.facility import checklist_markdown, facility_document, facility_tables
from gpuplan.report.system.ownership import (
    statement_document,
    statement_head,
    statement_tables,
)


def cents(text: str) -> int:
    return round(figure(text) * 100)


def test_the_table_of_years_adds_up_both_ways():
    account = life()
    rows = next(statement_tables(account)).rows
    assert rows[-1][0] == "total"
    for row in rows:
        assert sum(map(cents, row[1:-1])) == cents(row[-1])
    for column in range(1, len(rows[0])):
        assert sum(cents(row[column]) for row in rows[:-1]) == cents(rows[-1][column])
    assert cents(rows[-1][-1]) == account.total_cents


def test_the_head_has_the_net_present_value_where_there_is_one():
    account = life()
    head = statement_head(account, npv_usd=npv_usd(account))
    assert "net present value $419,989 at 10.0% a year" in head
    assert "net present value" not in statement_head(account, npv_usd=None)


def test_the_head_tells_the_days_of_its_prices_oldest_first():
    account = life()
    days = ("list, 2026-07-31", "list, 2026-02-01", "user")
    lines = tuple(replace(line, source=days[i % 3]) for i, line in enumerate(account.lines[:3]))
    head = statement_head(replace(account, lines=lines), npv_usd=None)
    assert head.endswith("; prices as of 2026-02-01 to 2026-07-31")
    own = tuple(replace(line, source="user") for line in lines)
    assert "prices as of" not in statement_head(replace(account, lines=own), npv_usd=None)


def test_every_line_says_where_its_price_comes_from():
    account = life()
    _, sources = statement_tables(account)
    assert len(sources.rows) == len(account.lines)
    assert all(row[-1] for row in sources.rows)


def test_the_document_holds_every_month():
    account = life()
    found = json.loads(json.dumps(statement_document(account)))
    assert sum(found["by_month_cents"]) == found["total_cents"] == account.total_cents
    assert sum(found["by_category_cents"].values()) == found["total_cents"]
    assert sum(sum(line["by_month_cents"]) for line in found["lines"]) == found["total_cents"]


def test_a_site_has_power_at_every_level_and_caps():
    plan = facility_plan(NODE, 4, site=SITE, pue_ratio=1.4)
    power, caps = facility_tables(plan)
    names = ["all servers" if at.level == "machines" else at.level for at in plan.levels]
    assert [row[0] for row in power.rows] == names
    assert ("450", "8.20") in [row[:2] for row in caps.rows]
    found = json.loads(json.dumps(facility_document(plan)))
    accepted = [cap["cap_w"] for cap in found["caps"] if cap["accepted"]]
    assert max(accepted) == 451.0
    assert {f["rule"] for f in found["findings"]} >= {"psu-feed-loss"}


def test_the_checklist_is_a_document_with_boxes():
    plan = facility_plan(NODE, 4, site=SITE, pue_ratio=1.4)
    text = checklist_markdown(checklist(plan, SITE), title="Before the nodes arrive")
    assert text.startswith("# Before the nodes arrive")
    assert "- [ ] **heat**: 40.8 kW, 139 kBTU/h, 11.6 tons" in text
    assert text.count("- [ ]") == len(checklist(plan, SITE))
