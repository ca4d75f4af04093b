"""What every answer of a verb can do: show itself as a document, a table, a line or a page.

How a result is shown is the report room's business. The doors' hall hands the functions in
(`show_with`); a result that was made without it can still be read field by field.
"""

from typing import TYPE_CHECKING, Any, Protocol

from gpuplan.domain.sheet import Sheet
from gpuplan.errors import InvariantError, one

if TYPE_CHECKING:
    import polars as pl


class Presenter(Protocol):
    """The ways in which a result is shown."""

    def sheet(self, result: "Result") -> Sheet:
        """The document, tables and remarks of the result."""
        ...

    def columns(self, result: "Result") -> "dict[str, Any] | list[dict[str, Any]] | None":
        """Columns or rows of the result's main table; None where it has none."""
        ...

    def html(self, sheet: Sheet) -> str | None:
        """A fragment of a page; None where pages cannot be made."""
        ...


_presenters: list[Presenter] = []


def show_with(presenter: Presenter) -> None:
    """Show results with this presenter from now on."""
    _presenters[:] = [presenter]


def _presenter() -> Presenter:
    if not _presenters:
        fix = "import gpuplan.api, which brings the report room"
        raise one(InvariantError, "result", "presenter", "nobody shows results yet", fix)
    return _presenters[0]


class Result:
    """Base of what verbs answer; the fields are the subclass's own."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with `--json`."""
        return _presenter().sheet(self).document

    def to_polars(self) -> "pl.DataFrame":
        """The main table of the result; TypeError where it has none."""
        import polars as pl  # noqa: PLC0415

        columns = _presenter().columns(self)
        if columns is None:
            raise TypeError(f"{type(self).__name__} has no main table: use to_dict()")
        return pl.DataFrame(columns)

    def __repr__(self) -> str:
        """One line: the kind of result, and its answer."""
        return f"<{type(self).__name__}: {self._head()}>"

    def _head(self) -> str:
        """The answer in a line; without one, the first plain values of the document."""
        if not _presenters:
            return "…"
        sheet = _presenter().sheet(self)
        plain = {k: v for k, v in sheet.document.items() if isinstance(v, str | int | float)}
        shown = [f"{key} {value}" for key, value in plain.items() if key != "schema_version"]
        return sheet.head or ", ".join(shown[:3])

    def _repr_html_(self) -> str | None:
        """The result's tables, for notebooks."""
        return _presenter().html(_presenter().sheet(self))
