"""Traces with a header and one request per line: Azure, BurstGPT, Vidur, client logs, any CSV."""

import csv
from collections.abc import Iterator
from itertools import chain, islice
from operator import methodcaller
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuplan.domain.traffic.trace import ColumnMap, TimeUnit, TraceQuery
from gpuplan.inputs.traces.clock import Clock, numbers
from gpuplan.inputs.traces.columns import RUN, columns_note, columns_of, find, plain
from gpuplan.inputs.traces.jsonl_trace import ONE_LOOP
from gpuplan.inputs.traces.rows import N_BLOCK_ROWS, Converter, Findings, OpenTrace, RawRows
from gpuplan.inputs.traces.source import fault, lines_of, text_of

DELIMITERS = (",", "\t", ";", "|")
N_PARSED_ROWS = 4096


class CsvFormat(NamedTuple):
    """A producer's header, and what must be known about its columns."""

    name: str
    columns: tuple[str, str, str, str]  # time, input, output, session; empty: none
    time_unit: TimeUnit | None = None
    notes: tuple[str, ...] = ()

    @property
    def column_map(self) -> ColumnMap:
        """Where the producer's files hold what."""
        arrive, n_input, n_output, session = (name or None for name in self.columns)
        return ColumnMap(
            arrive=arrive,
            input_tokens=n_input,
            output_tokens=n_output,
            session=session,
            time_unit=self.time_unit,
        )


AZURE = ("TIMESTAMP", "ContextTokens", "GeneratedTokens", "")
BURSTGPT = ("Timestamp", "Request tokens", "Response tokens", "")
VIDUR = ("arrived_at", "num_prefill_tokens", "num_decode_tokens", "")
MULTITURN = ("start_time_ms", "input_num_tokens", "output_num_tokens", "conversation_id")
IMAGES = "images are counted beside the tokens of the prompt, and are not read"
FAILED = "an output of 0 tokens is a request that failed"
NO_TEMPLATE = "prompts are counted without the chat template, so some have 0 tokens"
NO_LENGTHS = "a length that has no column counts as one token"
FORMATS = (
    CsvFormat("azure-lmm", AZURE, notes=(IMAGES,)),
    CsvFormat("azure", AZURE),
    CsvFormat("burstgpt", (*BURSTGPT[:3], "Session ID"), "s", (FAILED,)),
    CsvFormat("burstgpt", BURSTGPT, "s", (FAILED,)),
    CsvFormat("vidur", VIDUR, "s"),
    CsvFormat("vidur-lengths", ("", *VIDUR[1:])),
    CsvFormat("vllm-multiturn", MULTITURN, "ms", (ONE_LOOP, NO_TEMPLATE)),
)
EXTRA = {"azure-lmm": "NumImages"}


class Table(NamedTuple):
    """The header of a file, and where it holds what."""

    names: list[str]
    columns: ColumnMap
    delimiter: str


class Block(NamedTuple):
    """Some rows: their lines, and one list of cells for each column of the file."""

    lines: list[int]
    columns: list[list[str]]


def open_csv(path: Path, head: str, query: TraceQuery) -> OpenTrace:
    """The rows of a file with a header, under the format that its header shows."""
    names, delimiter = _header(path, head)
    known = None if query.columns else next((f for f in FORMATS if _matches(f, names)), None)
    columns = known.column_map if known else columns_of(path, names, query.columns)
    notes = known.notes if known else (columns_note(columns),)
    if columns.input_tokens is None or columns.output_tokens is None:
        notes += (NO_LENGTHS,)
    clock = Clock(columns.time_unit, name=columns.arrive) if columns.arrive else None
    converter = Converter(clock, Findings())
    rows = _rows(path, Table(names, columns, delimiter), query, converter.findings)
    return OpenTrace(known.name if known else "csv", rows, converter, notes)


def _header(path: Path, head: str) -> tuple[list[str], str]:
    """The names of the columns, and what separates them."""
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise fault(path, "is empty", "write a header line and one request per line")
    delimiter = max(DELIMITERS, key=lines[0].count)
    names = [name.strip() for name in next(csv.reader([lines[0]], delimiter=delimiter))]
    if len(set(names)) < len(names):
        raise fault(path, "names a column twice in its first line", "keep one of them")
    if not np.isnan(numbers([plain(name) for name in names])).any():
        fix = "write a header line, e.g. arrive_s,input_tokens,output_tokens"
        raise fault(path, "has no header: its first line is numbers", fix)
    return names, delimiter


