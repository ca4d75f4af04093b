"""Lessons are made of the user's own numbers."""

import pytest

from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.observe.read import read_text
from gpuplan.pipeline.diagnose import diagnose
from gpuplan.report.lessons import learn_sheet


def taught(values):
    rows = "".join(f"{minute},{value}\n" for minute, value in enumerate(values))
    found = diagnose(read_text("min,GPU utilization (%)\n" + rows, source="t"), DiagnoseRequest())
    return learn_sheet(found).document


@pytest.mark.parametrize("values", [[20, 50, 90, 85, 95], [98] * 6, [10] * 6])
def test_the_mean_and_the_peak_are_in_it(values):
    document = taught(values)
    [peaks] = [one for one in document["lessons"] if one["topic"] == "peaks, not averages"]
    assert f"{sum(values) / len(values):.0f}%" in peaks["why"]
    assert f"{max(values)}%" in peaks["why"]
    assert all(one["question"].endswith("?") and one["answer"] for one in document["questions"])


def test_wasted_hours_are_counted():
    answer = taught([10] * 61)["questions"][-1]["answer"]
    assert answer.startswith("0.9 GPU-hours")


def test_different_tables_teach_different_things():
    assert taught([80] * 10)["lessons"] != taught([98] * 10)["lessons"]
