"""A sweep as a table, a document and charts: one row for each case."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from gpuplan.domain.chart import Axis, Chart, ChartSeries
from gpuplan.domain.columns import floats
from gpuplan.domain.sheet import Sheet, Table

Row = tuple[tuple[Any, ...], Mapping[str, Any]]  # values of the axes, result
N_SHOWN = 50  # rows on a terminal; files have all
N_LINES = 12  # of one chart


def sweep_sheet(
    verb: str, axes: Sequence[str], columns: Sequence[str], rows: Sequence[Row]
) -> Sheet:
    """Every case with its columns; refused cases say why."""
    found = [
        dict(zip(axes, values, strict=True))
        | {column: value_at(result, column) for column in columns}
        | ({"error": result["error"]} if "error" in result else {})
        for values, result in rows
    ]
    heads = (*axes, *columns, *(("error",) if any("error" in each for each in found) else ()))
    cells = tuple(tuple(_shown(each.get(head)) for head in heads) for each in found)
    n_refused = sum("error" in each for each in found)
    head = f"{len(found):,} cases of gpuplan {verb}" + (
        f", {n_refused:,} refused" * bool(n_refused)
    )
    whole = Table(title="", columns=heads, rows=cells, right=tuple(columns))
    title = f"{N_SHOWN} of {len(found):,}; -o csv has all" if len(found) > N_SHOWN else ""
    shown = Table(title=title, columns=heads, rows=cells[:N_SHOWN], right=tuple(columns))
    document = {"verb": verb, "axes": list(axes), "columns": list(columns), "cases": found}
    return Sheet(document=document, tables=(shown,), head=head, whole_tables=(whole,))


def value_at(result: Mapping[str, Any], path: str) -> Any:
    """What a document holds under keys with dots between them; None where it has none."""
    if path in result:
        return result[path]
    found: Any = result
    for key in path.split("."):
        if isinstance(found, list) and key in map(str, range(len(found))):
            found = found[int(key)]
        elif isinstance(found, Mapping):
            found = found.get(key)
        else:
            return None
    return found


def sweep_charts(
    axes: Sequence[str], columns: Sequence[str], rows: Sequence[Row]
) -> tuple[Chart, ...]:
    """Each column over the last axis of numbers; a line for each choice of the others."""
    numeric = [k for k in range(len(axes)) if all(_is_number(values[k]) for values, _ in rows)]
    if not numeric:
        return ()
    made = (_chart(axes, numeric[-1], column, rows) for column in columns)
    return tuple(chart for chart in made if chart.series)


def _chart(axes: Sequence[str], place: int, column: str, rows: Sequence[Row]) -> Chart:
    lines = list(_lines(axes, place, column, rows))
    note = f"{N_LINES} of {len(lines)} lines" if len(lines) > N_LINES else ""
    return Chart(
        title=f"{column} over {axes[place]}",
        x=Axis(label=axes[place]),
        y=Axis(label=column),
        series=tuple(lines[:N_LINES]),
        note=note,
    )


def _lines(
    axes: Sequence[str], place: int, column: str, rows: Sequence[Row]
) -> Iterator[ChartSeries]:
    points = [
        (_others(axes, place, values), float(values[place]), value_at(result, column))
        for values, result in rows
    ]
    given = sorted((name, x, float(y)) for name, x, y in points if _is_number(y))
    for name, group in groupby(given, key=lambda point: point[0]):
        _, x, y = zip(*group, strict=True)
        yield ChartSeries(name=name, x=floats(x), y=floats(y))


def _others(axes: Sequence[str], place: int, values: tuple[Any, ...]) -> str:
    parts = [f"{axes[k]} {value}" for k, value in enumerate(values) if k != place]
    return ", ".join(parts) or "all"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return "" if value is None else f"{value:,.4g}" if isinstance(value, float) else str(value)
