"""The six needs on the screen: bars, the next bottleneck, what is unknown."""

from dataclasses import replace

import pytest

from fakes.results import titled
from gpuplan.domain.system.check import (
    LoaderAdvice,
    Need,
    SystemCheck,
    SystemSurroundings,
    WorkCheck,
)
from gpuplan.report.needs import BAR
from gpuplan.report.system.check import check_document, check_sheet


def need(name, demand, supply, unit="W"):
    return Need(name=name, what=name, unit=unit, n_demand=demand, n_supply=supply)


def checked(*needs):
    return SystemCheck(
        name="made",
        works=(),
        around=SystemSurroundings(),
        balanced=(),
        budget_usd=None,
        findings=(),
        assumptions=(),
        needs=needs,
    )


SIX = checked(
    need("compute", 8.0, 16.0, "accelerators"),
    need("storage", 2.0e9, 1.0e9, "bytes/s"),
    need("network", None, 1.0e9, "bytes/s"),
    need("power", 9000.0, 10000.0),
)


def rows():
    sheet = check_sheet(SIX)
    [title] = [one.title for one in sheet.tables if one.title.startswith("The six needs")]
    return title, titled(sheet, title).rows


def test_the_score_is_the_least_headroom():
    document = check_document(SIX)
    assert document["balance"] == {"score": pytest.approx(-1.0), "next_bottleneck": "storage"}
    assert rows()[0].endswith("balance score -100%")


def test_bars_show_demand_of_supply():
    bars = {row[0].split()[0]: row[-1] for row in rows()[1]}
    assert bars["compute"].count("█") == BAR / 2
    assert bars["storage"] == "█" * BAR  # short: no more than full
    assert bars["network"] == ""
    assert bars["power"].count("█") == round(0.9 * BAR)


def test_the_next_bottleneck_is_marked():
    marked = [row[0] for row in rows()[1] if "next bottleneck" in row[0]]
    assert marked == ["storage ← next bottleneck"]


def test_unknown_is_said_and_never_zero():
    document = check_document(SIX)["needs"]
    by_name = {one["need"]: one for one in document}
    assert by_name["network"]["headroom_frac"] is None
    assert by_name["network"]["demand"] is None
    assert check_document(checked())["balance"] == {"score": None, "next_bottleneck": None}


def test_loader_advice_is_a_row_of_its_own():
    advice = LoaderAdvice(n_workers_per_accelerator=25, n_prefetch_batches=4, pinned_bytes=4.9e9)
    work = WorkCheck(
        name="w", accelerator="a", n_accelerators=8, demand=None, bottlenecks=(), loader=advice
    )
    found = replace(SIX, works=(work, replace(work, loader=None)))
    [row] = titled(check_sheet(found), "Data loader").rows
    assert row[1:] == ("25", "4", "4.9")
    documents = [one["loader"] for one in check_document(found)["workloads"]]
    assert documents == [
        {"pinned_bytes": 4.9e9, "workers_per_accelerator": 25, "prefetch_batches": 4},
        None,
    ]
