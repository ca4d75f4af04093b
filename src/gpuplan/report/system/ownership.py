"""Rent, buy or both as tables, a document and a chart."""

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from gpuplan.domain.money.worth import Payback
from gpuplan.domain.sheet import Table
from gpuplan.domain.system.designed import DesignedPlan, WaysCompared
from gpuplan.errors import InputError, one
from gpuplan.report.charts.axis import Axis, tick_label, ticks
from gpuplan.report.charts.svg import drawing, label, line, polyline
from gpuplan.report.system.parts import range_document, usd_text

WIDTH, HEIGHT = 760.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 80.0, 30.0, 70.0, 60.0
INKS = ("#dc2626", "#2563eb", "#16a34a")
TITLE = "Rent, own or both over the life of a machine"


def ways_document(found: WaysCompared) -> dict[str, Any]:
    """One comparison for machines."""
    even = found.break_even
    return {
        "group": found.group.name,
        "rent_from": found.rent_from,
        "used_frac": found.used_frac,
        "ways": [
            {
                "way": way.name,
                "n_owned": way.n_owned,
                "npv_usd": way.npv_usd,
                "total_cents": way.statement.total_cents,
                "n_months": way.statement.n_months,
                "by_cause_cents": _by_cause(way.statement.lines),
                "npv_range_usd": range_document(usd),
                "payback": None if way.payback is None else _payback(found, way.payback),
            }
            for way, usd in zip(found.ways, found.npv_usd, strict=True)
        ],
        "best": found.best.name,
        "break_even": {
            "utilization_ratio": even.utilization_ratio,
            "reachable": even.is_reachable,
            "own_usd_per_available_accelerator_h": even.own_usd_per_available_h,
            "rent_usd_per_used_accelerator_h": even.rent_usd_per_used_h,
        },
        "chart": {"share_of_hours": list(found.shares), **{n: list(y) for n, y in found.curves}},
        "books_by_year": [
            {
                "year": place + 1,
                "expense_cents": year.expense_cents,
                "depreciation_cents": year.depreciation_cents,
                "book_value_cents": year.book_value_cents,
            }
            for place, year in enumerate(found.book)
        ],
    }


def _by_cause(lines: Sequence[Any]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for found in lines:
        sums[found.category] = sums.get(found.category, 0) + sum(found.cents)
    return sums


def _payback(compared: WaysCompared, found: Payback) -> dict[str, Any]:
    return {
        "simple_month": found.simple_month,
        "simple_date": None
        if found.simple_month is None
        else compared.calendar(found.simple_month),
        "discounted_month": found.discounted_month,
        "npv_gain_usd": found.npv_gain_usd,
    }


def ways_tables(found: Sequence[WaysCompared]) -> Iterator[Table]:
    """The ways of each group, then the accounts of owning it."""
    for compared in found:
        even = compared.break_even
        from_share = f"{even.utilization_ratio:.0%}" if even.is_reachable else "no share"
        columns = ("way", "owned", "months", "NPV USD", "cheap to dear", "paid back in", "")
        yield Table(
            title=f"{compared.group.name}: in use {compared.used_frac:.0%} of the time, "
            f"owning pays from {from_share} on",
            columns=columns,
            rows=tuple(_rows(compared)),
            right=columns[1:6],
        )
        yield _books(compared)


def _rows(found: WaysCompared) -> Iterator[tuple[str, ...]]:
    for way, usd in zip(found.ways, found.npv_usd, strict=True):
        back = way.payback
        when = ""
        if back is not None:
            when = _month(found, back.simple_month)
            if back.discounted_month != back.simple_month:
                when += f"; {_month(found, back.discounted_month)} discounted"
        yield (
            way.name,
            str(way.n_owned),
            str(way.statement.n_months),
            f"{way.npv_usd:,.0f}",
            usd_text(usd),
            when or f"from {found.rent_from}" * (not way.n_owned),
            "least" if way is found.best else "",
        )


def _books(found: WaysCompared) -> Table:
    rows = tuple(
        (
            str(place + 1),
            _dollars(year.expense_cents),
            _dollars(year.depreciation_cents),
            _dollars(year.book_value_cents),
        )
        for place, year in enumerate(found.book)
    )
    columns = ("year", "expense", "depreciation", "book value")
    return Table(
        title="All owned, in the books: depreciation in place of the purchase",
        columns=columns,
        rows=rows,
        right=columns,
    )


def _month(found: WaysCompared, month: int | None) -> str:
    return "never" if month is None else f"{month} ({found.calendar(month)})"


def _dollars(cents: int) -> str:
    return f"{cents / 100:,.0f}"


def ways_svg(designed: DesignedPlan) -> str:
    """Present cost of each way over the share of hours in use; lines cross at the break-even."""
    found = designed.money.ways
    if not found:
        fix = "give prices.hardware and prices.offers"
        raise one(InputError, designed.name, "ways", "no ways could be compared", fix)
    return _chart(found[0])


def _chart(found: WaysCompared) -> str:
    most = max(max(values) for _, values in found.curves)
    x_axis = Axis(0.0, 1.0, LEFT, WIDTH - RIGHT)
    y_axis = Axis(0.0, most * 1.05, HEIGHT - BOTTOM, TOP)
    title = f"{TITLE}: {found.group.name}"
    parts = [label((LEFT, 24), title, size=15), *_scales(x_axis, y_axis)]
    for place, (name, values) in enumerate(found.curves):
        points = [(x_axis.at(x), y_axis.at(y)) for x, y in zip(found.shares, values, strict=True)]
        key_x = WIDTH - RIGHT - 360 + 120 * place
        parts.append(_curve(points, place, name))
        parts.append(_curve([(key_x, 46.0), (key_x + 22, 46.0)], place, name))
        parts.append(label((key_x + 28, 50), name))
    even = found.break_even
    if even.is_reachable:
        x = x_axis.at(even.utilization_ratio)
        parts.append(line((x, TOP), (x, HEIGHT - BOTTOM)))
        parts.append(label((x + 6, TOP + 14), f"break-even {even.utilization_ratio:.0%}"))
    return drawing(WIDTH, HEIGHT, title=title, parts=parts)


def _scales(x_axis: Axis, y_axis: Axis) -> Iterator[Element]:
    for value in ticks(0.0, y_axis.high):
        y = y_axis.at(value)
        yield line((LEFT, y), (WIDTH - RIGHT, y), width=0.5)
        yield label((LEFT - 8, y + 4), tick_label(value), anchor="end")
    for value in ticks(0.0, 1.0):
        yield label((x_axis.at(value), HEIGHT - BOTTOM + 18), f"{value:.0%}", anchor="middle")
    yield label(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16), "utilization", anchor="middle")
    yield label((LEFT, TOP - 10), "net present cost (USD)")


def _curve(points: Sequence[tuple[float, float]], place: int, name: str) -> Element:
    ink = {"fill": "none", "stroke": INKS[place % len(INKS)], "stroke_width": "2.5"}
    # The best of both lies on the others: its line is broken, so that they show.
    dashes = {"stroke_dasharray": "7 5"} if name == "own and rent" else {}
    return polyline(points, **ink, **dashes)
