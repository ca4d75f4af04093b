"""Charts in a terminal: a table with bars where there is one series of bars, else a braille plot.

Never wider than asked, no colours: what is printed can be mailed.
"""

import math

import numpy as np

from gpuplan.domain.chart import Chart, ChartSeries
from gpuplan.domain.columns import Floats

WIDTH = 100
STEPS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.0, 10.0)
N_ROWS = 13  # twelve steps: a label at every quarter
MOST_BARS = 40
N_BAR = 50  # cells of a full bar
EIGHTHS = " ▏▎▍▌▋▊▉█"
# Dots of a braille cell by row and column, as Unicode numbers them.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
MARKS = "●▲■◆✚○△□"


def charts_text(charts: tuple[Chart, ...], *, width: int = WIDTH) -> str:
    """All charts, one below the other."""
    return "\n".join(chart_text(chart, width=width) for chart in charts)


def chart_text(chart: Chart, *, width: int = WIDTH) -> str:
    """One chart; it ends with a line end."""
    has_values = any(len(series.x) for series in chart.series)
    if not has_values:
        lines = ["(nothing to draw)"]
    elif len(chart.series) == 1 and chart.series[0].style == "bars":
        lines = _bars(chart, width)
    else:
        lines = _plot(chart, width)
    note = [chart.note] if chart.note else []
    return "\n".join([chart.title, *lines, *note]) + "\n"


def number(value: float) -> str:
    """Few digits, no exponent where people would not write one."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-3:
        return f"{value:.2g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _bars(chart: Chart, width: int) -> list[str]:
    """Rows of place, value and bar; many rows are put together, and their title says how."""
    x, y, n_each = _grouped(chart.series[0])
    top = max([*chart.top, float(y.max())]) or 1.0
    heads = (chart.x.title, chart.y.title)
    places, values = [number(v) for v in x], [f"{v:.0f}" for v in y]
    widths = [
        max(len(head), *(len(cell) for cell in cells))
        for head, cells in zip(heads, (places, values), strict=True)
    ]
    n_bar = max(8, min(N_BAR, width - sum(widths) - 6))
    lines = [f"{heads[0]:>{widths[0]}} | {heads[1]}"]
    lines.append("-" * (widths[0] + 1) + "+" + "-" * (widths[1] + 2 + n_bar))
    lines += [
        f"{place:>{widths[0]}} | {value:>{widths[1]}} {_bar(float(v) / top, n_bar)}".rstrip()
        for place, value, v in zip(places, values, y, strict=True)
    ]
    if n_each > 1:
        lines.append(f"each row is the mean of {n_each} bins")
    return lines


def _grouped(series: ChartSeries) -> tuple[Floats, Floats, int]:
    """Rows of a table that stays on a page: means of so many bins."""
    n_each = -(-len(series.x) // MOST_BARS)
    starts = np.arange(0, len(series.x), n_each)
    sums = np.add.reduceat(series.y, starts)
    counts = np.diff(np.append(starts, len(series.x)))
    return series.x[starts], sums / counts, n_each


def _bar(share: float, n_cells: int) -> str:
    n_eighths = round(max(0.0, min(1.0, share)) * n_cells * 8)
    whole, rest = divmod(n_eighths, 8)
    return "█" * whole + (EIGHTHS[rest] if rest else "") + "░" * (n_cells - whole - bool(rest))


def _plot(chart: Chart, width: int) -> list[str]:
    """Lines in dots, eight to a cell; points as marks of their own."""
    low_x, high_x = _range(series.x for series in chart.series)
    low_y, high_y = _range([*(series.y for series in chart.series), np.array(chart.top)])
    low_y = min(0.0, low_y)
    high_y = _round_top(high_y) if high_y > low_y == 0.0 else max(high_y, low_y + 1.0)
    high_x = high_x if high_x > low_x else low_x + 1.0
    ticks = [number(low_y + (high_y - low_y) * k / (N_ROWS - 1)) for k in range(N_ROWS)]
    n_left = max(len(tick) for tick in ticks)
    n_columns = width - n_left - 3
    cells = _canvas(chart, (low_x, high_x, low_y, high_y), n_columns)
    lines = [chart.y.title]
    for row in range(N_ROWS):
        from_bottom = N_ROWS - 1 - row
        is_reported = from_bottom % 3 == 0
        tick = ticks[from_bottom] if is_reported else ""
        lines.append(
            f"{tick:>{n_left}} {'┤' if is_reported else '│'}{''.join(cells[row])}".rstrip()
        )
    lines.append(" " * (n_left + 1) + "└" + "─" * n_columns)
    low, high = number(low_x), number(high_x)
    gap = n_columns - len(low) - len(high) - len(chart.x.title)
    left = gap // 2
    lines.append(" " * (n_left + 2) + low + " " * left + chart.x.title + " " * (gap - left) + high)
    return [*lines, *_legend(chart, width)]


def _round_top(high: float) -> float:
    """The least value not below it whose quarters are short numbers."""
    quarter = high / 4
    power = 10.0 ** np.floor(np.log10(quarter))
    return float(4 * power * next(step for step in STEPS if step * power >= quarter * (1 - 1e-9)))


def _range(columns: object) -> tuple[float, float]:
    values = np.concatenate([np.asarray(column, dtype=float) for column in columns])  # type: ignore[attr-defined]
    return float(values.min()), float(values.max())


def _canvas(
    chart: Chart, frame: tuple[float, float, float, float], n_columns: int
) -> list[list[str]]:
    low_x, high_x, low_y, high_y = frame
    dots = np.zeros((N_ROWS * 4, n_columns * 2), dtype=bool)
    marks: dict[tuple[int, int], str] = {}
    for place, series in enumerate(chart.series):
        across = (series.x - low_x) / (high_x - low_x) * (n_columns * 2 - 1)
        up = (series.y - low_y) / (high_y - low_y) * (N_ROWS * 4 - 1)
        if len(chart.series) > 1 or series.style == "points":
            for at in _marked(across, series.style):
                row, column = N_ROWS - 1 - round(up[at]) // 4, round(across[at]) // 2
                if series.style == "points":
                    marks[row, column] = MARKS[place % len(MARKS)]
                    _label(marks, series.labels[at : at + 1], row, column, n_columns=n_columns)
                marks.setdefault((row, column), MARKS[place % len(MARKS)])
        if series.style != "points":
            _draw(dots, across, up, is_step=series.style == "step")
    return [
        [marks.get((row, column)) or _cell(dots, row, column) for column in range(n_columns)]
        for row in range(N_ROWS)
    ]


def _label(
    marks: dict[tuple[int, int], str],
    labels: tuple[str, ...],
    row: int,
    column: int,
    *,
    n_columns: int,
) -> None:
    """What a point stands for, beside it where there is room: on its left near the right edge."""
    for text in labels:
        begins = column + 1 if column + 1 + len(text) <= n_columns else column - len(text)
        cells = [(row, begins + k) for k in range(len(text))]
        if begins >= 0 and not any(cell in marks for cell in cells):
            marks.update(zip(cells, text, strict=True))


def _marked(across: Floats, style: str) -> list[int]:
    """Which values carry their series' mark: all points, or a few of a line."""
    if style == "points" or len(across) <= 8:
        return list(range(len(across)))
    return [round(k * (len(across) - 1) / 7) for k in range(8)]


