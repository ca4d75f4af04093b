"""Benchmark results as one JSON document: GuideLLM reports, vLLM and SGLang bench results.

Only documents with one row per request can be replayed; summaries are refused with what to ask of
the tool.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.inputs.traces.clock import Clock
from gpuplan.inputs.traces.jsonl_trace import ONE_LOOP, mapping
from gpuplan.inputs.traces.rows import Converter, Findings, OpenTrace, RawRows
from gpuplan.inputs.traces.source import document_of, fault

RUN = "benchmark"


def open_results(path: Path, query: TraceQuery) -> OpenTrace:
    """The rows of a benchmark result."""
    try:
        document = json.loads(document_of(path))
    except RecursionError:
        raise fault(path, "nests too deeply", "give a benchmark result") from None
    except ValueError as error:
        fix = "give CSV, JSON lines, Parquet or a benchmark result"
        raise fault(path, f"is no JSON: {str(error)[:80]}", fix) from None
    if isinstance(document, list):
        what = f"is one list of {len(document)} records"
        raise fault(path, what, "write one object per line, as JSON lines")
    if not isinstance(document, dict):
        raise fault(path, "is JSON without rows", "give one object per request")
    return _opened(path, document, query)


def _opened(path: Path, document: Mapping[str, Any], query: TraceQuery) -> OpenTrace:
    findings = Findings()
    if isinstance(document.get("benchmarks"), list):
        return _guidellm(path, document["benchmarks"], query, findings)
    if isinstance(document.get("input_lens"), list):
        return _bench(path, document, findings)
    if isinstance(document.get("requests"), list):
        what = f"is one list of {len(document['requests'])} records"
        raise fault(path, what, "write one object per line, as JSON lines")
    if any("out_len" in value for value in document.values() if isinstance(value, dict)):
        what = "gives lengths in characters and times of completion"
        raise fault(path, what, "give a log with tokens and the time of each request's start")
    what = f"has no rows of requests; its keys are {', '.join(list(document)[:8])}"
    raise fault(path, what, "write details per request, e.g. vllm bench serve --save-detailed")


def _trace(name: str, rows: RawRows, findings: Findings, *, has_times: bool = True) -> OpenTrace:
    converter = Converter(Clock("s") if has_times else None, findings, unit="request")
    return OpenTrace(name, iter([rows]), converter, (ONE_LOOP,) if has_times else ())


def _number(chosen: str | None) -> int | None:
    """Which benchmark; the only one where nobody chose."""
    if chosen is None:
        return 0
    return int(chosen) if chosen.isdecimal() else None


def _guidellm(
    path: Path, benchmarks: Sequence[Any], query: TraceQuery, findings: Findings
) -> OpenTrace:
    """One benchmark of a report: requests that succeeded; of others the lengths are not known."""
    chosen = dict(query.where).get(RUN)
    if chosen is None and len(benchmarks) != 1:
        what = f"holds {len(benchmarks)} benchmarks, each with its own clock"
        fix = f"choose one with --where {RUN}=0 to {RUN}={len(benchmarks) - 1}"
        raise fault(path, what, fix)
    number = _number(chosen)
    if number is None or number >= len(benchmarks):
        raise fault(path, f"has no benchmark {chosen}", f"it has {len(benchmarks)}, from 0")
    requests = mapping(mapping(benchmarks[number]).get("requests"))
    rows = RawRows()
    for i, record in enumerate(_list(requests.get("successful")), start=1):
        rows.add(i, *_guidellm_row(mapping(record)))
    for kind in ("errored", "incomplete"):
        n = len(_list(requests.get(kind)))
        if n:
            findings.skipped[f"{kind} requests, excluded: their lengths are not known"] += n
    return _trace("guidellm", rows, findings)


def _guidellm_row(record: Mapping[str, Any]) -> tuple[object, object, object]:
    info = mapping(record.get("info", record.get("scheduler_info")))
    timings = mapping(info.get("timings", info.get("request_timings")))
    start = record.get("request_start_time", record.get("start_time", timings.get("request_start")))
    n_input = mapping(record.get("input_metrics"))
    n_output = mapping(record.get("output_metrics"))
    return (
        start,
        record.get("prompt_tokens", n_input.get("total_tokens", n_input.get("text_tokens"))),
        record.get("output_tokens", n_output.get("total_tokens", n_output.get("text_tokens"))),
    )


def _bench(path: Path, document: Mapping[str, Any], findings: Findings) -> OpenTrace:
    """vLLM and SGLang write parallel lists, one entry per request."""
    n_input, n_output = _list(document.get("input_lens")), _list(document.get("output_lens"))
    times, errors = _list(document.get("start_times")), _list(document.get("errors"))
    if len(n_input) != len(n_output) or (times and len(times) != len(n_input)):
        what = f"{len(n_input)} input, {len(n_output)} output lengths and {len(times)} times"
        raise fault(path, what, "must be one of each per request")
    rows = RawRows()
    for i in range(len(n_input)):
        if len(errors) == len(n_input) and errors[i]:
            findings.skipped["requests that failed, excluded"] += 1
        else:
            rows.add(i + 1, times[i] if times else 0, n_input[i], n_output[i])
    return _trace("vllm-bench", rows, findings, has_times=bool(times))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
