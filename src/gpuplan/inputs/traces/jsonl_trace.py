"""Traces with one JSON object per line: Mooncake, Bailian, RAGPulse, AIPerf, Dynamo, any other."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpuplan.domain.traffic.trace import ColumnMap, TraceQuery
from gpuplan.inputs.traces.clock import Clock
from gpuplan.inputs.traces.columns import columns_note, columns_of, columns_taken
from gpuplan.inputs.traces.rows import N_BLOCK_ROWS, Converter, Findings, OpenTrace, RawRows, cell
from gpuplan.inputs.traces.source import fault, lines_of, text_of

Record = Mapping[str, Any]
HASH_NOTE = "a block hash stands for {n} tokens"
ONE_LOOP = "arrivals of a benchmark run depend on how fast that server responded"


class Row(NamedTuple):
    """One request as it is written in the file."""

    arrive: object
    input_tokens: object
    output_tokens: object
    session: object = None
    priority: object = None
    max_tokens: object = None
    blocks: object = None
    n_block_tokens: object = None  # where each row says it


class Skip(NamedTuple):
    """A line that is no request, and why."""

    why: str


class JsonFormat(NamedTuple):
    """How to take a request from a record."""

    name: str
    clock: Clock | None  # None: the file has no times
    pick: Callable[[Record], Row | Skip]
    notes: tuple[str, ...] = ()
    n_block_tokens: int = 0  # 0: no block hashes
    has_priority: bool = False
    has_max: bool = False


def open_jsonl(path: Path, record: Record, query: TraceQuery) -> OpenTrace:
    """The rows of a file with one object per line, under the format that a record shows."""
    known = _format_of(path, record, query)
    converter = Converter(known.clock, Findings())
    rows = _rows(path, known, query, converter.findings)
    return OpenTrace(known.name, rows, converter, known.notes, known.n_block_tokens)


def _format_of(path: Path, record: Record, query: TraceQuery) -> JsonFormat:
    if query.columns is not None:
        return _plain(path, record, query.columns)
    event = record.get("event")
    if isinstance(event, Mapping) and str(event.get("schema", "")).startswith("dynamo.request"):
        notes = (HASH_NOTE.format(n=16),)
        return JsonFormat("dynamo", Clock("ms"), _dynamo, notes, n_block_tokens=16)
    if "metadata" in record and "metrics" in record:
        return JsonFormat("aiperf", Clock("ns"), _aiperf, (ONE_LOOP,))
    if {"timestamp", "input_length", "output_length"} <= set(record):
        return _hashed(record)
    return _plain(path, record, None)


def _rows(
    path: Path, known: JsonFormat, query: TraceQuery, findings: Findings
) -> Iterator[RawRows]:
    """The rows in blocks; lines that are no records are noted."""
    with text_of(path) as text:
        rows = RawRows()
        for line, written in enumerate(lines_of(path, text), start=1):
            if not written.strip():
                continue
            _take(written, line, rows, known=known, query=query, findings=findings)
            if len(rows) == N_BLOCK_ROWS:
                yield rows
                rows = RawRows()
        yield rows


def record_in(text: str) -> Record | str:
    """The object that a line holds, or what is wrong with it."""
    try:
        found = json.loads(text)
    except RecursionError:
        return "nests too deeply"
    except ValueError as error:
        return f"is no JSON: {str(error)[:80]}"
    return found if isinstance(found, dict) else "is no JSON object"


def _take(
    text: str, line: int, rows: RawRows, *, known: JsonFormat, query: TraceQuery, findings: Findings
) -> None:
    record = record_in(text)
    if isinstance(record, str):
        fix = "one whole object per line; the line may be cut"
        findings.note_bad(f"line {line}", record, fix)
        return
    if any(str(record.get(column)) != value for column, value in query.where):
        findings.skipped["lines of other runs or kinds, as asked"] += 1
        return
    row = known.pick(record)
    if isinstance(row, Skip):
        findings.skipped[row.why] += 1
        return
    if known.n_block_tokens:
        blocks = _blocks(row, known.n_block_tokens)
        if blocks is None:
            fix = f"a list of whole numbers, one per {known.n_block_tokens} tokens"
            findings.note_bad(f"line {line}", "block hashes are unclear", fix)
            return
        rows.blocks.append(blocks)
        if _is_odd(row, len(blocks), known.n_block_tokens):
            findings.odd["prompts with more or fewer block hashes than their tokens fill"] += 1
    if known.has_priority:
        rows.priority.append(cell(row.priority))
    if known.has_max:
        rows.max_tokens.append(cell(row.max_tokens))
    rows.add(line, row.arrive, row.input_tokens, row.output_tokens)
    rows.session.append(_key(row.session))


def _blocks(row: Row, n_block_tokens: int) -> list[int] | None:
    ids = row.blocks
    if not isinstance(ids, list) or any(type(number) is not int for number in ids):
        return None
    return ids if row.n_block_tokens in (None, n_block_tokens) else None


def _is_odd(row: Row, n_blocks: int, n_block_tokens: int) -> bool:
    prompt, more = row.input_tokens, row.output_tokens
    if not isinstance(prompt, int):
        return False
    # Blocks of a response may follow those of its prompt; a last one may be partly filled.
    most = prompt + (more if isinstance(more, int) else 0)
    return not prompt // n_block_tokens <= n_blocks <= -(-most // n_block_tokens)


def _key(value: object) -> object:
    return value if value is None or isinstance(value, int | str) else str(value)[:200]


def _hashed(record: Record) -> JsonFormat:
    """Formats with the hashes of the blocks of a prompt."""
    hashes = record.get("hash_ids")
    if isinstance(hashes, Mapping):
        notes = ("pieces of prompts have no lengths in this file: no shared prefix is read",)
        return JsonFormat("ragpulse", Clock("s"), _unhashed, notes)
    if "chat_id" in record and "parent_chat_id" in record:
        notes = (HASH_NOTE.format(n=16),)
        return JsonFormat("bailian", Clock("s"), _bailian(), notes, n_block_tokens=16)
    if isinstance(hashes, list):
        notes = (HASH_NOTE.format(n=512),)
        return JsonFormat("mooncake", Clock("ms"), _mooncake, notes, n_block_tokens=512)
    notes = ("no block hashes: no shared prefix is read",)
    return JsonFormat("mooncake", Clock("ms"), _unhashed, notes)


def _mooncake(record: Record) -> Row:
    return Row(
        record.get("timestamp"),
        record.get("input_length"),
        record.get("output_length"),
        session=record.get("session_id"),
        blocks=record.get("hash_ids"),
    )


def _unhashed(record: Record) -> Row:
    return _mooncake(record)._replace(blocks=None)


def _bailian() -> Callable[[Record], Row]:
    """Follows each chat to the one that it began with."""
    roots: dict[object, object] = {}

    def pick(record: Record) -> Row:
        chat, parent = _key(record.get("chat_id")), _key(record.get("parent_chat_id"))
        root = roots.get(parent, parent) if parent not in (-1, "-1", None) else chat
        roots[chat] = root
        return _mooncake(record)._replace(session=root)

    return pick


def _aiperf(record: Record) -> Row | Skip:
    metadata, metrics = mapping(record.get("metadata")), mapping(record.get("metrics"))
    if metadata.get("benchmark_phase") == "warmup":
        return Skip("warm-up requests, excluded")
    if record.get("error") or metadata.get("was_cancelled"):
        return Skip("requests that failed or were cancelled, excluded")
    # The server's own count of a prompt includes the chat template; the client's does not.
    n_input = metrics.get("usage_prompt_tokens", metrics.get("input_sequence_length"))
    n_output = metrics.get("usage_completion_tokens", metrics.get("output_sequence_length"))
    return Row(
        metadata.get("request_start_ns"),
        mapping(n_input).get("value"),
        mapping(n_output).get("value"),
        session=metadata.get("x_correlation_id", metadata.get("conversation_id")),
    )


def _dynamo(record: Record) -> Row | Skip:
    event = mapping(record.get("event"))
    if event.get("event_type") != "request_end":
        return Skip("events of tools and others, which are no requests")
    request = mapping(event.get("request"))
    replay = mapping(request.get("replay"))
    return Row(
        request.get("request_received_ms"),
        request.get("input_tokens"),
        request.get("output_tokens"),
        session=mapping(event.get("agent_context")).get("session_id"),
        blocks=replay.get("input_sequence_hashes"),
        n_block_tokens=replay.get("trace_block_size"),
    )


def _plain(path: Path, record: Record, given: ColumnMap | None) -> JsonFormat:
    names = [str(name) for name in record]
    if not names:
        raise fault(path, "begins with an empty object", "write one request per line")
    columns = columns_of(path, names, given)
    taken = columns_taken(columns)
    size = record.get("block_size") if isinstance(record.get("hash_ids"), list) else None
    n_block_tokens = size if isinstance(size, int) and size > 0 else 0

    def pick(found: Record) -> Row:
        missing = {"arrive": 0, "input": 1, "output": 1}
        cells = {
            key: missing.get(key) if name is None else found.get(name)
            for key, name in taken.items()
        }
        row = Row(*(cells[key] for key in taken))
        return row._replace(blocks=found.get("hash_ids")) if n_block_tokens else row

    clock = Clock(columns.time_unit, name=columns.arrive) if columns.arrive else None
    return JsonFormat(
        "jsonl",
        clock,
        pick,
        (columns_note(columns), *([HASH_NOTE.format(n=size)] if n_block_tokens else [])),
        n_block_tokens=n_block_tokens,
        has_priority=columns.priority is not None,
        has_max=columns.max_tokens is not None,
    )


def mapping(value: object) -> Record:
    """The value where it is an object of the file, else an empty one."""
    return value if isinstance(value, Mapping) else {}
