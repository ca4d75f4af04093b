"""A result made ready to show: one document for machines, tables and remarks for people."""

from dataclasses import replace
from typing import Any

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under headings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()  # columns set to the right


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The same result in both forms. Remarks go beside the result, never into it."""

    document: dict[str, Any]
    tables: tuple[Table, ...]
    head: str = ""
    remarks: tuple[tuple[str, tuple[str, ...]], ...] = ()  # heading, lines
    whole_tables: tuple[Table, ...] = ()  # for files, where a terminal gets a shortened one
    detail_tables: tuple[Table, ...] = ()  # on a terminal only where everything is asked for
    detail_remarks: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def file_tables(self) -> tuple[Table, ...]:
        """Tables with every row."""
        return self.whole_tables or self.tables

    def with_details(self) -> "Sheet":
        """The sheet with everything that a terminal otherwise keeps back."""
        tables = (*self.tables, *self.detail_tables)
        return replace(self, tables=tables, remarks=(*self.remarks, *self.detail_remarks))
