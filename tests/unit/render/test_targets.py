"""The table of targets and the bill of materials."""

import csv
from dataclasses import replace
from io import BytesIO, StringIO

import polars as pl
import pytest

from fakes.deployed import deployed, deployed_pool, node, run_pool, served_model
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.domain.system.facility import CoolingLoad, FacilityPlan, NodeDraw, RackFit, RackSlot
from gpuplan.errors import InputError
from gpuplan.render.bom import HEADER, bom_csv, bom_xlsx, rack_csv, rack_rows, rows_of
from gpuplan.render.targets import TARGETS, rendered

RUN = run_pool(PoolLayout(tp=1, pp=1, dp=16, sharding="zero3"), RunSteps(micro_batch=1))
WHOLE = deployed(
    deployed_pool(node=node(cloud="aws")),
    deployed_pool(name="agents", served=served_model("sglang", "0.5.9")),
    deployed_pool(name="docs", served=served_model("trtllm", "1.1.0")),
    RUN,
)


RACKS = FacilityPlan(
    node=NodeDraw(name="DGX", n_accelerators=8, idle_w=2e3, typical_w=8e3, max_w=10.2e3),
    n_nodes=3,
    fit=RackFit(n_nodes=2, limits=(), used_w=20.4e3, usable_w=24e3),
    n_racks=2,
    levels=(),
    cooling=CoolingLoad(air_w=30.6e3, liquid_w=0.0, air_rise_k=12.0),
    pue_ratio=1.3,
    caps=(),
    slots=tuple(
        RackSlot(rack=i // 2, bottom_u=1 + 8 * (i % 2), height_u=8, name=f"DGX {i + 1}")
        for i in range(3)
    ),
    findings=(),
)
WHOLE = replace(WHOLE, facilities=(RACKS,))


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_writes_files_that_differ_in_name(target):
    found = rendered(WHOLE, target)
    assert found
    assert len({each.path for each in found}) == len(found)
    assert all(each.content for each in found)


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_plan_gives_the_same_bytes(target):
    if target != "xlsx":  # a workbook holds the moment of its making
        assert rendered(WHOLE, target) == rendered(WHOLE, target)


def test_all_of_them_stand_in_folders_of_their_own():
    found = rendered(WHOLE, "all")
    folders = {each.path.split("/")[0] for each in found}
    assert folders == set(TARGETS) - {"kubernetes-dra"}


def test_the_bill_of_materials_counts_what_is_paid_for():
    (file,) = bom_csv(deployed(deployed_pool()))
    (row,) = csv.DictReader(StringIO(file.content.decode()))
    assert (row["machines"], row["accelerators"]) == ("3", "6")
    assert float(row["USD per month"]) == pytest.approx(3 * 5.9 * 730)


def test_a_workbook_holds_the_same_numbers():
    (file,) = bom_xlsx(WHOLE)
    assert file.content[:2] == b"PK"
    assert len(next(iter(rows_of(WHOLE)))) == len(HEADER)
    frame = pl.DataFrame(list(rows_of(WHOLE)), schema=list(HEADER), orient="row")
    assert frame["accelerators"].sum() == 6 * 3 + 16
    assert BytesIO(file.content).getbuffer().nbytes > 1000


def test_the_rack_sheet_says_where_each_server_stands_and_what_its_rack_draws():
    (file,) = rack_csv(WHOLE)
    rows = list(csv.DictReader(StringIO(file.content.decode())))
    assert [(row["rack"], row["bottom unit"], row["server"]) for row in rows] == [
        ("1", "1", "DGX 1"),
        ("1", "9", "DGX 2"),
        ("2", "1", "DGX 3"),
    ]
    assert [row["rack max (kW)"] for row in rows] == ["20.4", "20.4", "10.2"]
    assert {row["rack usable (kW)"] for row in rows} == {"24.0"}
    assert sum(int(row["accelerators"]) for row in rows) == 24


def test_racks_of_a_second_group_are_counted_on():
    both = replace(WHOLE, facilities=(RACKS, RACKS))
    assert [row[0] for row in rack_rows(both)] == [1, 1, 2, 3, 3, 4]


def test_rented_servers_have_no_rack_sheet():
    assert not list(rack_csv(deployed(deployed_pool())))


def test_a_cell_cannot_become_a_formula():
    one = deployed_pool()
    evil = replace(one, pool=replace(one.pool, workload='=cmd|"/c calc"!A1'))
    (file,) = bom_csv(deployed(evil))
    (row,) = csv.DictReader(StringIO(file.content.decode()))
    assert row["pool"].startswith("'=")


def test_an_unknown_target_is_answered_with_those_that_exist():
    with pytest.raises(InputError, match="kubernetes"):
        rendered(WHOLE, "kubernets")


@pytest.mark.parametrize(
    ("target", "needs"),
    [("training", "a run"), ("karpenter", "AWS or Azure"), ("sglang", "behind this engine")],
)
def test_a_target_that_the_plan_cannot_fill_says_what_it_needs(target, needs):
    with pytest.raises(InputError, match=needs):
        rendered(deployed(deployed_pool()), target)


def test_a_missing_workbook_package_is_named(monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError("no module", name="xlsxwriter")

    monkeypatch.setattr(pl.DataFrame, "write_excel", missing)
    with pytest.raises(InputError, match=r"xlsxwriter.*gpuplan\[report\]"):
        rendered(WHOLE, "xlsx")
