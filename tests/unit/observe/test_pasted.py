"""The documents' table, typed in every way that people type it."""

import numpy as np
import pytest

from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.errors import InputError, PlannerError
from gpuplan.observe.pasted import RATIOS, pasted
from gpuplan.observe.read import read_text
from gpuplan.pipeline.diagnose import diagnose_text

ROWS = [(0, 20), (10, 50), (20, 90), (30, 85), (40, 95)]


def typed(form: str, head: str = "") -> str:
    return head + "".join(form.format(at, share) + "\n" for at, share in ROWS)


WAYS = {
    "tabs": typed("{}\t{}", "Time (min)\tGPU Utilization (%)\n"),
    "commas": typed("{},{}", "Time (min),GPU Utilization (%)\n"),
    "quotes": typed('"{}","{}"', '"Time (minutes)","GPU Usage (%)"\n'),
    "percent signs": typed("{} {}%"),
    "spaced percent signs": typed("{}   {} %", "Minute   Utilization\n"),
    "markdown": typed("| {} | {} |", "| Time (min) | GPU Utilization (%) |\n|---|---|\n"),
    "decimal commas": typed("{};{},0"),
    "words in the rows": typed("{} min: {}%"),
    "other words": typed("{}\t{}", "Thời gian (phút)\tMức sử dụng GPU (%)\n"),
    "any heading above percent signs": typed("{} min,{}%", "When,GPU\n"),
    "windows": typed("{},{}\r", "Minute,Use\r\n"),
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_the_same_five_readings(way):
    found = read_text(WAYS[way], source="pasted")
    (series,) = found.of("gpu_util_frac")
    assert series.at_s.tolist() == [60.0 * at for at, _ in ROWS]
    assert series.value == pytest.approx(np.array([share for _, share in ROWS]) / 100.0)
    has_unit = way not in ("percent signs", "decimal commas")
    assert (not found.assumptions) == has_unit


def test_hours_and_seconds_are_told_by_the_heading():
    for head, scale in (("Time (hours) GPU %\n", 3600.0), ("sec use\n", 1.0)):
        (series,) = read_text(typed("{} {}", head), source="pasted").series
        assert series.at_s[-1] == 40 * scale


@pytest.mark.parametrize(
    "text",
    ["a;5\nb;6\n", "0 20\nsome words in between\n10 50\n", "0 200\n10 300\n", "1700000000 50\n"],
    ids=["names", "words between", "no percents", "dates"],
)
def test_what_is_no_such_table_is_refused(text):
    with pytest.raises(InputError, match="not known"):
        read_text(text, source="pasted")


@pytest.mark.parametrize(
    "text",
    [
        "Time,GPU Utilization (%)\n10:00,20\n10:01,50\n10:02,90\n10:03,85\n10:04,95\n",
        "Time | GPU Utilization (%)\n10:00 | 20\n10:01 | 50\n10:02 | 90\n10:03 | 85\n10:04 | 95",
        "when\tbusy %\n10:00:00\t20\n10:01:00\t50\n10:02:00\t90\n10:03:00\t85\n10:04:00\t95",
    ],
)
def test_times_of_the_day_are_times(text):
    found = diagnose_text(text, DiagnoseRequest())
    assert found.use.mean_frac == pytest.approx(0.68)
    assert found.use.peak_frac == pytest.approx(0.95)


@pytest.mark.parametrize("text", ["hello\nworld", "", "a,b\n1,2\n"])
def test_what_says_nothing_is_refused_and_never_healthy(text):
    with pytest.raises(PlannerError):
        diagnose_text(text, DiagnoseRequest())


@pytest.mark.parametrize(
    "first",
    ["2026-11-10 00:0{}", "2026-11-10T00:0{}:00", "2026/11/10 00:0{}", "2026-11-10 00:0{}:30"],
)
def test_dates_with_a_time_are_times(first):
    lines = ["time,utilization", *(f"{first.format(i)},{20 + i}" for i in range(3))]
    found = pasted("\n".join(lines))
    assert [percent for _, percent in found.rows] == [20, 21, 22]
    assert found.rows[1][0] - found.rows[0][0] == 60
    assert not found.assumptions


@pytest.mark.parametrize("n", [5, 60, 96, 97, 300, 800])
def test_minutes_without_a_gap_are_drawn_without_one(n):
    text = "Time,GPU\n" + "".join(f"{9 + k // 60}:{k % 60:02d},{k % 90}%\n" for k in range(n))
    heat = diagnose_text(text, DiagnoseRequest()).heat
    assert heat is not None
    assert not np.isnan(heat.use_frac).any()
    assert heat.use_frac.shape[1] == min(n, 96)
    assert heat.at_s[0] == 9 * 3600.0


@pytest.mark.parametrize(
    ("heading", "values", "mean"),
    [
        ("minute util", (0.96, 1.0, 0.92), 96.0),
        ("minute util (%)", (0.96, 1.0, 0.92), 0.96),
        ("minute util", (0, 1, 1), 2 / 3),  # whole percents of an idle GPU
        ("minute util", (0.5, 1.5, 1), 1.0),
    ],
)
def test_shares_of_one_are_not_hundredths(heading, values, mean):
    lines = [heading, *(f"{minute} {value}" for minute, value in enumerate(values))]
    found = pasted("\n".join(lines))
    assert sum(share for _, share in found.rows) / 3 == pytest.approx(mean)
    assert (RATIOS in found.assumptions) == (mean == 96.0)
