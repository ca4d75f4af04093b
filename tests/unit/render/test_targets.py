"""The table of targets and the bill of materials."""

import csv
from dataclasses import replace
from io import BytesIO, StringIO

import polars as pl
import pytest

from fakes.deployed import deployed, deployed_pool, node, run_pool, served_model
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.errors import InputError
from gpuplan.render.bom import HEADER, bom_csv, bom_xlsx, rows_of
from gpuplan.render.targets import TARGETS, rendered

RUN = run_pool(PoolLayout(tp=1, pp=1, dp=16, sharding="zero3"), RunSteps(micro_batch=1))
WHOLE = deployed(
    deployed_pool(node=node(cloud="aws")),
    deployed_pool(name="agents", served=served_model("sglang", "0.5.9")),
    deployed_pool(name="docs", served=served_model("trtllm", "1.1.0")),
    RUN,
)


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
