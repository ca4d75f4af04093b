"""Sheets of rankings, precisions and compared runs: rows, order, words."""

from dataclasses import replace

import pytest

from fakes.results import column, prediction, titled
from gpuplan.domain.calibration.runs import FingerprintChange, MetricChange, RunComparison
from gpuplan.domain.inference.variants import (
    AcceleratorRanking,
    PrecisionComparison,
    PrecisionRow,
    RankedAccelerator,
)
from gpuplan.report.prediction.serving import runs_sheet
from gpuplan.report.prediction.variants import precisions_sheet, rank_sheet


@pytest.fixture(scope="module")
def found():
    return prediction()


def test_a_ranking_names_what_decides(found):
    lost = RankedAccelerator(accelerator="l4", found=None, decides="memory capacity", reason="no")
    best = RankedAccelerator(accelerator="h100-sxm", found=found, decides="memory bandwidth")
    sheet = rank_sheet(AcceleratorRanking(model="m", rows=(best, lost)))
    assert sheet.head == "m is fastest on h100-sxm; memory bandwidth decides"
    rows = titled(sheet, "Accelerators")
    assert column(rows, "decides") == ["memory bandwidth", "memory capacity"]
    assert column(rows, "output (tok/s)")[1] == ""
    first, second = sheet.document["ranking"]
    assert first["tokens_per_s"] == found.served.output_tokens_per_s.value
    used = found.power["energy_j_per_output_token"].value
    assert first["tokens_per_j"] == pytest.approx(1 / used)
    assert (second["fits"], second["tokens_per_s"]) == (False, 0.0)


def test_a_ranking_without_any_that_runs_says_so():
    lost = RankedAccelerator(accelerator="l4", found=None, decides="memory capacity", reason="no")
    assert "none of these" in rank_sheet(AcceleratorRanking(model="m", rows=(lost,))).head


def test_precisions_show_speed_memory_and_risk(found):
    rows = (
        PrecisionRow(precision="bf16", found=found, speed_ratio=1.0, risk=""),
        PrecisionRow(precision="fp8", found=found, speed_ratio=1.4, risk="low: spot-check"),
        PrecisionRow(precision="fp4", found=None, speed_ratio=None, risk="high", reason="no fp4"),
    )
    sheet = precisions_sheet(PrecisionComparison(model="m", accelerator="h100-sxm", rows=rows))
    assert sheet.head == "fp8 is 1.40 x as fast as bf16; low: spot-check"
    shown = titled(sheet, "m on h100-sxm")
    assert column(shown, "speed") == ["1.00 x", "1.40 x", ""]
    assert column(shown, "quality risk") == [
        "none: as published or wider",
        "low: spot-check",
        "no fp4",
    ]
    body = sheet.document["precisions"]
    assert [one["runs"] for one in body] == [True, True, False]
    assert body[0]["weights_bytes"] == round(found.memory.weights_bytes)
    none = PrecisionComparison(model="m", accelerator="x", rows=rows[2:])
    assert "none of these precisions" in precisions_sheet(none).head


RUNS = RunComparison(
    names=("a.csv", "b.csv"),
    rows=(
        MetricChange(condition="n=8", metric="tokens", n_before=100.0, n_after=90.0, is_worse=True),
        MetricChange(
            condition="n=16", metric="tokens", n_before=50.0, n_after=55.0, is_worse=False
        ),
    ),
    fingerprint=(FingerprintChange(what="driver", before="570", after="580"),),
    unpaired=("n=32",),
    tolerance_frac=0.05,
)


def test_compared_runs_show_changes_and_versions():
    sheet = runs_sheet(RUNS)
    assert sheet.head == "a.csv to b.csv: 1 regression beyond 5%"
    assert column(titled(sheet, "Measured"), "change") == ["-10.0%", "+10.0%"]
    assert column(titled(sheet, "What changed"), "after") == ["580"]
    body = sheet.document
    assert body["regression"]
    assert body["rows"][0]["change_frac"] == pytest.approx(-0.1)
    assert body["fingerprint_changes"] == [{"what": "driver", "before": "570", "after": "580"}]
    assert body["unpaired"] == ["n=32"]


def test_runs_without_a_regression_count_none():
    calm = replace(RUNS, rows=RUNS.rows[1:])
    assert "0 regressions" in runs_sheet(calm).head
    assert not runs_sheet(calm).document["regression"]
