"""The catalog as sheets: stable keys in files, short headings on a screen, sources to facts."""

import csv
import io
import json
from dataclasses import replace
from datetime import date

import pytest

from fakes.results import column, figure, lines, titled
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.offers import read_offers
from gpuplan.domain.money.market import CloudUpdate, UpdateReport
from gpuplan.domain.provenance import Override
from gpuplan.domain.system.findings import Finding
from gpuplan.report.catalog.rows import (
    LISTERS,
    accelerator_rows,
    mig_rows,
    network_rows,
    offer_rows,
    server_rows,
    source_rows,
    storage_rows,
)
from gpuplan.report.catalog.sheets import (
    HEADINGS,
    MOST_ROWS,
    facts_sheet,
    findings_sheet,
    list_sheet,
    update_sheet,
)
from gpuplan.report.table import to_csv

CATALOG = read_catalog()
OVERLAY = Override(
    item="h100-sxm", quantity="price", catalog_value="2", overlay_value="3", overlay="mine.yaml"
)


def finding(severity, rule="r"):
    return Finding(severity=severity, rule=rule, where="w", what="x", fix="f")


@pytest.mark.parametrize("kind", LISTERS)
def test_rows_of_a_kind_have_the_same_keys_and_are_json(kind):
    rows = LISTERS[kind](CATALOG)
    assert rows
    assert len({tuple(sorted(row)) for row in rows}) == 1
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize("kind", LISTERS)
def test_files_have_the_keys_and_a_screen_has_short_headings(kind):
    rows = LISTERS[kind](CATALOG)
    sheet = list_sheet(kind, rows)
    [whole] = sheet.whole_tables
    assert whole.columns == tuple(rows[0])
    assert len(whole.rows) == len(rows)
    for head in sheet.tables[0].columns:
        assert head not in HEADINGS


def test_long_lists_are_cut_on_a_screen_and_say_so():
    rows = [{"id": str(n), "n": n} for n in range(MOST_ROWS + 5)]
    sheet = list_sheet("things", rows)
    assert len(sheet.tables[0].rows) == MOST_ROWS
    assert lines(sheet, "Not shown:") == ("5 more; narrow it down, or take all with -o csv",)
    assert len(list(csv.reader(io.StringIO(to_csv(sheet))))) == len(rows) + 1


def test_short_lists_are_whole():
    sheet = list_sheet("things", [{"id": "a", "n": 1}])
    assert lines(sheet, "Not shown:") == ()
    assert sheet.document["rows"] == [{"id": "a", "n": 1}]


def test_an_empty_list_is_no_error():
    sheet = list_sheet("things", [])
    assert sheet.tables == ()
    assert sheet.document["rows"] == []


def test_numbers_stand_right_and_what_is_not_published_is_a_dash():
    sheet = list_sheet("things", [{"id": "a", "watts": 700.0}, {"id": "b", "watts": None}])
    [table] = sheet.tables
    assert table.right == ("watts",)
    assert column(table, "watts") == ["700", "–"]


def test_large_numbers_have_separators():
    [table] = list_sheet("things", [{"id": "a", "w": 12345.6}, {"id": "b", "w": 0.12345}]).tables
    assert column(table, "w") == ["12,346", "0.1235"]


def test_overlays_are_told():
    sheet = list_sheet("things", [{"id": "a"}], overrides=(OVERLAY,))
    assert lines(sheet, "Overlay:") == ("h100-sxm price: 3 from mine.yaml instead of 2",)
    assert sheet.document["overrides"][0]["item"] == "h100-sxm"


def test_accelerators_are_in_human_units():
    row = next(row for row in accelerator_rows(CATALOG) if row["id"] == "h100-sxm")
    assert 79 < row["visible_gib"] < 81
    assert 3.0 < row["tb_per_s"] < 3.6
    assert 950 < row["bf16_tflop_per_s"] < 1000
    assert row["limit_w"] == 700


def test_servers_and_parts_have_ids_of_their_own():
    for rows in (server_rows(CATALOG), storage_rows(CATALOG)):
        names = [row["id"] for row in rows]
        assert len(names) == len(set(names))
    assert {row["kind"] for row in network_rows(CATALOG)} == {"switch", "nic", "link"}


def test_mig_profiles_are_shares_of_a_gpu():
    for row in mig_rows(CATALOG):
        assert 0 < row["compute_frac"] <= 1
        assert row["memory_gb"] > 0
        assert row["most"] >= 1


def test_offers_are_cheapest_first():
    rows = offer_rows(read_offers()[:500])
    prices = [row["usd_per_accel_h"] or row["usd_per_h"] for row in rows]
    assert prices == sorted(prices)
    assert all(date.fromisoformat(row["price_date"]) for row in rows)


def test_every_fact_of_an_item_has_its_source():
    sheet = facts_sheet("h100-sxm", CATALOG, [])
    assert len(sheet.document["facts"]) == len(CATALOG.facts_of("h100-sxm"))
    assert all(fact["source"] and fact["source_title"] for fact in sheet.document["facts"])
    table = titled(sheet, "h100-sxm")
    assert all(column(table, "source"))
    assert all(column(table, "unit"))


def test_facts_that_were_not_preferred_say_why_not():
    facts = CATALOG.facts_of("h100-sxm")
    sheet = facts_sheet("h100-sxm", CATALOG, [])
    others = [fact for fact in facts if not fact.preferred]
    shown = [t for t in sheet.tables if t.title == "Other sources say"]
    assert len(shown) == bool(others)
    if others:
        assert column(shown[0], "why not") == [fact.note for fact in others]


def test_one_offer_of_each_cloud_the_cheapest():
    offers = [o for o in read_offers() if o.accelerator == "h100-sxm"][:300]
    table = titled(facts_sheet("h100-sxm", CATALOG, offers), "Cheapest offer of each cloud")
    clouds = column(table, "cloud")
    assert len(clouds) == len(set(clouds)) == len({o.cloud for o in offers})
    prices = [figure(cell) for cell in column(table, "on-demand")]
    assert prices == sorted(prices)


def test_findings_are_counted_and_notes_are_kept_for_files():
    sheet = findings_sheet([finding("note"), finding("error"), finding("warning")], "catalog")
    assert sheet.head == "catalog: 1 errors, 1 warnings, 1 notes"
    assert sheet.document["ok"] is False
    assert [f["severity"] for f in sheet.document["findings"]] == ["error", "warning", "note"]
    assert column(sheet.tables[0], "severity") == ["error", "warning"]


def test_a_clean_catalog_shows_no_table():
    sheet = findings_sheet([finding("note")], "catalog")
    assert sheet.document["ok"] is True
    assert sheet.tables == ()


def test_an_update_says_what_was_refreshed_and_what_was_not():
    part = CloudUpdate(name="aws", state="updated", n_rows=10, n_dropped=1, detail="")
    failed = replace(part, name="gcp", state="failed", n_rows=0, detail="no answer")
    report = UpdateReport(fetched_on=date(2026, 11, 1), source="skypilot", parts=(part, failed))
    sheet = update_sheet(report)
    assert sheet.head == "1 of 2 refreshed from skypilot"
    assert sheet.document["fetched_on"] == "2026-11-01"
    assert column(sheet.tables[0], "detail") == ["", "no answer"]


def test_sources_are_listed_once():
    rows = source_rows(CATALOG.sources.values())
    keys = [row["key"] for row in rows]
    assert len(keys) == len(set(keys))
    assert all(row["publisher"] and row["retrieved"] for row in rows)
