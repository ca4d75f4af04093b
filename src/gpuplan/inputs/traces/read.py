"""A recorded load from a file of any known format, told apart by what is in it."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.domain.traffic.trace import TraceQuery, TraceRead
from gpuplan.errors import Problem
from gpuplan.inputs.traces.clock import Clock
from gpuplan.inputs.traces.csv_trace import csv_rows, read_table
from gpuplan.inputs.traces.documents import read_document
from gpuplan.inputs.traces.finish import Reading, finish, origin_s
from gpuplan.inputs.traces.jsonl_trace import Record, format_of, json_rows, record_in, shown
from gpuplan.inputs.traces.parquet_trace import MAGIC, missing_polars, open_table, parquet_rows
from gpuplan.inputs.traces.rows import Converter, Findings, Part, RawRows
from gpuplan.inputs.traces.source import fault, first_bytes, head_of

MAX_TRIED = 50
NO_LENGTHS = "a length that has no column counts as one token"


def read_trace(path: Path, query: TraceQuery | None = None) -> TraceRead:
    """All requests of a file, sorted, with its quirks; InputError where it is no trace."""
    asked = query if query is not None else TraceQuery()
    opened = _open(path, asked)
    parts, n = [], 0
    for rows in opened.rows:
        parts.append(opened.converter.part(rows))
        n += len(rows)
        if n > asked.max_rows:
            fix = "stream it, or raise the limit"
            raise fault(path, f"holds more than {asked.max_rows:,} rows", fix)
    return finish(path, opened.reading(parts))


def stream_trace(path: Path, query: TraceQuery | None = None) -> "TraceStream":
    """The requests in blocks of bounded size, in order of time, whatever the size of the file."""
    return TraceStream(path, query if query is not None else TraceQuery())


class TraceStream:
    """Iterate once to get the requests; what was odd is known when they have passed.

    InputError where rows are out of order or of several runs: only a whole trace can be sorted.
    Contents of prompts are not kept: they grow with the file.
    """

    def __init__(self, path: Path, query: TraceQuery) -> None:
        self._path = path
        self._opened = _open(path, query)
        self._opened.converter.keeps_blocks = False
        self.format = self._opened.name

    @property
    def has_text(self) -> bool:
        """The file says what prompts have in common; a stream does not keep it."""
        return self._opened.n_block_tokens > 0

    @property
    def n_bad(self) -> int:
        """Lines so far that could not be read."""
        return self._opened.converter.findings.n_bad

    @property
    def bad(self) -> tuple[Problem, ...]:
        """The first of them."""
        return tuple(self._opened.converter.findings.bad)

    @property
    def told(self) -> tuple[str, ...]:
        """Quirks of the format, and lines so far that were no requests."""
        skipped = self._opened.converter.findings.skipped
        return (*self._opened.told, *(f"{n:,} {what}" for what, n in skipped.items()))

    def __iter__(self) -> Iterator[Requests]:
        last, origin = -np.inf, None
        for rows in self._opened.rows:
            part = self._opened.converter.part(rows)
            self._refuse(part, last)
            if len(part.line):
                last = float(part.arrive_s[-1])
                origin = origin_s(part.arrive_s) if origin is None else origin
                yield _requests(part, origin)

    def _refuse(self, part: Part, last: float) -> None:
        runs = self._opened.converter.findings.runs
        if len(runs) > 1:
            fix = f"choose one with --where run=NAME: {', '.join(sorted(runs)[:30])}"
            raise fault(self._path, f"holds {len(runs)} runs", fix)
        if len(part.line) and (part.arrive_s[0] < last or np.any(np.diff(part.arrive_s) < 0)):
            what = f"lines {part.line[0]} to {part.line[-1]} are out of order"
            raise fault(self._path, what, "sort it by time, or read it whole")


class _Opened:
    """A file whose format is known, with its rows to come."""

    def __init__(self, name: str, rows: Iterator[RawRows], converter: Converter) -> None:
        self.name = name
        self.rows = rows
        self.converter = converter
        self.told: tuple[str, ...] = ()
        self.n_block_tokens = 0

    def reading(self, parts: list[Part]) -> Reading:
        has_times = self.converter.clock is not None
        return Reading(self.name, self.told, parts, self.converter, self.n_block_tokens, has_times)


def _open(path: Path, query: TraceQuery) -> _Opened:
    if first_bytes(path).startswith(MAGIC):
        return _parquet(path, query)
    head = head_of(path)
    if not head.strip():
        raise fault(path, "is empty", "give a trace with at least one request")
    if head.lstrip()[0] == "[":
        return _document(path, query)
    if head.lstrip()[0] == "{":
        return _json(path, head, query)
    return _csv(path, head, query)


def _csv(path: Path, head: str, query: TraceQuery) -> _Opened:
    findings = Findings()
    table = read_table(path, head, query)
    columns = table.columns
    clock = Clock(columns.time_unit, name=columns.arrive) if columns.arrive else None
    opened = _Opened(
        table.format, csv_rows(path, table, query, findings), Converter(clock, findings)
    )
    opened.told = table.told
    if table.format == "csv":
        opened.told += (f"columns taken: {shown(columns)}",)
    if columns.input_tokens is None or columns.output_tokens is None:
        opened.told += (NO_LENGTHS,)
    return opened


def _json(path: Path, head: str, query: TraceQuery) -> _Opened:
    record = _first_record(head)
    if record is None or "input_lens" in record or "benchmarks" in record:
        return _document(path, query)
    if query.columns is None and _is_report(record, head):
        return _document(path, query)
    known = format_of(path, record, query)
    findings = Findings()
    clock = Clock(known.time_unit, name=known.time_name) if known.has_times else None
    opened = _Opened(
        known.name, json_rows(path, known, query, findings), Converter(clock, findings)
    )
    opened.told, opened.n_block_tokens = known.told, known.n_block_tokens
    return opened


def _document(path: Path, query: TraceQuery) -> _Opened:
    findings = Findings()
    document = read_document(path, query, findings)
    clock = Clock("s") if document.has_times else None
    converter = Converter(clock, findings, unit="request")
    opened = _Opened(document.format, iter([document.rows]), converter)
    opened.told = document.told
    return opened


def _parquet(path: Path, query: TraceQuery) -> _Opened:
    if importlib.util.find_spec("polars") is None:
        raise missing_polars()
    findings = Findings()
    table = open_table(path, query)
    columns = table.columns
    unit = "ns" if table.is_dated else columns.time_unit
    clock = Clock(unit, name=columns.arrive) if columns.arrive else None
    converter = Converter(clock, findings, unit="row")
    opened = _Opened("parquet", parquet_rows(path, table, findings), converter)
    opened.told = (f"columns taken: {shown(columns)}",)
    return opened


def _is_report(record: Record, head: str) -> bool:
    """One object alone that holds others, and is no format of its own."""
    is_alone = not head.partition("\n")[2].strip()
    holds_others = any(isinstance(value, dict | list) for value in record.values())
    return is_alone and holds_others and not {"hash_ids", "event", "metrics"} & set(record)


def _first_record(head: str) -> Record | None:
    """The first line that is a whole object; None where lines are parts of one document."""
    lines = head.lstrip().splitlines()[:MAX_TRIED]
    if lines[0].strip() == "{":
        return None
    for line in lines:
        record = record_in(line) if line.startswith("{") else ""
        if not isinstance(record, str):
            return record
    return None


def _requests(part: Part, origin: float) -> Requests:
    grouping = Grouping(session=part.session, priority=part.priority)
    arrive = part.arrive_s - origin
    return requests_of(arrive, part.input_tokens, part.output_tokens, grouping=grouping)
