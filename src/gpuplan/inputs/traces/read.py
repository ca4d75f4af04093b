"""A recorded load from a file of any known format, identified by its contents."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.domain.traffic.trace import TraceQuery, TraceRead
from gpuplan.errors import Problem
from gpuplan.inputs.traces.benchmark_results import open_results
from gpuplan.inputs.traces.csv_trace import open_csv
from gpuplan.inputs.traces.finish import finish, origin_s
from gpuplan.inputs.traces.jsonl_trace import Record, open_jsonl, record_in
from gpuplan.inputs.traces.parquet_trace import MAGIC, open_parquet
from gpuplan.inputs.traces.rows import OpenTrace, Part
from gpuplan.inputs.traces.source import fault, first_bytes, head_of

MAX_TRIED = 50


def read_trace(path: Path, query: TraceQuery | None = None) -> TraceRead:
    """All requests of a file, sorted, with its quirks; InputError where it is no trace."""
    requested = query if query is not None else TraceQuery()
    opened = _open(path, requested)
    parts, n = [], 0
    for rows in opened.rows:
        parts.append(opened.converter.part(rows))
        n += len(rows)
        if n > requested.max_rows:
            fix = "stream it, or raise the limit"
            raise fault(path, f"holds more than {requested.max_rows:,} rows", fix)
    return finish(path, opened, parts)


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
        self.format = self._opened.format

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
        """The first lines that could not be read."""
        return tuple(self._opened.converter.findings.bad)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Quirks of the format, and lines so far that were no requests."""
        skipped = self._opened.converter.findings.skipped
        return (*self._opened.notes, *(f"{n:,} {what}" for what, n in skipped.items()))

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


def _open(path: Path, query: TraceQuery) -> OpenTrace:
    """The file under the format that its first bytes and lines show."""
    if first_bytes(path).startswith(MAGIC):
        return open_parquet(path, query)
    head = head_of(path)
    if not head.strip():
        raise fault(path, "is empty", "give a trace with at least one request")
    begin = head.lstrip()[0]
    if begin not in "[{":
        return open_csv(path, head, query)
    record = _first_record(head) if begin == "{" else None
    if record is None or "input_lens" in record or "benchmarks" in record:
        return open_results(path, query)
    if query.columns is None and _is_report(record, head):
        return open_results(path, query)
    return open_jsonl(path, record, query)


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
    grouping = Grouping(session=part.session, priority=part.priority, max_tokens=part.max_tokens)
    arrive = part.arrive_s - origin
    return requests_of(arrive, part.input_tokens, part.output_tokens, grouping=grouping)
