"""Any finished sheet in another form."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.domain.sheet import Sheet


def to_csv(sheet: "Sheet") -> str:
    """The tables of a sheet as comma-separated values."""
    from gpuplan.report.table import to_csv as verb

    return verb(sheet)


def to_markdown(sheet: "Sheet") -> str:
    """The tables of a sheet in Markdown."""
    from gpuplan.report.table import to_markdown as verb

    return verb(sheet)
