"""Which tool wrote a file, by its content: bytes in, rows out. Names of files do not count."""

import json
from collections.abc import Callable, Sequence

from gpuplan.calibration.runs import (
    aiperf,
    guidellm,
    llama_bench,
    mlperf,
    plain,
    single,
    vllm_bench,
)
from gpuplan.calibration.runs.fields import COLUMNS, Row, mapping, unreadable, words
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.errors import InputError

MOST_BYTES = 64 * 2**20
MOST_DOCUMENTS = 20_000
USER_KIND = "gpuplan-user-calibration"
FORMATS = (
    "a CSV table in gpuplan's columns, vLLM or SGLang benchmark output, GuideLLM JSON, AIPerf or "
    "GenAI-Perf export, InferenceX result, MLPerf summary, or llama-bench output"
)


def read_runs(content: bytes, where: str) -> RunsRead:
    """The rows of a benchmark's output; InputError where no known tool wrote it."""
    text = _text(content, where)
    start = text.lstrip()[:1]
    if start in ("{", "["):
        documents = _documents(text, where)
        if documents is not None:
            return _checked(_from_documents(documents, where), where)
    return _checked(_from_text(text, where), where)


def _text(content: bytes, where: str) -> str:
    if len(content) > MOST_BYTES:
        what = f"{len(content) / 2**20:.0f} MiB"
        fix = f"give at most {MOST_BYTES // 2**20} MiB: results without each request's own data"
        raise unreadable(where, "size", what, fix)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unreadable(where, "text", "not UTF-8", f"give {FORMATS}") from error
    if "\x00" in text:
        raise unreadable(where, "text", "binary content", f"give {FORMATS}")
    if not text.strip():
        raise unreadable(where, "text", "empty", f"give {FORMATS}")
    return text


def _documents(text: str, where: str) -> list[object] | None:
    """All objects of a JSON or JSONL text; None where it is neither."""
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise unreadable(where, "JSON", "nested too deeply", f"give {FORMATS}") from error
    except ValueError:
        return _lines(text, where)
    return found[:MOST_DOCUMENTS] if isinstance(found, list) else [found]


def _lines(text: str, where: str) -> list[object] | None:
    lines = [line for line in text.splitlines() if line.strip()][:MOST_DOCUMENTS]
    try:
        return [json.loads(line) for line in lines]
    except RecursionError as error:
        raise unreadable(where, "JSON", "nested too deeply", f"give {FORMATS}") from error
    except ValueError as error:
        if text.lstrip().startswith(("{", '["', "[{")):
            raise unreadable(
                where, "JSON", str(error), "give the file as it was written"
            ) from error
        return None


def _from_documents(documents: Sequence[object], where: str) -> RunsRead:
    first = documents[0] if documents else None
    if guidellm.is_report(first):
        return guidellm.read_report(first, where)
    if any(vllm_bench.is_result(document) for document in documents):
        return vllm_bench.read_documents(documents, where)
    if any(llama_bench.is_result(document) for document in documents):
        return llama_bench.read_documents(documents, where)
    if any(single.is_result(document) for document in documents):
        return single.read_documents(documents, where)
    if aiperf.is_export(first):
        return aiperf.read_export(first, where)
    if mapping(first).get("kind") == USER_KIND:
        return _own(mapping(first))
    if "metadata" in mapping(first) and "metrics" in mapping(first):
        what = "single requests of AIPerf"
        raise unreadable(where, "JSON", what, "give profile_export_aiperf.json of the same run")
    raise _unknown(where)


def _from_text(text: str, where: str) -> RunsRead:
    tool = _tool(text)
    if tool is not None:
        return tool(text, where)
    if plain.is_table(_heading(text)):
        return plain.read_table(text, where)
    raise _unknown(where)


def _tool(text: str) -> Callable[[str, str], RunsRead] | None:
    """What reads the text of a benchmark tool; None where it may be a table."""
    first = _heading(text)
    tools = (
        (vllm_bench.TITLE in text, vllm_bench.read_console),
        (mlperf.TITLE in text, mlperf.read_summary),
        (aiperf.is_csv_export(first), aiperf.read_csv_export),
        (llama_bench.is_csv(first), llama_bench.read_csv),
        (llama_bench.is_markdown(text), llama_bench.read_markdown),
    )
    return next((read for is_of_tool, read in tools if is_of_tool), None)


def _heading(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "")


def table_in_json(text: str, where: str) -> list[dict[str, str]] | None:
    """The rows of a table that is written as objects, a row each; None where a tool wrote them."""
    rows = [mapping(document) for document in _documents(text, where) or ()]
    is_tools = any(
        tool.is_result(row) for tool in (vllm_bench, llama_bench, single) for row in rows
    )
    cells = [cell for row in rows for cell in row.values()]
    if is_tools or not cells or any(isinstance(cell, dict | list) for cell in cells):
        return None
    heads = dict.fromkeys(head for row in rows for head in row)
    return [{h: "" if row.get(h) is None else str(row[h]) for h in heads} for row in rows]


def is_output(text: str) -> bool:
    """Whether a benchmark tool wrote the text: it is no table with a heading."""
    return text.lstrip()[:1] in ("{", "[") or _tool(text) is not None


def _own(document: dict[str, object]) -> RunsRead:
    """The rows that an earlier refit was made from."""
    stored = document.get("rows")
    rows: list[Row] = []
    for item in stored if isinstance(stored, list) else []:
        row = mapping(item)
        rows.append({name: words(row.get(name)) for name in COLUMNS})
    return RunsRead(tool="gpuplan calibrate", rows=tuple(rows))


def _checked(found: RunsRead, where: str) -> RunsRead:
    if not found.rows:
        remarks = "; ".join(found.remarks[:3]) or "no run in it"
        raise unreadable(where, found.tool, f"no usable run ({remarks})", "give a finished run")
    return found


def _unknown(where: str) -> InputError:
    return unreadable(where, "content", "of no known tool", f"give {FORMATS}")
