"""How results show themselves in Python: the report room's functions, found by kind of result."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from gpuplan.domain.result import Result
from gpuplan.domain.sheet import Sheet


@cache
def shown() -> dict[str, dict[str, str]]:
    """Kind of result → the function of this package that makes its sheet, and its main table.

    The main table is the list of its document that is named as rows; without one it has none.
    """
    from gpuplan.csv_rows import packaged_rows

    return {row["result"]: row for row in packaged_rows("gpuplan.api", "data/results.csv")}


class Presenter:
    """Shows results with the report room; see `gpuplan.domain.result.Presenter`."""

    def sheet(self, result: Result) -> Sheet:
        """The document, tables and remarks of the result."""
        from gpuplan import api

        make: Callable[[Any], Sheet] = getattr(api, shown()[type(result).__name__]["sheet"])
        return make(result)

    def columns(self, result: Result) -> dict[str, Any] | list[dict[str, Any]] | None:
        """Columns or rows of the result's main table; None where it has none."""
        outcome = getattr(result, "outcome", None)
        if outcome is not None and hasattr(outcome, "requests"):
            from gpuplan.report.simulation.document import request_columns

            return dict(request_columns(outcome))
        rows = shown()[type(result).__name__]["rows"]
        return flat_rows(self.sheet(result).document[rows]) if rows else None

    def html(self, sheet: Sheet) -> str | None:
        """The sheet as a fragment of a page; None without jinja2, which makes pages."""
        if find_spec("jinja2") is None:
            return None
        from gpuplan.report.page import sheet_html

        return sheet_html(sheet)


def flat_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of plain cells: nested keys are joined by a dot, lists become one text."""
    return [_flat(row) for row in rows]


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            cells |= _flat(value, f"{before}{key}.")
        else:
            is_list = isinstance(value, list | tuple)
            cells[f"{before}{key}"] = "; ".join(map(str, value)) if is_list else value
    return cells
