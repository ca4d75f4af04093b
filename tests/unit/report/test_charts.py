"""Charts in every form: what is drawn is what was measured."""

import re

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.chart import Axis, Chart, Series
from gpuplan.domain.columns import floats
from gpuplan.domain.simulation import SimulateRequest, Simulation
from gpuplan.domain.stream import requests_of
from gpuplan.report.charts_simulate import simulate_charts, utilization
from gpuplan.report.charts_text import chart_text, charts_text, number

SEED = floats([0.20, 0.50, 0.90, 0.85, 0.95])


@pytest.fixture(scope="module")
def found() -> Simulation:
    n = 900
    arrive_s = np.cumsum(np.random.default_rng(0).exponential(1 / 6, n))
    stream = requests_of(arrive_s, np.full(n, 500), np.full(n, 100))
    return api.simulate("Llama-3.1-8B", "H100", stream, SimulateRequest())


def test_minute_against_percent_comes_out_as_the_documents_have_it():
    text = chart_text(utilization(SEED, 60.0))
    rows = re.findall(r"^\s*(\d+) \|\s+(\d+)", text, flags=re.MULTILINE)
    assert rows == [("0", "20"), ("1", "50"), ("2", "90"), ("3", "85"), ("4", "95")]
    assert "Time (min) | GPU Utilization (%)" in text
    assert "mean 68 %, peak 95 %" in text


def test_bars_are_as_long_as_their_values():
    text = chart_text(utilization(SEED, 60.0))
    bars = [line.count("█") + line.count("▌") / 2 for line in text.splitlines() if "|" in line][1:]
    assert bars == pytest.approx([10, 25, 45, 42.5, 47.5])


def test_no_line_is_wider_than_the_page(found: Simulation):
    for width in (60, 80, 100):
        text = charts_text(simulate_charts(found), width=width)
        assert max(len(line) for line in text.splitlines()) <= width


def test_many_bins_become_means_of_a_page():
    text = chart_text(utilization(floats(np.tile([0.2, 0.6], 200)), 60.0))
    rows = re.findall(r"^\s*(\d+) \|\s+(\d+)", text, flags=re.MULTILINE)
    assert len(rows) == 40
    assert {value for _, value in rows} == {"40"}
    assert "mean of 10 bins" in text


def test_a_line_is_drawn_from_corner_to_corner():
    rising = Series(name="y", x=floats([0, 10]), y=floats([0, 5]))
    chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y", unit="s"), series=(rising,))
    lines = [line for line in chart_text(chart).splitlines() if "┤" in line or "│" in line]
    assert lines[0].split("┤")[0].strip() == "5"
    assert lines[0].rstrip()[-1] != "┤"
    places = [len(line.rstrip()) for line in lines]
    assert places == sorted(places, reverse=True)


def test_nothing_to_draw_is_said():
    empty = Series(name="y", x=floats([]), y=floats([]))
    chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y"), series=(empty,))
    assert "nothing to draw" in chart_text(chart)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (92.34, "92.3"), (1234.5, "1,234"), (0.05, "0.05"), (2e7, "2e+07")],
)
def test_numbers_are_short(value: float, text: str):
    assert number(value) == text


def test_a_page_stands_alone(found: Simulation):
    pytest.importorskip("plotly")
    page = api.charts_html(simulate_charts(found), "a <title>")
    assert "a &lt;title&gt;" in page
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    assert page.count("<figure>") == len(simulate_charts(found))


def test_a_picture_is_the_same_bytes_each_time(found: Simulation):
    pytest.importorskip("matplotlib")
    one, two = (api.charts_png(simulate_charts(found), "title") for _ in range(2))
    assert one == two
    assert one.startswith(b"\x89PNG")


def test_charts_hold_what_was_measured(found: Simulation):
    by_title = {chart.title: chart for chart in simulate_charts(found)}
    arrived = by_title["Requests"].series[0]
    widths_s = np.diff(arrived.x) * 60
    assert (arrived.y[:-1] * widths_s).sum() == pytest.approx(len(found.outcome.requests))
    busy = by_title["Layers of utilization"].series[1]
    mean = (busy.y[:-1] * widths_s).sum() / widths_s.sum() / 100
    assert mean == pytest.approx(found.statistics.busy_frac, rel=1e-9)
    latency = by_title["Latency by percentile"].series[0]
    at_99 = latency.y[list(latency.x).index(99.0)]
    assert at_99 == pytest.approx(np.percentile(found.outcome.times.ttft_s, 99))
    power = by_title["Power of the accelerators"].series[0]
    assert found.power is not None
    energy_j = (power.y[:-1] * 1e3 * widths_s).sum()
    assert energy_j == pytest.approx(found.power.energy_j.value)


def test_axes_in_the_terminal_end_on_short_numbers():
    for high, top in ((74.8, "80"), (29_935.0, "30,000"), (305.0, "320"), (0.013, "0.016")):
        series = Series(name="y", x=floats([0, 10]), y=floats([0, high]))
        chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y"), series=(series,))
        first = next(line for line in chart_text(chart).splitlines() if "┤" in line)
        assert first.split("┤")[0].strip() == top
