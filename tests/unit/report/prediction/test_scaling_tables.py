"""Sensitivity, spends and words about the knee."""

from dataclasses import replace

import pytest

from fakes.results import titled
from gpuplan.domain.training.scaling import NodeLinks, ScaleRequest
from gpuplan.report.prediction.training_run import scale_sheet
from gpuplan.studies.training.scaling import scale
from gpuplan.units import GBIT

SLOW = ScaleRequest(
    model="Llama-3.1-8B",
    accelerator="H100",
    counts=(8, 64),
    mfu_frac=0.45,
    price_usd_per_h=2.0,
    links=NodeLinks(adapters_bytes_per_s=100 * GBIT),
)


@pytest.fixture(scope="module")
def curve():
    return scale(SLOW)


def test_gains_and_spends_are_rows(curve):
    sheet = scale_sheet(curve)
    [title] = [one.title for one in sheet.tables if one.title.startswith("Sensitivity")]
    assert f"{curve.communication_ratio:.2f}" in title
    names = [row[0] for row in titled(sheet, title).rows]
    assert names == ["FLOPs", "HBM", "NVLink", "NIC", "storage"]
    assert titled(sheet, "What to spend on").rows[0][0] == "NICs"


def test_without_a_price_nothing_is_priced(curve):
    bare = replace(curve, spends=(), gains=(replace(curve.gains[0], worth_usd_per_month=None),))
    sheet = scale_sheet(bare)
    [title] = [one.title for one in sheet.tables if one.title.startswith("Sensitivity")]
    assert titled(sheet, title).rows[0][-1] == ""
    assert sheet.document["next_spend"] == []


def test_a_knee_is_named_only_where_one_is(curve):
    assert "beyond 8" in scale_sheet(curve).head
    gentle = replace(curve, knee=64)
    assert "beyond" not in scale_sheet(gentle).head