def _rows(path: Path, table: Table, query: TraceQuery, findings: Findings) -> Iterator[RawRows]:
    """The rows in blocks; lines that are no rows are noted."""
    wanted = [(_place(path, table.names, column), value) for column, value in query.where]
    with text_of(path) as text:
        for block in _blocks(lines_of(path, text), table, findings):
            chosen = _chosen(block, wanted, findings) if wanted else block
            yield _raw(chosen, table, findings)


def _blocks(lines: Iterator[str], table: Table, findings: Findings) -> Iterator[Block]:
    n_read = _skip_header(lines, findings)
    while batch := list(islice(lines, N_BLOCK_ROWS)):
        columns = _plain_columns(batch, table)
        if columns is not None:
            yield Block(list(range(n_read + 1, n_read + len(batch) + 1)), columns)
        else:
            # A quoted cell may run over many lines, so from the first quote on the rest is one.
            is_quoted = any('"' in line for line in batch)
            written = chain(batch, lines) if is_quoted else iter(batch)
            yield from _parsed(written, n_read, table, findings)
        n_read += len(batch)


def _plain_columns(lines: list[str], table: Table) -> list[list[str]] | None:
    """Columns of lines without quotes or comments that all have their cells; None of others."""
    n_cells, delimiter = len(table.names), table.delimiter
    joined = delimiter.join(lines)
    if '"' in joined or "#" in joined or not all(lines):
        return None
    if set(map(methodcaller("count", delimiter), lines)) != {n_cells - 1}:
        return None
    cells = joined.split(delimiter)
    return [cells[place::n_cells] for place in range(n_cells)]


def _parsed(lines: Iterator[str], n_read: int, table: Table, findings: Findings) -> Iterator[Block]:
    """Columns of lines of any kind, read with care."""
    records = _records(lines, n_read, table, findings)
    while some := list(islice(records, N_PARSED_ROWS)):
        numbers, rows = zip(*some, strict=True)
        yield Block(list(numbers), [list(column) for column in zip(*rows, strict=True)])


def _records(
    lines: Iterator[str], n_read: int, table: Table, findings: Findings
) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row that has as many as the header."""
    reader = csv.reader(lines, delimiter=table.delimiter)
    n_cells = len(table.names)
    while True:
        before = reader.line_num
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            n = max(1, reader.line_num - before)
            where = f"line {n_read + before + 1}"
            findings.note_bad(where, f"is no row: {error}", "close the quote", n=n)
            continue
        if not any(map(str.strip, cells)):
            continue
        if cells[0].startswith("#"):
            findings.skipped["comment lines"] += 1
        elif len(cells) != n_cells:
            what = f"{len(cells)} cells under {n_cells} columns"
            fix = "the line is cut, or a comma inside a cell is not quoted"
            findings.note_bad(f"line {n_read + reader.line_num}", what, fix)
        else:
            yield n_read + reader.line_num, cells


def _skip_header(lines: Iterator[str], findings: Findings) -> int:
    """How many lines there are up to the header, which is known already."""
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            findings.skipped["comment lines"] += 1
        elif line.strip():
            return number
    return 0


def _chosen(block: Block, wanted: list[tuple[int, str]], findings: Findings) -> Block:
    """The rows that have the values asked for."""
    n = len(block.lines)
    rows = [i for i in range(n) if all(block.columns[place][i] == value for place, value in wanted)]
    if len(rows) < n:
        findings.skipped["lines of other runs or kinds, as asked"] += n - len(rows)
    columns = [[column[i] for i in rows] for column in block.columns]
    return Block([block.lines[i] for i in rows], columns)


def _raw(block: Block, table: Table, findings: Findings) -> RawRows:
    """The columns that are wanted; a length that has none is one token, as its note says."""
    by_name = dict(zip(table.names, block.columns, strict=True))
    run = find(table.names, RUN)
    if run is not None:
        findings.runs.update(by_name[run])

    def cells(name: str | None, missing: int) -> list[object]:
        return [missing] * len(block.lines) if name is None else list(by_name[name])

    columns = table.columns
    return RawRows(
        line=block.lines,
        arrive=cells(columns.arrive, 0),
        input_tokens=cells(columns.input_tokens, 1),
        output_tokens=cells(columns.output_tokens, 1),
        session=cells(columns.session, 0) if columns.session else [],
        priority=cells(columns.priority, 0) if columns.priority else [],
        max_tokens=cells(columns.max_tokens, 0) if columns.max_tokens else [],
    )


def _place(path: Path, names: list[str], column: str) -> int:
    if column not in names:
        raise fault(path, f"has no column {column!r} to choose by", f"it has {', '.join(names)}")
    return names.index(column)


def _matches(known: CsvFormat, names: list[str]) -> bool:
    needed = {name for name in known.columns if name}
    extra = EXTRA.get(known.name)
    return needed <= set(names) and (extra is None or extra in names)
