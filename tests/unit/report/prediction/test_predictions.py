"""Predictions as sheets: quantities with units and ranges, parts that add up, stable keys."""

import json
from dataclasses import replace

import pytest

from fakes.results import (
    column,
    figure,
    lines,
    network,
    prediction,
    roofline,
    scale,
    titled,
    training_run,
)
from gpuplan.domain.calibration.constants import Novelty
from gpuplan.report.prediction.serving import MEASURES, network_sheet, predict_sheet, roofline_sheet
from gpuplan.report.prediction.training_run import run_sheet, scale_sheet
from gpuplan.units import MS

PREDICTED = "Predicted, with the 80 % range"
SHEETS = {
    "serving": lambda: predict_sheet(prediction()),
    "network": lambda: network_sheet(network()),
    "training": lambda: run_sheet(training_run(n_tokens=1e12)),
}


@pytest.mark.parametrize("name", SHEETS)
def test_every_value_lies_in_its_range_and_has_unit_and_tier(name):
    table = titled(SHEETS[name](), PREDICTED)
    assert table.columns == ("quantity", "value", "low", "high", "unit", "tier")
    for row in table.rows:
        _, value, low, high, unit, tier = row
        assert figure(low) <= figure(value) <= figure(high), row
        assert unit
        assert tier in ("measured", "fitted", "simulated", "estimated", "assumed")


@pytest.mark.parametrize("name", SHEETS)
def test_documents_are_json_with_version_and_assumptions(name):
    document = json.loads(json.dumps(SHEETS[name]().document, allow_nan=False))
    assert document["schema_version"] == "1.0"
    assert document["assumptions"]


def test_latencies_have_the_fields_names():
    names = column(titled(predict_sheet(prediction()), PREDICTED), "quantity")
    assert {"TTFT mean", "TTFT p99", "TPOT p50", "end-to-end latency mean"} <= set(names)
    assert len(names) >= len(MEASURES)


def test_table_and_document_say_the_same():
    sheet = predict_sheet(prediction())
    table = titled(sheet, PREDICTED)
    rows = {row[0]: row for row in table.rows}
    assert figure(rows["TTFT mean"][1]) == pytest.approx(
        sheet.document["ttft_mean_s"]["value"] / MS, rel=0.006
    )
    assert sheet.document["output_tokens_per_s"]["sources"] is not None


def test_parts_of_an_iteration_add_up():
    table = titled(predict_sheet(prediction()), "One decode iteration")
    assert sum(figure(cell) for cell in column(table, "share")) == pytest.approx(100, abs=4)
    assert "attention and KV cache" in column(table, "part")
    assert all(figure(cell) >= 0 for cell in column(table, "ms"))


def test_the_head_of_a_prediction_says_what_was_predicted():
    head = predict_sheet(prediction()).head
    assert "1 × H100" in head
    assert "1,000 input and 200 output tokens" in head
    assert "vllm" in head


def test_what_no_measurement_covers_is_a_warning():
    found = prediction()
    novel = replace(found, served=replace(found.served, novelty=Novelty("new model", ("model X",))))
    assert lines(predict_sheet(novel), "Warnings:") == (
        "no measurement covers model X: ranges are wider",
    )
    small = replace(found, served=replace(found.served, fits=False))
    assert any("gpuplan fit" in line for line in lines(predict_sheet(small), "Warnings:"))


def test_roofline_says_what_each_phase_is_bound_by():
    found = roofline()
    sheet = roofline_sheet(found)
    assert f"{found.ridge_flop_per_byte:,.0f} FLOP/B" in sheet.head
    assert "memory-bound" in sheet.head
    [table] = sheet.tables
    assert column(table, "bound by") == [point.limit for point in found.points]
    assert len(sheet.document["points"]) == len(found.points)
    assert all(0 <= figure(cell) <= 100 for cell in column(table, "MFU"))


