"""Charts as pages and pictures, shapes as SVG: what users wrote stays text."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from fakes.results import simulation
from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import floats
from gpuplan.report.charts.axis import Axis as Scale
from gpuplan.report.charts.axis import tick_label, ticks
from gpuplan.report.charts.html import charts_html
from gpuplan.report.charts.png import charts_png
from gpuplan.report.charts.simulation import simulate_charts
from gpuplan.report.charts.svg import box, canvas, drawing, label, line, polyline, shape
from gpuplan.report.charts.text import chart_text, charts_text, number

HOSTILE = "</script><script>alert(1)</script>"
SVG = "{http://www.w3.org/2000/svg}"


def chart(title="Load", note="", n=5, style="line", names=("a",)):
    x = floats(range(n))
    series = tuple(ChartSeries(name=name, x=x, y=floats(x + 1), style=style) for name in names)
    return Chart(
        title=title, x=Axis(label="Time", unit="min"), y=Axis(label="Rate", unit="1/s"),
        series=series, note=note,
    )  # fmt: skip


def test_a_page_of_charts_is_one_file_with_every_figure():
    page = charts_html((chart("first"), chart("second", note="a note")), "Two <charts>")
    assert "Two &lt;charts&gt;" in page
    assert page.count("<figure>") == 2
    assert "<figcaption>a note</figcaption>" in page
    assert "src=" not in page.split("<h1>")[1]


def test_hostile_titles_do_not_end_the_script():
    page = charts_html((chart(HOSTILE, note=HOSTILE, names=(HOSTILE,)),), HOSTILE)
    assert HOSTILE not in page


@pytest.mark.parametrize("style", ["line", "step", "bars", "points"])
def test_every_style_is_drawn_in_every_form(style):
    made = chart(style=style)
    assert "Load" in charts_html((made,), "t")
    assert charts_png((made,), "t").startswith(b"\x89PNG")
    assert chart_text(made).startswith("Load\n")


def test_pictures_are_the_same_bytes():
    assert charts_png((chart(),), "t") == charts_png((chart(),), "t")


def test_many_bars_become_an_area():
    many = chart(n=200, style="bars")
    assert '"fill":"tozeroy"' in charts_html((many,), "t").split("<h1>")[1]
    assert charts_png((many,), "t").startswith(b"\x89PNG")


def test_a_run_has_its_charts_in_order():
    titles = [made.title for made in simulate_charts(simulation())]
    assert titles[0].startswith("GPU utilization")
    assert "TTFT by percentile" in titles
    assert "End-to-end latency by percentile" in titles
    assert len(titles) == len(set(titles))


def test_the_slo_target_is_a_note():
    [ttft] = [c for c in simulate_charts(simulation()) if c.title.startswith("TTFT")]
    assert ttft.note == "SLO target: 300 ms"
    [free] = [c for c in simulate_charts(simulation(ttft_s=None)) if c.title.startswith("TTFT")]
    assert free.note == ""


def test_every_axis_has_a_label_and_time_a_unit():
    for made in simulate_charts(simulation()):
        assert made.y.label
        assert made.x.unit in ("min", "%")


def test_text_charts_are_apart_and_end_with_a_line_end():
    text = charts_text((chart("one"), chart("two")))
    assert text.endswith("\n")
    assert "one\n" in text
    assert "\n\ntwo\n" in text or "\ntwo\n" in text


def test_nothing_to_draw_is_said():
    empty = Chart(title="t", x=Axis(label="x"), y=Axis(label="y"), series=())
    assert "(nothing to draw)" in chart_text(empty)


def test_several_series_have_a_legend():
    text = chart_text(chart(names=("arrived", "done")))
    assert "● arrived" in text
    assert "▲ done" in text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234.5, "1,234"), (0.25, "0.25"), (2.5e7, "2.5e+07"), (40, "40")]
)
def test_numbers_beside_axes_are_short(value, text):
    assert number(value) == text


def test_shapes_write_attributes_as_svg_does():
    made = shape("rect", x=1.26, stroke_width=2.0, class_="bar")
    assert made.attrib == {"x": "1.3", "stroke-width": "2.0", "class": "bar"}


def test_a_box_has_its_label_in_the_middle():
    rect, text = box((10.0, 20.0), (40.0, 10.0), fill="red", text="n1")
    assert (rect.get("width"), rect.get("fill")) == ("40.0", "red")
    assert (text.get("x"), text.get("text-anchor"), text.text) == ("30.0", "middle", "n1")
    assert len(box((0, 0), (1, 1), fill="red")) == 1


def test_a_drawing_is_xml_with_a_title_for_screen_readers():
    parts = [line((0, 0), (1, 1)), polyline([(0, 0), (2, 3)], stroke="red"), label((0, 0), "a&b")]
    root = ET.fromstring(drawing(100, 50, title="a <b>", parts=parts))
    assert root.tag == f"{SVG}svg"
    assert root.get("viewBox") == "0 0 100 50"
    assert root.find(f"{SVG}title").text == "a <b>"
    assert root.find(f"{SVG}polyline").get("points") == "0.0,0.0 2.0,3.0"
    assert root.find(f"{SVG}text").text == "a&b"


def test_a_canvas_inside_a_page_names_no_namespace():
    made = canvas(10, 10, title="t", parts=[])
    assert made.get("xmlns") is None


def test_a_scale_maps_ends_to_ends():
    scale = Scale(10.0, 20.0, 100.0, 0.0)
    assert scale.at(10.0) == 100.0
    assert scale.at(20.0) == 0.0
    assert scale.at(15.0) == 50.0


def test_ticks_are_evenly_spaced():
    found = ticks(0.0, 97.0)
    gaps = {round(b - a, 9) for a, b in pairwise(found)}
    assert len(gaps) == 1
    assert tick_label(found[-1]) == "80"
