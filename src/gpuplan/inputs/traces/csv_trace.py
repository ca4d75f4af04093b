"""Traces with a header and one request per line: Azure, BurstGPT, Vidur, client logs, any CSV."""

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from gpuplan.domain.trace import ColumnMap, TimeUnit, TraceQuery
from gpuplan.inputs.traces.jsonl_trace import ONE_LOOP
from gpuplan.inputs.traces.names import RUN, columns_of, find, plain
from gpuplan.inputs.traces.rows import N_BLOCK_ROWS, Findings, RawRows
from gpuplan.inputs.traces.source import fault, lines_of, text_of

DELIMITERS = (",", "\t", ";", "|")


class CsvFormat(NamedTuple):
    """A producer's header, and what must be known about its columns."""

    name: str
    columns: tuple[str, str, str, str]  # time, input, output, session; empty: none
    time_unit: TimeUnit | None
    told: tuple[str, ...]


FORMATS = (
    CsvFormat("azure-lmm", ("TIMESTAMP", "ContextTokens", "GeneratedTokens", ""), None,
              ("images are counted beside the tokens of the prompt, and are not read",)),
    CsvFormat("azure", ("TIMESTAMP", "ContextTokens", "GeneratedTokens", ""), None, ()),
    CsvFormat("burstgpt", ("Timestamp", "Request tokens", "Response tokens", "Session ID"), "s",
              ("an answer of 0 tokens is a request that failed",)),
    CsvFormat("burstgpt", ("Timestamp", "Request tokens", "Response tokens", ""), "s",
              ("an answer of 0 tokens is a request that failed",)),
    CsvFormat("vidur", ("arrived_at", "num_prefill_tokens", "num_decode_tokens", ""), "s", ()),
    CsvFormat("vidur-lengths", ("", "num_prefill_tokens", "num_decode_tokens", ""), None, ()),
    CsvFormat("vllm-multiturn", ("start_time_ms", "input_num_tokens", "output_num_tokens",
              "conversation_id"), "ms",
              (ONE_LOOP, "prompts are counted without the chat template, so some have 0 tokens")),
)  # fmt: skip
EXTRA = {"azure-lmm": "NumImages"}


class Table(NamedTuple):
    """What the header says."""

    format: str
    names: list[str]
    columns: ColumnMap
    told: tuple[str, ...]
    delimiter: str


def read_table(path: Path, head: str, query: TraceQuery) -> Table:
    """The header of the file and what it means."""
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise fault(path, "is empty", "write a header line and one request per line")
    delimiter = max(DELIMITERS, key=lines[0].count)
    names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=delimiter))]
    if len(set(names)) < len(names):
        raise fault(path, "names a column twice in its first line", "keep one of them")
    if all(_is_number(name) for name in names):
        fix = "write a header line, e.g. arrive_s,input_tokens,output_tokens"
        raise fault(path, "has no header: its first line is numbers", fix)
    known = next((f for f in FORMATS if _matches(f, names)), None)
    if query.columns is not None or known is None:
        columns = columns_of(path, names, query.columns)
        return Table("csv", names, columns, (), delimiter)
    time, asked, answered, session = known.columns
    columns = ColumnMap(
        arrive=time or None,
        input_tokens=asked,
        output_tokens=answered,
        session=session or None,
        time_unit=known.time_unit,
    )
    return Table(known.name, names, columns, known.told, delimiter)


def csv_rows(path: Path, table: Table, query: TraceQuery, findings: Findings) -> Iterator[RawRows]:
    """The rows in blocks; lines that are no rows are noted."""
    with text_of(path) as text:
        yield from _blocks(path, text, table, query=query, findings=findings)


def _blocks(
    path: Path, text: IO[str], table: Table, *, query: TraceQuery, findings: Findings
) -> Iterator[RawRows]:
    take = _taker(path, table, query)
    run = find(table.names, RUN)
    run_place = table.names.index(run) if run is not None else None
    rows = RawRows()
    for line, cells in _records(path, text, table, findings):
        if not take(cells, line, rows):
            findings.skipped["lines of other runs or kinds, as asked"] += 1
        elif run_place is not None and len(findings.runs) < 100:
            findings.runs[cells[run_place]] += 1
        if len(rows) == N_BLOCK_ROWS:
            yield rows
            rows = RawRows()
    yield rows


def _records(
    path: Path, text: IO[str], table: Table, findings: Findings
) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row that has as many as the header."""
    reader = csv.reader(lines_of(path, text), delimiter=table.delimiter)
    n_cells = len(table.names)
    is_header_due = True
    while True:
        before = reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"is no row: {error}"
            n = reader.line_num - before
            findings.note_bad(f"line {before + 1}", what, "close the quote", n=max(1, n))
            continue
        if not cells or (len(cells) == 1 and not cells[0].strip()):
            continue
        if cells[0].startswith("#"):
            findings.skipped["comment lines"] += 1
        elif is_header_due:
            is_header_due = False
        elif len(cells) != n_cells:
            what = f"{len(cells)} cells under {n_cells} columns"
            fix = "the line is cut, or a comma inside a cell is not quoted"
            findings.note_bad(f"line {reader.line_num}", what, fix)
        else:
            yield reader.line_num, cells


def _taker(
    path: Path, table: Table, query: TraceQuery
) -> Callable[[Sequence[str], int, RawRows], bool]:
    """A function that appends a row, or says that it was not asked for."""
    names, columns = table.names, table.columns
    wanted = [(_place(path, names, column), value) for column, value in query.where]
    time, asked, answered = (
        None if name is None else names.index(name)
        for name in (columns.arrive, columns.input_tokens, columns.output_tokens)
    )
    session = None if columns.session is None else names.index(columns.session)
    priority = None if columns.priority is None else names.index(columns.priority)

    def take(cells: Sequence[str], line: int, rows: RawRows) -> bool:
        if any(cells[place] != value for place, value in wanted):
            return False
        rows.line.append(line)
        rows.arrive.append(0 if time is None else cells[time])
        # A request without lengths is one unit of work: told by the caller.
        rows.input_tokens.append(1 if asked is None else cells[asked])
        rows.output_tokens.append(1 if answered is None else cells[answered])
        if session is not None:
            rows.session.append(cells[session])
        if priority is not None:
            rows.priority.append(cells[priority])
        return True

    return take


def _place(path: Path, names: list[str], column: str) -> int:
    if column not in names:
        raise fault(path, f"has no column {column!r} to choose by", f"it has {', '.join(names)}")
    return names.index(column)


def _matches(known: CsvFormat, names: list[str]) -> bool:
    needed = {name for name in known.columns if name}
    extra = EXTRA.get(known.name)
    return needed <= set(names) and (extra is None or extra in names)


def _is_number(text: str) -> bool:
    try:
        float(plain(text))
    except ValueError:
        return False
    return True
