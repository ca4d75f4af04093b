"""A whole-life statement as a sheet: causes by year for people, cents by month for machines."""

from collections.abc import Sequence
from typing import Any

from gpuplan.domain.money.statement import CostLine, Statement
from gpuplan.domain.sheet import Sheet, Table
from gpuplan.report.provenance import SCHEMA_VERSION, assumption_lines, assumptions_document
from gpuplan.units import MONTHS_PER_YEAR


def statement_sheet(statement: Statement, *, npv_usd: float | None = None) -> Sheet:
    """The statement, ready to show; the present value is handed in."""
    total = statement.total_cents / 100
    low, high = statement.low_cents / 100, statement.high_cents / 100
    head = f"{statement.name}: ${total:,.0f} over {statement.n_months} months"
    head += f" (${low:,.0f} to ${high:,.0f})" if low != high else ""
    if npv_usd is not None:
        rate = statement.discount_frac_per_year
        head += f"; worth ${npv_usd:,.0f} today at {rate:.1%} a year"
    return Sheet(
        document=statement_document(statement, npv_usd=npv_usd),
        tables=(_by_year(statement), _sources(statement)),
        head=head,
        remarks=(("Assumed:", assumption_lines(statement.assumptions)),),
    )


def statement_document(statement: Statement, *, npv_usd: float | None = None) -> dict[str, Any]:
    """Every line with its cents by month; month 0 is today."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": statement.name,
        "n_months": statement.n_months,
        "discount_frac_per_year": statement.discount_frac_per_year,
        "total_cents": statement.total_cents,
        "low_cents": statement.low_cents,
        "high_cents": statement.high_cents,
        "npv_usd": npv_usd,
        "by_category_cents": dict(statement.cents_by_category),
        "by_month_cents": list(statement.cents_by_month),
        "lines": [_line(line) for line in statement.lines],
        "assumptions": assumptions_document(statement.assumptions),
    }


def _line(line: CostLine) -> dict[str, Any]:
    return {
        "category": line.category,
        "name": line.name,
        "source": line.source,
        "total_cents": line.total_cents,
        "by_month_cents": list(line.cents),
    }


def _by_year(statement: Statement) -> Table:
    """One row per cause, one column per year; today stands alone."""
    n_years = -(-statement.n_months // MONTHS_PER_YEAR)
    columns = ("cause", "today", *(f"year {y + 1}" for y in range(n_years)), "all")
    causes: dict[str, list[int]] = {}
    for line in statement.lines:
        sums = causes.setdefault(line.category, [0] * (n_years + 2))
        for index, cents in enumerate(_years(line.cents, n_years)):
            sums[index] += cents
    rows = [(name, *map(_usd, sums)) for name, sums in causes.items()]
    total = [sum(column) for column in zip(*causes.values(), strict=True)] if causes else []
    if total:
        rows.append(("all", *map(_usd, total)))
    return Table(
        title="Dollars by cause and year", columns=columns, rows=tuple(rows), right=columns[1:]
    )


def _years(cents: Sequence[int], n_years: int) -> list[int]:
    years = [
        sum(cents[1 + MONTHS_PER_YEAR * y : 1 + MONTHS_PER_YEAR * (y + 1)]) for y in range(n_years)
    ]
    return [cents[0], *years, sum(cents)]


def _usd(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _sources(statement: Statement) -> Table:
    rows = tuple(
        (line.category, line.name, _usd(line.total_cents), line.source or "computed")
        for line in statement.lines
    )
    columns = ("cause", "for", "dollars", "price from")
    return Table(title="Where prices come from", columns=columns, rows=rows, right=("dollars",))
