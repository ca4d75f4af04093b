"""Rent, buy or both as tables, a document and a chart.

A whole-life statement as a sheet: causes by year for people, cents by month for machines.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from xml.etree.ElementTree import Element

from gpuplan.domain.money.statement import Statement
from gpuplan.domain.money.worth import Payback
from gpuplan.domain.sheet import Table
from gpuplan.domain.system.designed import DesignedPlan, RentOrOwn
from gpuplan.errors import InputError, one
from gpuplan.report.charts.axis import Axis, tick_label, ticks
from gpuplan.report.charts.svg import drawing, label, line, polyline
from gpuplan.report.document import Document, pick, pick_each, plain, result_document
from gpuplan.report.system.parts import usd_text
from gpuplan.report.table import table
from gpuplan.units import MONTHS_PER_YEAR

WIDTH, HEIGHT = 760.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 80.0, 30.0, 70.0, 60.0
INKS = ("#dc2626", "#2563eb", "#16a34a")
PRICE_DAY = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")  # in the source of a line
TITLE = "Rent, own or both over the life of a node"


def ownership_document(found: RentOrOwn) -> Document:
    """One comparison for machines."""
    books = ("expense_cents", "depreciation_cents", "book_value_cents")
    return {
        **pick(found, "rent_from", "used_frac", group="group.name", best="best.name"),
        "ways": [
            {
                **pick(way, "n_owned", "npv_usd", way="name"),
                **pick(way.statement, "total_cents", "n_months"),
                "by_cause_cents": _by_cause(way.statement.lines),
                "npv_range_usd": plain(usd),
                "payback": way.payback and _payback(found, way.payback),
            }
            for way, usd in zip(found.options, found.npv_usd, strict=True)
        ],
        "break_even": {
            **pick(found.break_even, "utilization_ratio", reachable="is_reachable"),
            "own_usd_per_available_accelerator_h": found.break_even.own_usd_per_available_h,
            "rent_usd_per_used_accelerator_h": found.break_even.rent_usd_per_used_h,
        },
        "chart": {"share_of_hours": list(found.shares), **{n: list(y) for n, y in found.curves}},
        "books_by_year": [
            {"year": place, **pick(year, *books)} for place, year in enumerate(found.book, 1)
        ],
    }


def _by_cause(lines: Sequence[Any]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for found in lines:
        sums[found.category] = sums.get(found.category, 0) + sum(found.cents)
    return sums


def _payback(compared: RentOrOwn, found: Payback) -> Document:
    month = found.simple_month
    return {
        **pick(found, "simple_month", "discounted_month", "npv_gain_usd"),
        "simple_date": None if month is None else compared.calendar(month),
    }


def ownership_tables(found: Sequence[RentOrOwn]) -> Iterator[Table]:
    """Renting, owning and both for each group, then the accounts of owning it."""
    for compared in found:
        even = compared.break_even
        share = f"{even.utilization_ratio:.0%}" if even.is_reachable else "no"
        title = (
            f"{compared.group.name}: utilization {compared.used_frac:.0%}, owning pays from "
            f"{share} utilization"
        )
        columns: dict[str, Callable[[Any], str]] = {
            "option": lambda row: row[0].name,
            ">owned": lambda row: str(row[0].n_owned),
            ">months": lambda row: str(row[0].statement.n_months),
            ">NPV ($)": lambda row: f"{row[0].npv_usd:,.0f}",
            ">range ($)": lambda row: usd_text(row[1]),
            ">payback": partial(_when, compared),
            "": partial(_mark, compared),
        }
        yield table(title, zip(compared.options, compared.npv_usd, strict=True), columns)
        yield _books(compared)


def _mark(found: RentOrOwn, row: tuple[Any, Any]) -> str:
    return "cheapest" if row[0] is found.best else ""


def _when(found: RentOrOwn, row: tuple[Any, Any]) -> str:
    way = row[0]
    if way.payback is None:
        return "" if way.n_owned else f"from {found.rent_from}"
    when = _month(found, way.payback.simple_month)
    if way.payback.discounted_month != way.payback.simple_month:
        when += f"; {_month(found, way.payback.discounted_month)} discounted"
    return when


def _books(found: RentOrOwn) -> Table:
    columns = {
        ">year": lambda row: str(row[0]),
        ">expense ($)": lambda row: _dollars(row[1].expense_cents),
        ">depreciation ($)": lambda row: _dollars(row[1].depreciation_cents),
        ">book value ($)": lambda row: _dollars(row[1].book_value_cents),
    }
    title = "All owned, in the books: depreciation in place of the purchase"
    return table(title, enumerate(found.book, 1), columns)


def _month(found: RentOrOwn, month: int | None) -> str:
    return "never" if month is None else f"{month} ({found.calendar(month)})"


def _dollars(cents: int) -> str:
    return f"{cents / 100:,.0f}"


def ways_svg(designed: DesignedPlan) -> str:
    """Net present cost of renting, owning and both over utilization; they cross at break-even."""
    found = designed.money.rent_or_own
    if not found:
        fix = "give prices.hardware and prices.offers"
        raise one(
            InputError, designed.name, "ways", "rent and ownership could not be compared", fix
        )
    return _chart(found[0])


def _chart(found: RentOrOwn) -> str:
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


def statement_head(statement: Statement, *, npv_usd: float | None) -> str:
    """The total with its range, what it is worth today, and the days of its prices."""
    total = statement.total_cents / 100
    low, high = statement.low_cents / 100, statement.high_cents / 100
    head = f"{statement.name}: ${total:,.0f} over {statement.n_months} months"
    head += f" (${low:,.0f} to ${high:,.0f})" if low != high else ""
    if npv_usd is not None:
        rate = statement.discount_frac_per_year
        head += f"; net present value ${npv_usd:,.0f} at {rate:.1%} a year"
    days = sorted(day for line in statement.lines for day in PRICE_DAY.findall(line.source))
    ages = " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""
    return f"{head}; prices as of {ages}" if ages else head


def statement_document(statement: Statement, *, npv_usd: float | None = None) -> Document:
    """Every line with its cents by month; month 0 is today."""
    sums = ("total_cents", "low_cents", "high_cents")
    body = {
        **pick(statement, "name", "n_months", "discount_frac_per_year", *sums),
        "npv_usd": npv_usd,
        "by_category_cents": dict(statement.cents_by_category),
        "by_month_cents": list(statement.cents_by_month),
        "lines": pick_each(
            statement.lines, "category", "name", "source", "total_cents", by_month_cents="cents"
        ),
    }
    return result_document(body, assumptions=statement.assumptions)


def statement_tables(statement: Statement) -> Iterator[Table]:
    """Dollars by cause and year, and where each price comes from."""
    yield _by_year(statement)
    columns = {
        "cause": lambda line: line.category,
        "for": lambda line: line.name,
        ">$": lambda line: _usd(line.total_cents),
        "price from": lambda line: line.source or "computed",
    }
    yield table("Sources of prices", statement.lines, columns)


def _by_year(statement: Statement) -> Table:
    """One row per cause, one column per year; today stands alone."""
    n_years = -(-statement.n_months // MONTHS_PER_YEAR)
    causes: dict[str, list[int]] = {}
    for row in statement.lines:
        sums = causes.setdefault(row.category, [0] * (n_years + 2))
        causes[row.category] = [
            a + b for a, b in zip(sums, _years(row.cents, n_years), strict=True)
        ]
    rows = [(name, *map(_usd, sums)) for name, sums in causes.items()]
    if rows:
        total = [sum(column) for column in zip(*causes.values(), strict=True)]
        rows.append(("total", *map(_usd, total)))
    columns = ("cause", "today", *(f"year {y + 1}" for y in range(n_years)), "total")
    return Table(title="$ by cause and year", columns=columns, rows=tuple(rows), right=columns[1:])


def _years(cents: Sequence[int], n_years: int) -> list[int]:
    starts = range(1, 1 + MONTHS_PER_YEAR * n_years, MONTHS_PER_YEAR)
    return [cents[0], *(sum(cents[at : at + MONTHS_PER_YEAR]) for at in starts), sum(cents)]


def _usd(cents: int) -> str:
    return f"{cents / 100:,.2f}"
