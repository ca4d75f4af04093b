"""Checked systems as sheets: bottlenecks in order, findings by severity, parts with units."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from fakes.results import checked, column, figure, titled
from gpuplan.domain.ranges import Range
from gpuplan.domain.system.findings import Finding
from gpuplan.report.system.check import amount, change_sheet, check_document, check_sheet
from gpuplan.report.system.parts import (
    findings_table,
    gravest_first,
    hosts_table,
    networks_table,
    spares_table,
    usd_text,
)
from gpuplan.report.table import to_markdown

EXAMPLES = (
    "power-shortfall", "scaling", "slow-disks", "system-slow-disks-basic-switch",
    "system-undersized-supply",
)  # fmt: skip
RANK = ("error", "warning", "note")


def finding(severity, where="site"):
    return Finding(severity=severity, rule="r", where=where, what="w", fix="f")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_head_counts_errors_and_says_how_far_accelerators_can_be_utilized(name):
    system = checked(name)
    head = check_sheet(system).head
    n = sum(found.severity == "error" for found in system.findings)
    state = "no errors" if system.is_ok else f"{n} error"
    assert head.startswith(f"{system.name}: {state}")
    assert head.endswith("%")


@pytest.mark.parametrize("name", EXAMPLES)
def test_documents_are_json_and_keep_the_contract(name):
    document = json.loads(json.dumps(check_sheet(checked(name)).document, allow_nan=False))
    assert {"ok", "bottlenecks", "findings", "schema_version", "assumptions"} <= set(document)
    for found in document["bottlenecks"]:
        assert {"stage", "gpu_busy_frac", "demand", "supply", "fix"} <= set(found)
    for found in document["findings"]:
        assert {"severity", "where", "what", "fix"} <= set(found)
    assert document == check_document(checked(name))


@pytest.mark.parametrize("name", EXAMPLES)
def test_findings_come_gravest_first_in_both_forms(name):
    sheet = check_sheet(checked(name))
    ranks = [RANK.index(found["severity"]) for found in sheet.document["findings"]]
    assert ranks == sorted(ranks)
    if ranks:
        shown = [RANK.index(cell) for cell in column(titled(sheet, "Findings"), "severity")]
        assert shown == ranks


def test_bottlenecks_bind_in_order():
    table = titled(check_sheet(checked("slow-disks")), "Bottlenecks of")
    assert column(table, "stage")[:3] == ["storage network", "storage", "CPU decode"]
    assert column(table, "")[:3] == ["1", "2", "3"]
    before = [figure(cell.rstrip("%")) for cell in column(table, "utilization")]
    after = [figure(cell.rstrip("%")) for cell in column(table, "then")]
    assert all(later >= now for now, later in zip(before, after, strict=True))
    assert all(a == b for a, (_, b) in zip(after, pairwise(before), strict=False))


def test_the_chain_says_what_the_work_reads():
    title = titled(check_sheet(checked("slow-disks")), "Bottlenecks of").title
    assert "GB/s" in title
    assert "reads/s" in title


def test_rates_of_bytes_are_in_gigabytes():
    assert amount(2.64e9, "bytes/s") == "2.64 GB/s"
    assert amount(24000, "reads/s") == "24,000 reads/s"


def test_a_site_has_power_with_and_without_cooling():
    sheet = check_sheet(checked("power-shortfall"))
    table = titled(sheet, "Site")
    it, whole = (figure(column(table, head)[0]) for head in ("IT (kW)", "with cooling (kW)"))
    assert it < whole
    assert sheet.document["energy"]["kwh_per_year"] > 0
    [power] = [table for table in sheet.tables if table.title == "Power"]
    for row in power.rows:
        idle, typical, most = map(figure, row[1:])
        assert idle <= typical <= most


def test_a_change_says_what_is_gone_new_and_stays():
    before = checked("slow-disks")
    gone, *rest = before.findings
    new = finding("note", "elsewhere")
    after = replace(before, findings=(*rest, new))
    sheet = change_sheet(before, after)
    assert [f["what"] for f in sheet.document["mended"]] == [gone.what]
    assert [f["where"] for f in sheet.document["new"]] == ["elsewhere"]
    states = column(sheet.tables[0], "change")
    assert states == ["gone", "new", *["stays"] * len(rest)]
    assert "before" in sheet.head


def test_a_mended_finding_needs_no_fix():
    before = checked("slow-disks")
    table = change_sheet(before, replace(before, findings=())).tables[0]
    assert set(column(table, "fix")) == {""}


def test_no_change_is_no_difference():
    system = checked("scaling")
    document = change_sheet(system, system).document
    assert document["mended"] == []
    assert document["new"] == []
    assert document["before"] == document["after"]


def test_order_of_findings_is_stable_within_a_severity():
    found = [
        finding("note", "a"),
        finding("error", "b"),
        finding("note", "c"),
        finding("error", "d"),
    ]
    assert [f.where for f in gravest_first(found)] == ["b", "d", "a", "c"]
    assert column(findings_table(found), "severity") == ["error", "error", "note", "note"]


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unknown"),
        (Range(low=1200.0, mid=1200.0, high=1200.0), "1,200"),
        (Range(low=900.0, mid=1200.0, high=1500.4), "900–1,500"),
    ],
)
def test_dollars_are_a_range_where_they_are_one(usd, text):
    assert usd_text(usd) == text


def test_empty_parts_make_empty_tables():
    assert networks_table([]).rows == ()
    assert spares_table([]).rows == ()
    assert hosts_table("n", []).rows == ()


def test_hostile_names_stay_in_their_cells():
    system = replace(checked("slow-disks"), findings=(finding("error", "a|b"),))
    assert "a\\|b" in to_markdown(check_sheet(system))


def test_networks_say_topology_ports_and_cables():
    system = checked("scaling")
    table = titled(check_sheet(system), "Networks")
    plan = system.around.fabrics[0]
    assert f"{plan.counts.n_ports_per_node} × " in table.rows[0][1]
    assert "Gbit/s per node" in table.rows[0][1]
    assert column(table, "cables")[0] == str(plan.counts.n_cables)


@pytest.mark.parametrize("name", EXAMPLES)
def test_headings_are_quantities_without_home_made_words(name):
    for table in check_sheet(checked(name)).tables:
        for word in ("busy", "machine", "place", "objection"):
            assert word not in " ".join(table.columns).lower().replace("busy accelerators", "")
            assert word not in table.title.lower() or table.title.startswith("Bottlenecks")
