"""Benchmark results as one JSON document: GuideLLM reports, vLLM and SGLang bench results.

Only documents with one row per request can be replayed; summaries are refused with what to ask of
the tool.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.inputs.traces.jsonl_trace import ONE_LOOP
from gpuplan.inputs.traces.rows import Findings, RawRows
from gpuplan.inputs.traces.source import document_of, fault

RUN = "benchmark"


class Document(NamedTuple):
    """A document whose rows are known."""

    format: str
    has_times: bool
    rows: RawRows
    told: tuple[str, ...]


def read_document(path: Path, query: TraceQuery, findings: Findings) -> Document:
    """The rows of a benchmark result."""
    try:
        document = json.loads(document_of(path))
    except RecursionError:
        raise fault(path, "nests too deeply", "give a benchmark result") from None
    except ValueError as error:
        fix = "give CSV, JSON lines, Parquet or a benchmark result"
        raise fault(path, f"is no JSON: {str(error)[:80]}", fix) from None
    if isinstance(document, list):
        document = {"requests": document}
    if not isinstance(document, dict):
        raise fault(path, "is JSON without rows", "give one object per request")
    return _document(path, document, query, findings)


def _document(
    path: Path, document: Mapping[str, Any], query: TraceQuery, findings: Findings
) -> Document:
    if isinstance(document.get("benchmarks"), list):
        return _guidellm(path, document["benchmarks"], query, findings)
    if isinstance(document.get("input_lens"), list):
        return _bench(path, document, findings)
    if isinstance(document.get("requests"), list):
        return _listed(path, document["requests"])
    if any("out_len" in value for value in document.values() if isinstance(value, dict)):
        what = "gives lengths in characters and times of completion"
        raise fault(path, what, "give a log with tokens and the time of each request's start")
    what = f"has no rows of requests; its keys are {', '.join(list(document)[:8])}"
    raise fault(path, what, "write details per request, e.g. vllm bench serve --save-detailed")


def _number(chosen: str | None) -> int | None:
    """Which benchmark; the only one where nobody chose."""
    if chosen is None:
        return 0
    return int(chosen) if chosen.isdecimal() else None


def _guidellm(
    path: Path, benchmarks: Sequence[Any], query: TraceQuery, findings: Findings
) -> Document:
    """One benchmark of a report: requests that succeeded; of others the lengths are not known."""
    chosen = dict(query.where).get(RUN)
    if chosen is None and len(benchmarks) != 1:
        what = f"holds {len(benchmarks)} benchmarks, each with its own clock"
        fix = f"choose one with --where {RUN}=0 to {RUN}={len(benchmarks) - 1}"
        raise fault(path, what, fix)
    number = _number(chosen)
    if number is None or number >= len(benchmarks):
        raise fault(path, f"has no benchmark {chosen}", f"it has {len(benchmarks)}, from 0")
    requests = _mapping(_mapping(benchmarks[number]).get("requests"))
    rows = RawRows()
    for i, record in enumerate(_list(requests.get("successful")), start=1):
        _add(rows, i, *_guidellm_row(_mapping(record)))
    for kind in ("errored", "incomplete"):
        n = len(_list(requests.get(kind)))
        if n:
            findings.skipped[f"{kind} requests, left out: their lengths are not known"] += n
    return Document("guidellm", True, rows, (ONE_LOOP,))


def _guidellm_row(record: Mapping[str, Any]) -> tuple[object, object, object]:
    info = _mapping(record.get("info", record.get("scheduler_info")))
    timings = _mapping(info.get("timings", info.get("request_timings")))
    start = record.get("request_start_time", record.get("start_time", timings.get("request_start")))
    asked = _mapping(record.get("input_metrics"))
    answered = _mapping(record.get("output_metrics"))
    return (
        start,
        record.get("prompt_tokens", asked.get("total_tokens", asked.get("text_tokens"))),
        record.get("output_tokens", answered.get("total_tokens", answered.get("text_tokens"))),
    )


def _bench(path: Path, document: Mapping[str, Any], findings: Findings) -> Document:
    """vLLM and SGLang write parallel lists, one entry per request."""
    asked, answered = _list(document.get("input_lens")), _list(document.get("output_lens"))
    times, errors = _list(document.get("start_times")), _list(document.get("errors"))
    if len(asked) != len(answered) or (times and len(times) != len(asked)):
        what = f"{len(asked)} input, {len(answered)} output lengths and {len(times)} times"
        raise fault(path, what, "must be one of each per request")
    rows = RawRows()
    for i in range(len(asked)):
        if len(errors) == len(asked) and errors[i]:
            findings.skipped["requests that failed, left out"] += 1
        else:
            _add(rows, i + 1, times[i] if times else 0, asked[i], answered[i])
    return Document("vllm-bench", bool(times), rows, (ONE_LOOP,) if times else ())


def _listed(path: Path, records: Sequence[Any]) -> Document:
    """Objects in a list are read where they stand on lines of their own."""
    n = len(records)
    raise fault(path, f"is one list of {n} records", "write one object per line, as JSON lines")


def _add(rows: RawRows, row: int, arrive: object, asked: object, answered: object) -> None:
    rows.line.append(row)
    for column, cell in (
        (rows.arrive, arrive),
        (rows.input_tokens, asked),
        (rows.output_tokens, answered),
    ):
        is_cell = isinstance(cell, int | float | str) and not isinstance(cell, bool)
        column.append(cell if is_cell else None)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
