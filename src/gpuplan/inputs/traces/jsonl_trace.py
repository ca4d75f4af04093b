"""Traces with one JSON object per line: Mooncake, Bailian, RAGPulse, AIPerf, Dynamo, any other."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpuplan.domain.traffic.trace import ColumnMap, TimeUnit, TraceQuery
from gpuplan.inputs.traces.names import columns_of
from gpuplan.inputs.traces.rows import N_BLOCK_ROWS, Findings, RawRows
from gpuplan.inputs.traces.source import fault, lines_of, text_of

Record = Mapping[str, Any]
ONE_LOOP = "arrivals of a benchmark run depend on how fast that server answered"


class Row(NamedTuple):
    """One request as written."""

    arrive: object
    input_tokens: object
    output_tokens: object
    session: object = None
    priority: object = None
    blocks: object = None
    n_block_tokens: object = None  # where each row says it


class Skip(NamedTuple):
    """A line that is no request, and why."""

    why: str


Pick = Callable[[Record], Row | Skip]


class JsonFormat(NamedTuple):
    """How to take a request from a record."""

    name: str
    time_unit: TimeUnit | None
    pick: Pick
    told: tuple[str, ...] = ()
    n_block_tokens: int = 0  # 0: no block hashes
    has_priority: bool = False
    time_name: str = ""
    has_times: bool = True


def format_of(path: Path, record: Record, query: TraceQuery) -> JsonFormat:
    """What a record of the file shows it to be."""
    if query.columns is not None:
        return _plain(path, record, query.columns)
    event = record.get("event")
    if isinstance(event, Mapping) and str(event.get("schema", "")).startswith("dynamo.request"):
        told = ("a block hash stands for 16 tokens",)
        return JsonFormat("dynamo", "ms", _dynamo, told, n_block_tokens=16)
    if "metadata" in record and "metrics" in record:
        return JsonFormat("aiperf", "ns", _aiperf, (ONE_LOOP,))
    if {"timestamp", "input_length", "output_length"} <= set(record):
        return _hashed(record)
    return _plain(path, record, None)


def json_rows(
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
        rows.priority.append(_cell(row.priority))
    _append(rows, row, line)


def _append(rows: RawRows, row: Row, line: int) -> None:
    rows.line.append(line)
    rows.arrive.append(_cell(row.arrive))
    rows.input_tokens.append(_cell(row.input_tokens))
    rows.output_tokens.append(_cell(row.output_tokens))
    rows.session.append(_key(row.session))


def _blocks(row: Row, n_block_tokens: int) -> list[int] | None:
    ids = row.blocks
    if not isinstance(ids, list) or any(type(number) is not int for number in ids):
        return None
    return ids if row.n_block_tokens in (None, n_block_tokens) else None


def _is_odd(row: Row, n_blocks: int, n_block_tokens: int) -> bool:
    tokens = row.input_tokens
    return isinstance(tokens, int) and -(-tokens // n_block_tokens) != n_blocks


def _cell(value: object) -> object:
    """Numbers and text only: truth values, lists and objects are no cells."""
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


def _key(value: object) -> object:
    return value if value is None or isinstance(value, int | str) else str(value)[:200]


def _hashed(record: Record) -> JsonFormat:
    """Formats with the hashes of the blocks of a prompt."""
    hashes = record.get("hash_ids")
    if isinstance(hashes, Mapping):
        told = ("pieces of prompts have no lengths in this file: no shared prefix is read",)
        return JsonFormat("ragpulse", "s", _ragpulse, told)
    if "chat_id" in record and "parent_chat_id" in record:
        told = ("a block hash stands for 16 tokens",)
        return JsonFormat("bailian", "s", _bailian(), told, n_block_tokens=16)
    if isinstance(hashes, list):
        told = ("a block hash stands for 512 tokens",)
        return JsonFormat("mooncake", "ms", _mooncake, told, n_block_tokens=512)
    return JsonFormat("mooncake", "ms", _unhashed, ("no block hashes: no shared prefix is read",))


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


def _ragpulse(record: Record) -> Row:
    return _unhashed(record)


def _bailian() -> Pick:
    """Follows each chat to the one that it began with."""
    roots: dict[object, object] = {}

    def pick(record: Record) -> Row:
        chat, parent = _key(record.get("chat_id")), _key(record.get("parent_chat_id"))
        root = roots.get(parent, parent) if parent not in (-1, "-1", None) else chat
        roots[chat] = root
        return _mooncake(record)._replace(session=root)

    return pick


def _aiperf(record: Record) -> Row | Skip:
    metadata, metrics = _mapping(record.get("metadata")), _mapping(record.get("metrics"))
    if metadata.get("benchmark_phase") == "warmup":
        return Skip("warm-up requests, left out")
    if record.get("error") or metadata.get("was_cancelled"):
        return Skip("requests that failed or were cancelled, left out")
    # The server's own count of a prompt includes the chat template; the client's does not.
    asked = metrics.get("usage_prompt_tokens", metrics.get("input_sequence_length"))
    answered = metrics.get("usage_completion_tokens", metrics.get("output_sequence_length"))
    return Row(
        metadata.get("request_start_ns"),
        _mapping(asked).get("value"),
        _mapping(answered).get("value"),
        session=metadata.get("x_correlation_id", metadata.get("conversation_id")),
    )


def _dynamo(record: Record) -> Row | Skip:
    event = _mapping(record.get("event"))
    if event.get("event_type") != "request_end":
        return Skip("events of tools and others, which are no requests")
    request = _mapping(event.get("request"))
    replay = _mapping(request.get("replay"))
    return Row(
        request.get("request_received_ms"),
        request.get("input_tokens"),
        request.get("output_tokens"),
        session=_mapping(event.get("agent_context")).get("session_id"),
        blocks=replay.get("input_sequence_hashes"),
        n_block_tokens=replay.get("trace_block_size"),
    )


def _plain(path: Path, record: Record, given: ColumnMap | None) -> JsonFormat:
    names = [str(name) for name in record]
    if not names:
        raise fault(path, "begins with an empty object", "write one request per line")
    columns = columns_of(path, names, given)

    def pick(found: Record) -> Row:
        return Row(
            0 if columns.arrive is None else found.get(columns.arrive),
            1 if columns.input_tokens is None else found.get(columns.input_tokens),
            1 if columns.output_tokens is None else found.get(columns.output_tokens),
            session=None if columns.session is None else found.get(columns.session),
            priority=None if columns.priority is None else found.get(columns.priority),
        )

    told = (f"columns taken: {shown(columns)}",)
    name = columns.arrive or ""
    return JsonFormat(
        "jsonl",
        columns.time_unit,
        pick,
        told,
        has_priority=columns.priority is not None,
        time_name=name,
        has_times=columns.arrive is not None,
    )


def shown(columns: ColumnMap) -> str:
    """Which column is taken for what."""
    pairs = {
        "time": columns.arrive,
        "input": columns.input_tokens,
        "output": columns.output_tokens,
        "session": columns.session,
        "priority": columns.priority,
    }
    return ", ".join(f"{what} = {name or 'none'}" for what, name in pairs.items())


def _mapping(value: object) -> Record:
    return value if isinstance(value, Mapping) else {}