def _draw(
    dots: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]",
    across: Floats,
    up: Floats,
    *,
    is_step: bool,
) -> None:
    """A line from value to value, without gaps; a step keeps its height to the next place."""
    if is_step and len(across) > 1:
        across, up = np.repeat(across, 2)[1:], np.repeat(up, 2)[:-1]
    n_high = dots.shape[0]
    for k in range(max(1, len(across) - 1)):
        b = min(k + 1, len(across) - 1)
        n = int(max(abs(across[b] - across[k]), abs(up[b] - up[k]))) + 1
        columns = np.rint(np.linspace(across[k], across[b], n + 1)).astype(int)
        rows = n_high - 1 - np.rint(np.linspace(up[k], up[b], n + 1)).astype(int)
        dots[rows, columns] = True


def _cell(dots: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]", row: int, column: int) -> str:
    code = sum(DOTS[i][j] for i in range(4) for j in range(2) if dots[row * 4 + i, column * 2 + j])
    return chr(0x2800 + code) if code else " "


def _legend(chart: Chart, width: int) -> list[str]:
    if len(chart.series) == 1 and chart.series[0].style != "points":
        return []
    parts = [
        f"{MARKS[place % len(MARKS)]} {series.name}" for place, series in enumerate(chart.series)
    ]
    lines, line = [], ""
    for part in parts:
        if line and len(line) + len(part) + 3 > width:
            lines.append(line)
            line = ""
        line = f"{line}   {part}" if line else f"  {part}"
    return [*lines, line]
