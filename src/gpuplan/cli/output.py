"""Results on stdout in the format that was asked for; remarks on stderr; files whole or not."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import rich.table

    from gpuplan.domain.sheet import Sheet, Table

WIDTH_WITHOUT_TERMINAL = 100
LEAST_TEXT_WIDTH = 12


class Form(StrEnum):
    """Output formats."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    MD = "md"


def chosen(form: Form, *, as_json: bool) -> Form:
    """`--json` is short for `-o json`."""
    return Form.JSON if as_json else form


def emit(sheet: "Sheet", form: Form) -> None:
    """The result, whole, in one form; a reader who has seen enough and gone is no fault."""
    try:
        _emit(sheet, form)
    except BrokenPipeError:
        # Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _emit(sheet: "Sheet", form: Form) -> None:
    if form is Form.JSON:
        typer.echo(json.dumps(sheet.document, indent=2, allow_nan=False))
    elif form is Form.YAML:
        import yaml

        typer.echo(yaml.safe_dump(sheet.document, sort_keys=False, allow_unicode=True), nl=False)
    elif form is Form.TABLE:
        _print_tables(sheet)
        _print_remarks(sheet)
    else:
        from gpuplan import api

        typer.echo(api.sheet_text(sheet, form.value), nl=False)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside the file, which becomes the file when all is written: never half of one."""
    from gpuplan.errors import InputError, one

    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            yield part
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        what, fix = f"cannot be written: {error.strerror}", "name a file in a folder that is yours"
        raise one(InputError, "output", str(path), what, fix) from error


def write_whole(path: Path, text: str) -> None:
    """The text as a file: all of it or nothing."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def names(text: str | None) -> list[str] | None:
    """Names with commas between them; None where nothing was typed."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def busy(what: str) -> AbstractContextManager[object]:
    """A sign of life on stderr while something takes longer than a moment; only on a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"{what} …")


def _print_tables(sheet: "Sheet") -> None:
    from rich.console import Console
    from rich.text import Text

    class Piped(Console):
        """A reader that has gone is told as in every other form of output."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Piped(width=_width(), highlight=False)
    if sheet.head:
        console.print(Text(sheet.head, style="bold"))
    for table in sheet.tables:
        console.print(_rich_table(table))


def _rich_table(table: "Table") -> "rich.table.Table":
    """Figures are never cut; text that is too long goes on in the next line, whole."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=table.title or None, box=box.SIMPLE_HEAD, title_justify="left")
    for place, column in enumerate(table.columns):
        is_figure = column in table.right
        longest = max((len(row[place]) for row in table.rows), default=0)
        shown.add_column(
            column,
            justify="right" if is_figure else "left",
            no_wrap=is_figure,
            overflow="fold",
            min_width=None if is_figure else min(LEAST_TEXT_WIDTH, longest),
        )
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


def _print_remarks(sheet: "Sheet") -> None:
    sys.stdout.flush()
    for heading, lines in sheet.remarks:
        if lines:
            typer.echo("\n".join([heading, *(f"  {line}" for line in lines)]), err=True)


def _width() -> int | None:
    """A terminal's own width; a pipe gets one that fits a page."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return None
    return WIDTH_WITHOUT_TERMINAL
