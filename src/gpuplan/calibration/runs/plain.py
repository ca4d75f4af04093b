"""A table in gpuplan's own columns (CSV) -> rows, every cell checked."""

import difflib

from gpuplan.calibration.runs.fields import (
    COLUMNS,
    NUMBERS,
    Reading,
    Row,
    number,
    short,
    words,
)
from gpuplan.csv_rows import csv_rows
from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.errors import InputError, Problem

TOOL = "table"
NEEDED = ("model", "accelerator", "regime")
MOST_ROWS = 10_000
MOST_PROBLEMS = 20


def is_table(first_line: str) -> bool:
    """Whether this is a heading with our columns."""
    heads = {head.strip().strip('"') for head in first_line.split(",")}
    return "regime" in heads or any(head.startswith("measured_") for head in heads)


def read_table(text: str, where: str) -> RunsRead:
    """Rows of the table, or every fault of it at once."""
    reading = Reading(where, TOOL)
    table = csv_rows(text, source=short(where))
    problems = _heading_problems(reading, list(table[0]) if table else [])
    rows = [_row(found, line, problems) for line, found in enumerate(table, start=2)]
    if len(rows) > MOST_ROWS:
        problems.append(Problem("rows", f"{len(rows)}", f"give at most {MOST_ROWS}"))
    if problems:
        raise InputError(short(where), problems[:MOST_PROBLEMS])
    for row in rows:
        reading.add(row, flag=row.get("flag", ""))
    return reading.result()


def _heading_problems(reading: Reading, heads: list[str]) -> list[Problem]:
    problems = [
        Problem("columns", f"no column {name!r}", f"add it; columns are {', '.join(COLUMNS)}")
        for name in NEEDED
        if name not in heads
    ]
    for head in heads:
        if head in COLUMNS or not head:
            continue
        near = difflib.get_close_matches(head, COLUMNS, n=1, cutoff=0.7)
        if near or head.startswith("measured_"):
            fix = f"did you mean {near[0]}?" if near else f"use one of {', '.join(COLUMNS[16:25])}"
            problems.append(Problem("columns", f"got {words(head)!r}", fix))
        else:
            reading.remark(f"column {words(head)!r} is not read")
    return problems


def _row(found: dict[str, str], line: int, problems: list[Problem]) -> Row:
    row: Row = {}
    for name in COLUMNS:
        text = words(found.get(name))
        if name in NUMBERS and text:
            value = number(text)
            if value is None:
                fix = "give a number above 0, or leave the cell empty"
                problems.append(Problem(f"line {line}, {name}", f"got {text!r}", fix))
            row[name] = "" if value is None else f"{value:.10g}"
        elif text:
            row[name] = text
    return row
