"""A recorded load in figures: what is counted, and what is said of it."""

import numpy as np
import pytest

from gpuplan import api
from gpuplan.units import HOUR


def trace(tmp_path, rows):
    path = tmp_path / "trace.csv"
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("arrival_s,input_tokens,output_tokens\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_figures_of_an_even_load(tmp_path):
    rows = [(2 * i, 100 + i % 2 * 200, 50) for i in range(901)]
    found = api.trace_sheet(trace(tmp_path, rows)).document
    assert found["n_requests"] == 901
    assert found["mean_requests_per_s"] == pytest.approx(0.5)
    assert found["input_tokens"]["mean"] == pytest.approx(200, rel=0.01)
    assert found["output_tokens"] == {"mean": 50, "p50": 50, "p95": 50, "p99": 50, "max": 50}
    assert found["gap_cv_ratio"] == 0


def test_a_short_recording_is_counted_by_minutes_and_a_long_one_by_hours(tmp_path):
    short = api.trace_sheet(trace(tmp_path, [(2 * i, 100, 50) for i in range(901)])).document
    assert short["counts"]["step_s"] == 60
    assert set(short["counts"]["n_requests"]) == {30}
    long = api.trace_sheet(trace(tmp_path, [(60 * i, 100, 50) for i in range(1441)])).document
    assert long["counts"]["step_s"] == HOUR
    assert np.sum(long["counts"]["n_requests"]) == 1440


def test_requests_without_work_are_named(tmp_path):
    sheet = api.trace_sheet(trace(tmp_path, [(0, 10, 5), (1, 10, 0), (2, 20, 5), (3, 20, 5)]))
    assert sheet.document["n_requests"] == 3
    assert any("1 request" in line for _, lines in sheet.remarks for line in lines)
    assert "3 requests" in sheet.head
