"""Results on stdout in the format that was asked for; remarks on stderr; files whole or not."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpuplan.cli.command import Form, running_verb
from gpuplan.cli.streams import drop_output
from gpuplan.errors import InputError, PlannerError, one

if TYPE_CHECKING:
    import rich.table

    from gpuplan.domain.sheet import Sheet, Table

    FileToWrite = tuple[
        Path | None, Callable[[], str | bytes], str
    ]  # file, content, what to do next

WIDTH_WITHOUT_TERMINAL = 100
LEAST_TEXT_WIDTH = 12
LONGEST_WORD = 24  # letters that are kept together: 8x_MI300X_SECURE has 16
GAP = 3  # between columns


def emit(sheet: "Sheet", form: Form) -> None:
    """The result, whole, in one form; a reader who has seen enough and gone is no fault."""
    _piped(lambda: _emit(sheet, form))


def _piped(act: Callable[[], None]) -> None:
    try:
        act()
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        sys.exit(0)


def _emit(sheet: "Sheet", form: Form) -> None:
    if form is Form.JSON:
        typer.echo(json.dumps(sheet.document, indent=2, allow_nan=False))
    elif form is Form.YAML:
        import yaml

        plain = json.loads(json.dumps(sheet.document, allow_nan=False))  # as JSON has it
        typer.echo(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), nl=False)
    elif form is Form.TABLE:
        _print_tables(sheet)
        _print_remarks(sheet)
    else:
        from gpuplan import api

        typer.echo(api.sheet_text(sheet, form.value), nl=False)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside the file, which becomes the file when all is written: never half of one."""
    from gpuplan import files

    try:
        with files.whole_file(path) as part:
            yield part
    except (OSError, ValueError) as error:
        raise _unwritten(path, getattr(error, "strerror", None) or str(error)) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "polars":
            raise
        raise _unwritten(path, str(error)) from error


def write_whole(path: Path, content: str | bytes) -> None:
    """The content as a file: all of it or nothing."""
    with whole_file(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)


def make_folder(path: Path) -> None:
    """The folder and those above it, if they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritten(path, error.strerror or str(error)) from error


def check_writable(*paths: Path | None) -> None:
    """Before anything is computed: refuse files that cannot be written."""
    from gpuplan.files import why_not_writable

    reasons = [(path, why_not_writable(path)) for path in paths if path is not None]
    problems = [_unwritten(path, why).problems[0] for path, why in reasons if why]
    if problems:
        raise InputError(running_verb(), problems)


def deliver(sheet: "Sheet", form: Form, files: "Sequence[FileToWrite]") -> None:
    """Files first, then the result: a reader that closes the pipe early must not cost them.

    What cannot be written is not lost: the first text for people is printed in place of the tables,
    and other forms of output hold the whole result by themselves.
    """
    failed, rescued = [], None
    for path, content_of, note in files:
        if path is None:
            continue
        content = content_of()
        try:
            write_whole(path, content)
        except InputError as error:
            failed.append(error.problems[0])
            if rescued is None and isinstance(content, str) and not content.startswith("<"):
                rescued = content
        else:
            remark(f"wrote {path}{note}")
    if rescued is not None and form is Form.TABLE:
        _piped(lambda: typer.echo(rescued, nl=False))
    else:
        emit(sheet, form)
    if failed:
        raise InputError(running_verb(), failed)


def remark(text: str) -> None:
    """A line on stderr."""
    typer.echo(text, err=True)


def _unwritten(path: Path, why: str) -> PlannerError:
    fix = "name a file in a folder that is yours and has room"
    return one(InputError, running_verb(), str(path), f"cannot be written: {why}", fix)


def names(text: str | None) -> list[str] | None:
    """Names with commas between them; None where nothing was typed."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def busy(what: str) -> AbstractContextManager[object]:
    """A sign of life on stderr while something takes longer than a moment; only on a terminal."""
    if not sys.stderr.isatty() or is_plain():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"{what} …")


def is_plain() -> bool:
    """The user wants text without colours, bold and movement (no-color.org), or has no choice."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def _print_tables(sheet: "Sheet") -> None:
    from rich.console import Console
    from rich.text import Text

    class Piped(Console):
        """A reader that has gone is told as in every other form of output."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    styles = {"color_system": None} if is_plain() else {}
    console = Piped(width=_width(), highlight=False, **styles)  # type: ignore[arg-type]
    if sheet.head:
        console.print(Text(sheet.head, style="bold"))
    for table in sheet.tables:
        console.print(_rich_table(table, console.width))


def _rich_table(table: "Table", width: int) -> "rich.table.Table":
    """Figures are never cut; text that is too long goes on in the next line, whole."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=table.title or None, box=box.SIMPLE_HEAD, title_justify="left")
    widths = _widths(table, width)
    for column in table.columns:
        is_figure = column in table.right
        shown.add_column(
            column,
            justify="right" if is_figure else "left",
            no_wrap=is_figure and column not in widths,
            overflow="fold",
            width=widths.get(column),
        )
    for row in table.rows:
        shown.add_row(*(Text(cell) for cell in row))
    return shown


def _widths(table: "Table", width: int) -> dict[str, int]:
    """Of columns, where the line is too short for all: the widest text gives way, then headings.

    Figures stay whole, and so do words as long as that leaves room for all.
    """
    cells = {name: [row[i] for row in table.rows] for i, name in enumerate(table.columns)}
    wanted = {name: max(map(len, [name, *each])) for name, each in cells.items()}
    left = width - GAP * len(cells) - 1
    if sum(wanted.values()) <= left:
        return {}
    words = {name: _longest_word([name, *each]) for name, each in cells.items()}
    texts = [name for name in cells if name not in table.right]
    bare = {name: words[name] for name in texts}
    figures = {name: wanted[name] for name in table.right}
    if sum(figures.values()) + sum(bare.values()) > left:
        figures = {name: max(words[name], *map(len, cells[name]), 1) for name in table.right}
    left -= sum(figures.values())
    if not texts:
        return figures
    roomy = {name: max(bare[name], min(LEAST_TEXT_WIDTH, wanted[name])) for name in texts}
    least = roomy if sum(roomy.values()) <= left else _within(bare, dict.fromkeys(texts, 4), left)
    return figures | _within({name: wanted[name] for name in texts}, least, left)


def _within(wanted: dict[str, int], least: dict[str, int], left: int) -> dict[str, int]:
    """Widths that fit the line: those above a cap give way, none below its least."""
    for cap in range(max(wanted.values()), 0, -1):
        found = {name: max(least[name], min(each, cap)) for name, each in wanted.items()}
        if sum(found.values()) <= left:
            return found
    return least


def _longest_word(cells: list[str]) -> int:
    """Letters of the longest word that is not broken."""
    words = [len(word) for cell in cells for word in cell.split()]
    return max(1, min(LONGEST_WORD, max(words, default=0)))


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
