"""Column names by which files say when, how long and whose; case and spacing do not matter."""

import re
from collections.abc import Sequence
from pathlib import Path

from gpuplan.domain.traffic.trace import ColumnMap
from gpuplan.errors import InputError, Problem
from gpuplan.inputs.documents.problems import nearest

ARRIVE = (
    "arrive_s", "arrival_s", "arrived_at", "arrival_time_s", "arrival_time", "arrival", "arrive",
    "arrival_ms", "arrival_time_ms", "arrival_timestamp", "request_start_time", "start_time_ms",
    "start_time_s", "start_time", "start_s", "timestamp_ms", "timestamp_s", "timestamp", "ts",
    "time_s", "time_ms", "time", "request_time", "created_at", "datetime", "date",
)  # fmt: skip
INPUT = (
    "input_tokens", "prompt_tokens", "context_tokens", "request_tokens", "input_toks",
    "input_num_tokens", "num_prefill_tokens", "num_input_tokens", "num_prompt_tokens",
    "input_length", "prompt_length", "input_len", "prompt_len", "isl", "n_input", "contexttokens",
    "usage_prompt_tokens", "input_sequence_length",
)  # fmt: skip
OUTPUT = (
    "output_tokens", "completion_tokens", "generated_tokens", "response_tokens", "output_toks",
    "output_num_tokens", "num_decode_tokens", "num_output_tokens", "num_completion_tokens",
    "output_length", "completion_length", "output_len", "completion_len", "osl", "n_output",
    "generatedtokens", "usage_completion_tokens", "output_sequence_length",
)  # fmt: skip
SESSION = ("session", "session_id", "conversation_id", "chat_id", "thread_id")
PRIORITY = ("priority",)
RUN = ("run", "run_id")


def plain(name: str) -> str:
    """The name in lower case with one kind of gap."""
    return re.sub(r"[\s\-.]+", "_", name.strip().lower())


def find(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first column, in order of the wanted names, that the file has."""
    by_plain = {plain(name): name for name in reversed(names)}
    return next((by_plain[name] for name in wanted if name in by_plain), None)


def columns_of(path: Path, names: Sequence[str], given: ColumnMap | None) -> ColumnMap:
    """Where the file keeps what; InputError names what is missing and what there is."""
    if given is not None:
        _check(path, names, given)
        return given
    found = ColumnMap(
        arrive=find(names, ARRIVE),
        input_tokens=find(names, INPUT),
        output_tokens=find(names, OUTPUT),
        session=find(names, SESSION),
        priority=find(names, PRIORITY),
    )
    missing = [
        Problem(str(path), f"no column is known to hold {what}", _what_there_is(names, flag))
        for what, flag, column in (
            ("input tokens", "input", found.input_tokens),
            ("output tokens", "output", found.output_tokens),
        )
        if column is None
    ]
    if missing:
        raise InputError("trace", missing)
    return found


def _check(path: Path, names: Sequence[str], given: ColumnMap) -> None:
    asked = {
        "arrive": given.arrive, "input": given.input_tokens, "output": given.output_tokens,
        "session": given.session, "priority": given.priority,
    }  # fmt: skip
    problems = []
    for flag, column in asked.items():
        if column is not None and column not in names:
            guess = nearest(column, list(names))
            hint = f"did you mean {guess}?" if guess else _what_there_is(names, flag)
            problems.append(Problem(str(path), f"has no column {column!r} for {flag}", hint))
    if not problems and given.arrive is None and given.input_tokens is None:
        fix = "name at least the arrivals or the input tokens"
        problems.append(Problem(str(path), "the column map names neither time nor length", fix))
    if problems:
        raise InputError("trace", problems)


def _what_there_is(names: Sequence[str], flag: str) -> str:
    shown = ", ".join(str(name)[:40] for name in list(names)[:12])
    return f"map one with --columns {flag}=COLUMN; the file has {shown}"
