"""Rows of a table, from CSV, JSON or Parquet, become readings.

Telemetry in Parquet: the same tables, read in parts so that memory stays bounded.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gpuplan.domain.telemetry.observation import Span, Subject, Telemetry
from gpuplan.errors import InputError, one
from gpuplan.observe import special
from gpuplan.observe.clock import seconds
from gpuplan.observe.collect import Collector
from gpuplan.observe.formats import TableFormat, format_of, is_ratio, plain, unit_scale
from gpuplan.observe.names import PROMETHEUS, Word
from gpuplan.units import DAY, HOUR, HOURS_PER_MONTH, WEEK

MAX_ROWS = 5_000_000  # that become series in memory; larger files are summed up, not held


_NUMBER = re.compile(r"^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NOTHING = {"", "n/a", "[n/a]", "nan", "null", "none", "[not supported]", "[unknown error]"}
_OLD_NAMES = {name.lower(): name for name in PROMETHEUS}
COUNTED_S = {"day": DAY, "week": WEEK, "month": HOURS_PER_MONTH * HOUR}
MOST_COUNTED = 10_000  # days or weeks; larger numbers are seconds of a clock
Row = Mapping[str, object]


class _Reader:
    def __init__(self, collector: Collector, layout: TableFormat, columns: Sequence[str]) -> None:
        names = {plain(column): column for column in columns}
        self.collector, self.layout = collector, layout
        collector.sampling = layout.sampling
        self.time = next((names[name] for name in layout.times if name in names), None)
        self.words = _words(layout, names)
        self.parts = _parts(layout, names)
        self.columns = [*self.words, *(one for part in self.parts.values() for one in part)]
        self.subjects = {
            what: names[name]
            for what, candidates in layout.subjects.items()
            if (name := next((c for c in candidates if c in names), None)) is not None
        }
        self.phase = names.get(layout.phase, "") if layout.phase else ""
        self.profiling = [names[name] for name in layout.profiling if name in names]
        self.spans: dict[int, tuple[str, float, float]] = {}
        if self.time is None and layout.times:
            fix = f"name it one of {', '.join(layout.times[:4])}"
            raise one(InputError, collector.source, "columns", "none holds a time", fix)

    def take(self, number: int, row: Row) -> bool:
        where = f"line {number}"
        at_s = 0.0 if self.time is None else self._at_s(_text(row.get(self.time)))
        if at_s is None or _is_torn(row, self.columns):
            self.collector.quirk("a torn or empty row", where, "excluded")
            return False
        subject = self.collector.subject(self._about(row))
        lost = self._lost(row, where)
        for column, word in self.words.items():
            value = math.nan if column in lost else self._number(row.get(column), where, column)
            self.collector.sample(subject, word, at_s, value)
        for word, columns in self.parts.items():
            values = [self._number(row.get(column), where, column) for column in columns]
            self.collector.sample(subject, word, at_s, math.fsum(values))
        if self.phase:
            self._take_phase(subject, at_s, _text(row.get(self.phase)))
        return True

    def _at_s(self, text: str) -> float | None:
        """Seconds of a cell; weeks, days and months may be counted from the first: 1, 2, 3."""
        at_s, step_s = seconds(text, self.collector), COUNTED_S.get(plain(self.time or ""))
        if at_s is None or step_s is None or abs(at_s) >= MOST_COUNTED or not text.isdigit():
            return at_s
        return at_s * step_s

    def _about(self, row: Row) -> Subject:
        found = {what: _text(row.get(column)) for what, column in self.subjects.items()}
        return Subject(**found)  # type: ignore[arg-type]

    def _lost(self, row: Row, where: str) -> Sequence[str]:
        """One empty profiling cell means that the whole profiling sample is void."""
        if not any(_text(row.get(column)) in _NOTHING for column in self.profiling):
            return ()
        self.collector.quirk("a profiling sample with empty cells", where, "all of it is missing")
        return self.profiling

    def _number(self, cell: object, where: str, column: str) -> float:
        if isinstance(cell, int | float):
            return float(cell)
        text = _text(cell)
        if text.lower() in _NOTHING:
            return math.nan
        match = _NUMBER.match(text)
        if match is None:
            self.collector.quirk("not a number", f"{where}, {column}: {text[:30]}", "missing")
            return math.nan
        return float(match[0])

    def _take_phase(self, subject: int, at_s: float, label: str) -> None:
        known = self.spans.get(subject)
        if known is not None and known[0] == label:
            self.spans[subject] = (label, known[1], at_s)
            return
        if known is not None:
            self._close(subject, known, at_s)
        self.spans[subject] = (label, at_s, at_s)

    def _close(self, subject: int, known: tuple[str, float, float], end_s: float) -> None:
        label, begin_s, _ = known
        self.collector.span(Span(subject=subject, begin_s=begin_s, end_s=end_s, label=label))

    def finish(self) -> None:
        """Phases that run to the end of the table."""
        for subject, known in self.spans.items():
            self._close(subject, known, known[2])


def take_rows(
    collector: Collector, layout: TableFormat, columns: Sequence[str], rows: Iterable[Row]
) -> int:
    """Hand every cell of a known column to the collector; how many rows had a time."""
    retained = list(rows) if _has_old_names(layout, columns) else rows
    if isinstance(retained, list):
        layout = _in_its_generation(collector, layout, columns, retained)
    reader = _Reader(collector, layout, columns)
    n_read = sum(reader.take(number, row) for number, row in enumerate(retained, start=2))
    reader.finish()
    return n_read


def _has_old_names(layout: TableFormat, columns: Sequence[str]) -> bool:
    return any(plain(c) in layout.words and plain(c) in _OLD_NAMES for c in columns)


def _in_its_generation(
    collector: Collector, layout: TableFormat, columns: Sequence[str], rows: Sequence[Row]
) -> TableFormat:
    words = dict(layout.words)
    for column in columns:
        name = _OLD_NAMES.get(plain(column), "")
        if name and is_ratio(name, _numbers(rows, column)):
            done = "read as a ratio: whole percents have no fractions"
            collector.quirk("an old name with ratios", name, done)
            words[plain(column)] = Word(words[plain(column)].metric)
    return layout._replace(words=words)


def _numbers(rows: Sequence[Row], column: str) -> Iterator[float]:
    for row in rows:
        match = _NUMBER.match(_text(row.get(column)))
        if match is not None:
            yield float(match[0])


def _words(layout: TableFormat, names: Mapping[str, str]) -> dict[str, Word]:
    """Column → meaning; of several columns for one metric the first counts."""
    found: dict[str, Word] = {}
    for name, word in layout.words.items():
        taken = {known.metric for known in found.values()}
        if name in names and word.metric not in taken:
            column = names[name]
            found[column] = word._replace(scale=word.scale * unit_scale(column))
    return found


def _parts(layout: TableFormat, names: Mapping[str, str]) -> dict[Word, list[str]]:
    found: dict[Word, list[str]] = {}
    for pattern, word in layout.summed.items():
        columns = [column for name, column in names.items() if re.fullmatch(pattern, name)]
        if columns:
            found[word] = columns
    return found


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _is_torn(row: Row, columns: Sequence[str]) -> bool:
    """A row that ends early: cells are absent altogether, which is not the same as empty."""
    return any(column not in row or row[column] is None for column in columns)


def read_parquet(path: Path) -> Telemetry:
    """A file that fits into memory as series."""
    frame = pl.scan_parquet(path)
    columns = frame.collect_schema().names()
    n_rows = int(frame.select(pl.len()).collect().item())
    if n_rows > MAX_ROWS:
        what = f"{n_rows:,} rows are too many to hold as series"
        fix = "give a part of the time, or the folder to `gpuplan diagnose`, which works in batches"
        raise one(InputError, str(path), "telemetry", what, fix)
    collector = Collector(str(path), "Parquet")
    if special.is_long(columns):
        special.take_long(collector, _rows(frame))
        return collector.finish()
    layout = format_of(tuple(plain(column) for column in columns))
    if layout is None:
        what = f"columns {', '.join(columns[:6])} are not known"
        fix = "name them as DCGM does, or as in docs/rooms/observe.md"
        raise one(InputError, str(path), "telemetry", what, fix)
    take_rows(collector, layout, columns, _rows(frame))
    return collector.finish()


def _rows(frame: pl.LazyFrame) -> Iterator[dict[str, Any]]:
    whole = frame.collect()
    for part in whole.iter_slices(100_000):
        for row in part.iter_rows(named=True):
            yield {name: "" if cell is None else cell for name, cell in row.items()}