def test_network_rate_is_the_batch_over_its_time():
    sheet = network_sheet(network(64))
    assert "batch 64" in sheet.head
    assert "GFLOP per sample" in sheet.head
    document = sheet.document
    rate = document["batch"] / document["batch_s"]["value"]
    assert document["samples_per_s"]["value"] == pytest.approx(rate, rel=1e-6)


def test_network_of_unknown_work_leaves_it_out():
    sheet = network_sheet(replace(network(), work=None))
    assert "GFLOP" not in sheet.head
    assert sheet.document["flop_per_sample"] is None


def test_training_parts_are_ordered_and_add_up():
    table = titled(run_sheet(training_run(n_tokens=1e12)), "Where the step goes")
    seconds = [figure(cell) for cell in column(table, "s")]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(figure(cell) for cell in column(table, "share")) == pytest.approx(100, abs=3)


def test_length_of_a_run_is_told_only_where_tokens_are_given():
    names = column(titled(run_sheet(training_run()), PREDICTED), "quantity")
    assert not any(name.startswith("whole run") for name in names)
    assert run_sheet(training_run()).document["run_s"] is None
    assert run_sheet(training_run(n_tokens=1e12)).document["run_s"]["value"] > 0


def test_goodput_is_that_of_published_runs_until_failures_are_known():
    usual = run_sheet(training_run(n_tokens=1e12))
    assert "of the time is useful" in lines(usual, "Goodput:")[0]
    assert "time between failures" in {each["what"] for each in usual.document["assumptions"]}
    whole = usual.document["run_s"]["value"] / usual.document["goodput"]["goodput_frac"]
    assert usual.document["wall_s"]["value"] == pytest.approx(whole)
    lost = run_sheet(training_run(n_tokens=1e12, mtbf_s=100.0, checkpoint_bytes_per_s=1e9))
    assert lines(lost, "Goodput:")[0].startswith("NONE")
    assert lost.document["wall_s"] is None
    known = run_sheet(training_run(n_tokens=1e12, mtbf_s=3e5, checkpoint_bytes_per_s=2e10))
    [line] = lines(known, "Goodput:")
    assert "of the time is useful" in line
    assert "lost work" in line
    assert 0 < known.document["goodput"]["goodput_frac"] < 1


def test_speed_up_head_is_a_comparison():
    curve = scale()
    sheet = scale_sheet(curve)
    last = curve.points[-1]
    assert f"{last.speedup_ratio:.1f} times as fast" in sheet.head
    straight = replace(last, efficiency_frac=0.99)
    easy = replace(curve, points=(*curve.points[:-1], straight))
    assert scale_sheet(easy).head == "speed grows in proportion up to 64 accelerators"


def test_the_knee_is_marked_once():
    curve = scale()
    table = titled(scale_sheet(curve), "Speed-up")
    marked = [row for row in table.rows if any("← knee" in cell for cell in row)]
    assert [row[0] for row in marked] == [str(curve.knee)]


def test_cost_of_a_percent_is_a_dash_where_no_price_is_given():
    assert set(column(titled(scale_sheet(scale()), "Speed-up"), "$/h per %")) == {"–"}
    priced = scale(price=2.0)
    cells = column(titled(scale_sheet(priced), "Speed-up"), "$/h per %")
    assert any(cell not in ("–", "no gain") for cell in cells)


def test_an_endless_price_is_no_gain_and_null():
    curve = scale()
    hopeless = replace(curve.points[-1], usd_per_percent=float("inf"))
    sheet = scale_sheet(replace(curve, points=(*curve.points[:-1], hopeless)))
    assert column(titled(sheet, "Speed-up"), "$/h per %")[-1] == "no gain"
    assert sheet.document["points"][-1]["usd_per_h_per_percent"] is None
    json.dumps(sheet.document, allow_nan=False)


def test_bars_are_as_long_as_the_efficiency():
    curve = scale()
    cells = column(titled(scale_sheet(curve), "Speed-up"), "")
    for cell, point in zip(cells, curve.points, strict=True):
        assert cell.count("█") == round(20 * point.efficiency_frac)
