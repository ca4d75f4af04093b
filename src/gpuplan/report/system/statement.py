"""A whole-life statement as a sheet: causes by year for people, cents by month for machines."""

from collections.abc import Iterator, Sequence

from gpuplan.domain.money.statement import Statement
from gpuplan.domain.sheet import Table
from gpuplan.report.document import Document, pick, pick_each, result_document
from gpuplan.report.table import table
from gpuplan.units import MONTHS_PER_YEAR


def statement_head(statement: Statement, *, npv_usd: float | None) -> str:
    """The total with its range, and what it is worth today."""
    total = statement.total_cents / 100
    low, high = statement.low_cents / 100, statement.high_cents / 100
    head = f"{statement.name}: ${total:,.0f} over {statement.n_months} months"
    head += f" (${low:,.0f} to ${high:,.0f})" if low != high else ""
    if npv_usd is not None:
        rate = statement.discount_frac_per_year
        head += f"; net present value ${npv_usd:,.0f} at {rate:.1%} a year"
    return head


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
    for line in statement.lines:
        sums = causes.setdefault(line.category, [0] * (n_years + 2))
        causes[line.category] = [
            a + b for a, b in zip(sums, _years(line.cents, n_years), strict=True)
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
