"""Charts in every form: what is drawn is what was measured."""

import re
from dataclasses import replace

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.simulation import SimulateRequest, Simulation
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.report.charts.simulation import simulate_charts, utilization
from gpuplan.report.charts.text import chart_text, charts_text, number
from gpuplan.report.simulation.utilization import _clock, use_document, use_table
from gpuplan.simulation.serving.statistics import statistics_of

SEED = floats([0.20, 0.50, 0.90, 0.85, 0.95])


def run(**asked: float) -> Simulation:
    n = 900
    arrive_s = np.cumsum(np.random.default_rng(0).exponential(1 / 6, n))
    stream = requests_of(arrive_s, np.full(n, 500), np.full(n, 100))
    return api.simulate("Llama-3.1-8B", "H100", stream, SimulateRequest(**asked))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Simulation:
    return run()


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
    rising = ChartSeries(name="y", x=floats([0, 10]), y=floats([0, 5]))
    chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y", unit="s"), series=(rising,))
    lines = [line for line in chart_text(chart).splitlines() if "┤" in line or "│" in line]
    assert lines[0].split("┤")[0].strip() == "5"
    assert lines[0].rstrip()[-1] != "┤"
    places = [len(line.rstrip()) for line in lines]
    assert places == sorted(places, reverse=True)


def test_nothing_to_draw_is_said():
    empty = ChartSeries(name="y", x=floats([]), y=floats([]))
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
    latency = by_title["TTFT by percentile"].series[0]
    at_99 = latency.y[list(latency.x).index(99.0)]
    assert at_99 == pytest.approx(np.percentile(found.outcome.times.ttft_s, 99))
    power = by_title["Power of the accelerators"].series[0]
    assert found.power is not None
    energy_j = (power.y[:-1] * 1e3 * widths_s).sum()
    assert energy_j == pytest.approx(found.power.energy_j.value)


def test_axes_in_the_terminal_end_on_short_numbers():
    for high, top in ((74.8, "80"), (29_935.0, "30,000"), (305.0, "320"), (0.013, "0.016")):
        series = ChartSeries(name="y", x=floats([0, 10]), y=floats([0, high]))
        chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y"), series=(series,))
        first = next(line for line in chart_text(chart).splitlines() if "┤" in line)
        assert first.split("┤")[0].strip() == top


def test_latencies_are_those_of_the_table(found: Simulation):
    """What the warm-up cuts from the table is not in the chart either."""
    cut = statistics_of(found.outcome, warmup_s=20.0)
    charts = simulate_charts(replace(found, statistics=cut))
    drawn = next(c for c in charts if c.title == "End-to-end latency by percentile").series[0]
    assert cut.e2e is not None
    assert found.statistics.e2e is not None
    assert cut.e2e.p99_s != found.statistics.e2e.p99_s
    assert drawn.y[list(drawn.x).index(99.0)] == pytest.approx(cut.e2e.p99_s)


def test_a_long_run_is_told_to_its_end_in_few_rows():
    found = run(bin_s=20.0)
    n_bins = len(found.outcome.use.busy_frac)
    short, whole = use_table(found.outcome, 4), use_table(found.outcome, None)
    assert len(short.rows) <= 4 < len(whole.rows) == n_bins
    last_s = found.outcome.use.last_s(found.outcome.totals.span_s)
    busy = use_document(found.outcome, found.statistics.busy_frac)["over_time"]["busy"]
    bins_s = np.append(np.full(n_bins - 1, found.outcome.use.bin_s), last_s)
    assert (np.array(busy) * bins_s).sum() == pytest.approx(found.outcome.totals.busy_s)
    assert max(busy) <= 1.0


@pytest.mark.parametrize(
    ("at_s", "bin_s", "text"),
    [(3660.0, 60.0, "1:01"), (75.0, 15.0, "0:01:15"), (0.25, 0.25, "0:00:00.250")],
)
def test_the_clock_is_as_fine_as_the_bins(at_s: float, bin_s: float, text: str):
    assert _clock(at_s, bin_s) == text


def test_points_in_the_terminal_bear_their_labels():
    series = ChartSeries(
        name="sizes", x=floats([0, 50, 100]), y=floats([10, 50, 90]), style="points",
        labels=("1", "2", "12"),
    )  # fmt: skip
    chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y"), series=(series,))
    text = chart_text(chart)
    assert all(label in text for label in ("●1", "●2", "12●"))
    assert max(map(len, text.splitlines())) <= 100
