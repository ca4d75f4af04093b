"""Conditions that a benchmark's output lacks: what the user gives with flags, checked."""

import re
from collections.abc import Mapping, Sequence

from gpuplan.calibration.runs.fields import NUMBERS, Row, number, short, words
from gpuplan.calibration.runs.plain import TOOL
from gpuplan.csv_rows import meanings
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.provenance import Assumption
from gpuplan.errors import InputError, Problem

# Key -> the flag that gives it.
FLAGS = meanings("calibration", "flag_of_key")
NEEDED = ("model", "accelerator", "engine", "regime", "input_tokens", "output_tokens")
# Regimes that need this number.
LOADS = {
    "batch": ("fixed_concurrency", "static_batch", "fixed_max_batch"),
    "request_rate_per_s": ("poisson", "open loop trace", "MLPerf server", "MLPerf Interactive"),
}
KV_WORDS = {"fp8": "fp8 kv", "fp16": "fp16 kv", "bf16": "fp16 kv"}
PLAIN_PRECISIONS = ("16-bit", "mixed", "weight = ")


# Beyond these a cell is a slip, and a simulation of it would not end.
MOST = {
    "n_accelerators": 1e5, "tp": 1024.0, "pp": 1024.0, "batch": 1e5, "request_rate_per_s": 1e6,
    "input_tokens": 1e7, "output_tokens": 1e6,
}  # fmt: skip
COUNTED = re.compile(r"^\s*(\d{1,5})\s*[x*]\s*(\S.*)$", re.IGNORECASE)


def split_count(given: Mapping[str, str]) -> dict[str, str]:
    """`8xH100` as eight and the name."""
    found = COUNTED.match(given.get("accelerator", ""))
    if found is None:
        return dict(given)
    return {"n_accelerators": found[1], **given, "accelerator": found[2].strip()}


def check_given(given: Mapping[str, str]) -> None:
    """InputError for keys and numbers that cannot be."""
    problems = []
    for key, text in given.items():
        if key not in FLAGS:
            problems.append(Problem(key, "no such condition", f"give one of {', '.join(FLAGS)}"))
        elif key in NUMBERS and number(text) is None:
            problems.append(Problem(FLAGS[key], f"got {text!r}", "give a number above 0"))
        elif key == "kv_precision" and text.lower() not in KV_WORDS:
            problems.append(Problem(FLAGS[key], f"got {text!r}", "give fp8 or bf16"))
    if problems:
        raise InputError("calibrate", problems)


def with_given(
    read: RunsRead, given: Mapping[str, str], *, where: str, lengths_known: Mapping[str, object]
) -> tuple[list[Row], list[str]]:
    """Rows with the given conditions, and what was replaced; InputError names what is missing.

    A table states its own conditions: only its blanks are filled. A tool's names are those that
    its server was given: the user's flags replace them.
    """
    rows, remarks = filled(read, given)
    problems: list[Problem] = []
    for key in (*NEEDED, *LOADS):
        lacking = [row["id"] for row in rows if _lacks(row, key, lengths_known)]
        if lacking:
            what = f"{len(lacking)} of {len(rows)} runs do not state the {key.replace('_', ' ')}"
            problems.append(Problem(key, what, f"give {FLAGS[key]}"))
    for text in sorted({row["precision"] for row in rows if not is_precision(row["precision"])}):
        fix = "give --precision, such as bf16, fp8, int4 or q4_k_m"
        problems.append(Problem("precision", f"{text!r} is not known", fix))
    problems += _number_problems(rows)
    if problems:
        raise InputError(short(where), problems)
    return rows, [f"{short(where)}: {line}" for line in remarks]


def filled(read: RunsRead, given: Mapping[str, str]) -> tuple[list[Row], list[str]]:
    """Rows with the given conditions, and what was replaced; what is missing stays blank."""
    remarks: list[str] = []
    rows = [_filled(row, given, remarks, is_table=read.tool == TOOL) for row in read.rows]
    return rows, list(dict.fromkeys(remarks))


def _number_problems(rows: Sequence[Row]) -> list[Problem]:
    problems = {}
    for row in rows:
        for key, most in MOST.items():
            if (number(row[key]) or 0.0) > most:
                problems[key] = Problem(key, f"got {row[key]}", f"give at most {most:g}")
        n, tp, pp = (number(row[key]) or 1.0 for key in ("n_accelerators", "tp", "pp"))
        if n < tp * pp:
            what = f"{n:g} accelerators do not hold tp {tp:g} and pp {pp:g}"
            problems["tp"] = Problem("tp", what, f"give {FLAGS['n_accelerators']} or {FLAGS['tp']}")
    return list(problems.values())


def _lacks(row: Row, key: str, lengths_known: Mapping[str, object]) -> bool:
    if row[key]:
        return False
    if key in LOADS:
        return row["regime"].strip() in LOADS[key]
    is_benchmark = "mlperf" in row["source"] and row["model"].lower() in lengths_known
    return not (is_benchmark and key.endswith("_tokens"))


def _filled(
    row: Mapping[str, str], given: Mapping[str, str], remarks: list[str], *, is_table: bool
) -> Row:
    made = dict(row)
    for key, value in given.items():
        if key == "kv_precision":
            continue
        old, new = made.get(key, ""), words(value)
        if old and (is_table or old == new):
            continue
        if old:
            remarks.append(f"{key.replace('_', ' ')} {old!r} of the file gives way to {new!r}")
        made[key] = new
    if not made.get("regime"):
        is_closed, is_open = bool(made.get("batch")), bool(made.get("request_rate_per_s"))
        made["regime"] = "fixed_concurrency" if is_closed else "poisson" if is_open else ""
    if not made.get("n_accelerators") and made.get("tp"):
        n = (number(made["tp"]) or 1.0) * (number(made.get("pp")) or 1.0)
        made["n_accelerators"] = f"{n:g}"
    if "kv_precision" in given and " kv" not in made.get("precision", ""):
        first = made.get("precision") or "16-bit"
        made["precision"] = f"{first}, {KV_WORDS[given['kv_precision'].lower()]}"
    return made


def is_precision(text: str) -> bool:
    """Whether the weights' format is one that has a size; blank is as published."""
    low = text.strip().lower()
    if not low or low.startswith(PLAIN_PRECISIONS):
        return True
    return format_named(re.split(r"[ ,]", low)[0]) is not None


def assumptions(rows: Sequence[Row]) -> tuple[Assumption, ...]:
    """What was assumed because neither a file nor a flag states it."""
    is_mlperf = any("mlperf" in row["source"] for row in rows)
    lowest = "the lowest that the accelerator computes, as MLPerf entries do"
    precision = lowest if is_mlperf else "as the model is published"
    blanks = (
        ("n_accelerators", "accelerators", "1"),
        ("precision", "precision", precision),
        ("engine_version", "engine version", "the newest that was measured"),
        ("input_tokens", "prompt and output lengths", "the benchmark's own"),
    )
    found = [blank for blank in blanks if any(not row[blank[0]] for row in rows)]
    if any(_is_cache_guessed(row) for row in rows):
        found.append(("kv_precision", "KV cache", "8 bits beside quantized weights under load"))
    why = "neither the files nor a flag state it"
    return tuple(
        Assumption(what=what, value=value, why=why, change=FLAGS[key]) for key, what, value in found
    )


def _is_cache_guessed(row: Row) -> bool:
    low = row["precision"].lower()
    form = format_named(re.split(r"[ ,]", low)[0]) if low else None
    is_quantized = form is not None and form.is_quantized
    return is_quantized and " kv" not in low and row["regime"] == "fixed_concurrency"
