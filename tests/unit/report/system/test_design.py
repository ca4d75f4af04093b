"""Designs as sheets and files: the bill adds up, drawings are XML, unit costs have units."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from fakes.results import checked, column, designed, figure, titled
from gpuplan.errors import InputError
from gpuplan.report.system.design import design_sheet
from gpuplan.report.system.fabric_svg import MOST_DRAWN, fabric_svg
from gpuplan.report.system.files import (
    checklist_text,
    design_checklist,
    design_fabric_svg,
    design_rack_svg,
    fabric_drawing,
    rack_drawing,
    statement_csv,
)
from gpuplan.report.system.ownership import ways_svg

EXAMPLES = ("chat", "large-training", "burst-to-cloud", "growth")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_documents_are_json(name):
    document = json.loads(json.dumps(design_sheet(designed(name)).document, allow_nan=False))
    assert {"groups", "findings", "statement", "pools", "ways", "assumptions"} <= set(document)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_head_is_the_bill(name):
    statement = designed(name).money.statement
    head = design_sheet(designed(name)).head
    assert head.startswith(f"{statement.name}: ${statement.total_cents / 100:,.0f} over ")
    assert f"{statement.n_months} months" in head


@pytest.mark.parametrize("name", EXAMPLES)
def test_dollars_by_cause_add_up_across_and_down(name):
    table = titled(design_sheet(designed(name)), "$ by cause and year")
    sums = [[figure(cell) for cell in row[1:]] for row in table.rows]
    for row in sums:
        assert sum(row[:-1]) == pytest.approx(row[-1], abs=0.05)
    *causes, total = sums
    assert [sum(column) for column in zip(*causes, strict=True)] == pytest.approx(total, abs=0.05)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_bill_as_csv_adds_up_by_month(name):
    statement = designed(name).money.statement
    rows = list(csv.reader(io.StringIO(statement_csv(designed(name)))))
    head, *lines, total = rows
    assert head[3] == "month 0"
    assert len(head) == 3 + statement.n_months + 1 + 1
    assert len(lines) == len(statement.lines)
    assert float(total[-1]) == pytest.approx(statement.total_cents / 100)
    for place in range(3, len(head)):
        assert sum(float(line[place]) for line in lines) == pytest.approx(float(total[place]))


def test_the_bill_as_csv_keeps_commas_in_names():
    found = designed("chat")
    first, *rest = found.money.statement.lines
    odd = replace(first, name='a "b", c')
    statement = replace(found.money.statement, lines=(odd, *rest))
    text = statement_csv(replace(found, money=replace(found.money, statement=statement)))
    assert next(iter(list(csv.reader(io.StringIO(text)))[1:]))[1] == 'a "b", c'


def test_unit_costs_have_their_units_in_the_heading():
    table = titled(design_sheet(designed("chat")), "Unit costs")
    assert {"$/paid GPU-h", "$/used GPU-h", "$/1M tokens", "J/token"} <= set(table.columns)
    paid, used = (figure(column(table, f"$/{kind} GPU-h")[0]) for kind in ("paid", "used"))
    assert used >= paid


def test_owning_is_compared_with_renting():
    sheet = design_sheet(designed("burst-to-cloud"))
    assert all("break_even_frac" in found for found in sheet.document["own_instead"])
    for found in sheet.document["ways"]:
        costs = {way["way"]: way["npv_usd"] for way in found["ways"]}
        assert costs[found["best"]] == min(costs.values())


def test_errors_around_a_plan_are_counted_in_the_head():
    found = designed("chat")
    worse = [replace(f, severity="error") for f in found.findings] or checked("slow-disks").findings
    n = sum(f.severity == "error" for f in worse)
    head = design_sheet(replace(found, findings=tuple(worse))).head
    assert f"{n} error" in head


# --- files --------------------------------------------------------------------------------------


def drawn(text):
    return ET.fromstring(text)


def test_racks_are_drawn_with_their_nodes():
    system = checked("power-shortfall")
    root = drawn(rack_drawing(system))
    words = [found.text for found in root.iter(f"{SVG}text")]
    plan = next(plan for plan in system.around.facilities if plan.slots)
    assert {slot.name for slot in plan.slots} <= set(words)
    assert any(word.startswith("rack 1: ") and word.endswith(" kW") for word in words)
    assert root.find(f"{SVG}title").text


def test_a_network_is_drawn_level_by_level():
    system = checked("scaling")
    plan = system.around.fabrics[0]
    root = drawn(fabric_drawing(system))
    words = [found.text for found in root.iter(f"{SVG}text")]
    assert any("Gbit/s" in word for word in words)
    assert f"{plan.counts.n_nodes:,} nodes" in words
    assert any("cables" in word for word in words)


def test_a_large_network_draws_a_few_boxes_and_counts_the_rest():
    plan = checked("scaling").around.fabrics[0]
    many = replace(plan, counts=replace(plan.counts, n_nodes=100))
    words = [found.text for found in drawn(fabric_svg(many)).iter(f"{SVG}text")]
    assert f"+ {100 - MOST_DRAWN + 1}" in words


def test_hostile_names_are_text_in_a_drawing():
    system = checked("power-shortfall")
    [plan, *_] = [plan for plan in system.around.facilities if plan.slots]
    slots = tuple(replace(slot, name="<script>&") for slot in plan.slots)
    around = replace(system.around, facilities=(replace(plan, slots=slots),))
    text = rack_drawing(replace(system, around=around))
    assert "<script>" not in text
    assert "<script>&" in [found.text for found in drawn(text).iter(f"{SVG}text")]


def test_checklists_are_boxes_by_topic():
    text = checklist_text(checked("power-shortfall"))
    assert text.startswith("# Before installation: ")
    assert text.count("- [ ] **") == len(checked("power-shortfall").around.checklist)
    assert text.count("\n## ") == len(
        {i.topic for i in checked("power-shortfall").around.checklist}
    )


def bare(system):
    return replace(
        system, around=replace(system.around, fabrics=(), facilities=(), checklist=(), hosts=())
    )


@pytest.mark.parametrize("make", [checklist_text, fabric_drawing, rack_drawing])
def test_what_is_not_described_cannot_be_drawn_and_says_what_is_missing(make):
    with pytest.raises(InputError, match="describe site"):
        make(bare(checked("power-shortfall")))


@pytest.mark.parametrize("make", [design_checklist, design_fabric_svg, design_rack_svg])
def test_a_rented_plan_has_nothing_to_install(make):
    with pytest.raises(InputError):
        make(designed("chat"))


def test_rent_or_own_is_drawn_where_it_was_compared():
    found = designed("burst-to-cloud")
    if not found.money.rent_or_own:
        with pytest.raises(InputError, match=r"prices\.hardware"):
            ways_svg(found)
        return
    root = drawn(ways_svg(found))
    curves = [c for c in root.iter(f"{SVG}polyline") if c.get("points", "").count(",") > 2]
    assert len(curves) == len(found.money.rent_or_own[0].curves)


def test_the_same_design_is_the_same_sheet():
    assert design_sheet(designed("chat")) == design_sheet(designed("chat"))
