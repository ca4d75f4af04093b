"""Charts as one page that needs nothing else: the drawing program is inside."""

from plotly import graph_objects  # type: ignore[import-untyped]
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from gpuplan.domain.chart import Chart, ChartSeries
from gpuplan.report.page import render

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#6b7280")
MOST_BARS = 120  # more would be thinner than the gaps between them


def charts_html(charts: tuple[Chart, ...], title: str) -> str:
    """The page as text; it opens without a network."""
    drawn = [{"body": _figure(chart, at), "note": chart.note} for at, chart in enumerate(charts)]
    return render("charts.html.j2", title=title, program=get_plotlyjs(), charts=drawn)


def _figure(chart: Chart, place: int) -> str:
    drawing = graph_objects.Figure(
        [_trace(series, COLOURS[k % len(COLOURS)]) for k, series in enumerate(chart.series)]
    )
    drawing.update_layout(
        title=chart.title,
        template="plotly_white",
        height=380,
        hovermode="x unified",
        margin={"l": 70, "r": 20, "t": 50, "b": 60},
        showlegend=len(chart.series) > 1,
        bargap=0.1,
        legend={"orientation": "h", "y": 1.02, "x": 1, "xanchor": "right", "yanchor": "bottom"},
    )
    drawing.update_xaxes(title=chart.x.title)
    drawing.update_yaxes(title=chart.y.title, rangemode="tozero")
    if chart.top:
        highest = max([*chart.top, *(float(s.y.max()) for s in chart.series if len(s.y))])
        drawing.update_yaxes(range=[0, highest * 1.03])
    body: str = drawing.to_html(include_plotlyjs=False, full_html=False, div_id=f"chart-{place}")
    return body


def _trace(series: ChartSeries, colour: str) -> object:
    if series.style == "bars" and len(series.x) > MOST_BARS:
        return graph_objects.Scatter(
            x=series.x,
            y=series.y,
            name=series.name,
            mode="lines",
            fill="tozeroy",
            line={"color": colour, "shape": "hv", "width": 0.5},
        )
    if series.style == "bars":
        return graph_objects.Bar(
            x=series.x, y=series.y, name=series.name, marker_color=colour, offset=0
        )
    mode = "markers" if series.style == "points" else "lines"
    shape = "hv" if series.style == "step" else "linear"
    if series.labels:
        mode += "+text"
    return graph_objects.Scatter(
        x=series.x,
        y=series.y,
        name=series.name,
        mode=mode,
        text=list(series.labels) or None,
        textposition="top center",
        line={"color": colour, "shape": shape},
        marker={"color": colour, "size": 9},
    )
