"""Rows as read become columns; what cannot be read is counted, with its line and the reason."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuplan.domain.columns import Floats, Ints
from gpuplan.errors import Problem, printable
from gpuplan.inputs.documents.scalars import shorten
from gpuplan.inputs.traces.clock import Clock, numbers

MAX_SHOWN = 20
MAX_TOKENS = 1_000_000_000
N_BLOCK_ROWS = 65_536


@dataclass(slots=True)
class RawRows:
    """Some rows as the file has them: one list per column, None where a cell is missing."""

    line: list[int] = field(default_factory=list)
    arrive: list[object] = field(default_factory=list)
    input_tokens: list[object] = field(default_factory=list)
    output_tokens: list[object] = field(default_factory=list)
    session: list[object] = field(default_factory=list)  # empty: the file has none
    priority: list[object] = field(default_factory=list)
    max_tokens: list[object] = field(default_factory=list)
    blocks: list[list[int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.line)

    def add(self, line: int, arrive: object, n_input: object, n_output: object) -> None:
        """One more row; what is no number and no text is a missing cell."""
        self.line.append(line)
        self.arrive.append(cell(arrive))
        self.input_tokens.append(cell(n_input))
        self.output_tokens.append(cell(n_output))


def cell(value: object) -> object:
    """The value where it is a number or text: truth values, lists and objects are no cells."""
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else None


class Part(NamedTuple):
    """The good rows of some raw rows."""

    line: Ints
    arrive_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    session: Ints
    priority: Ints
    max_tokens: Ints


@dataclass(slots=True)
class OpenTrace:
    """A file whose format is known, with its rows to come."""

    format: str
    rows: Iterator[RawRows]
    converter: "Converter"
    notes: tuple[str, ...] = ()  # on the format, and what was taken for what
    n_block_tokens: int = 0  # 0: no block hashes


class Findings:
    """What is odd about a file, gathered while it is read."""

    def __init__(self) -> None:
        self.n_bad = 0
        self.bad: list[Problem] = []
        self.skipped: Counter[str] = Counter()  # lines that are no requests, or not asked for
        self.odd: Counter[str] = Counter()  # requests that are kept though they look odd
        self.runs: Counter[str] = Counter()

    def note_bad(self, where: str, what: str, fix: str, *, n: int = 1) -> None:
        """Count lines that cannot be read, and remember the first to show."""
        self.n_bad += n
        if len(self.bad) < MAX_SHOWN:
            self.bad.append(Problem(where, what, fix))


class Converter:
    """Raw rows to columns: times in seconds, lengths in tokens, sessions and blocks numbered."""

    def __init__(self, clock: Clock | None, findings: Findings, *, unit: str = "line") -> None:
        self.clock = clock  # None: the file has no times
        self.findings = findings
        self._unit = unit
        self.keeps_blocks = True
        self._sessions: dict[object, int] = {}
        self._block_numbers: dict[int, int] = {}
        self.block: list[int] = []
        self.n_blocks: list[int] = []

    def part(self, rows: RawRows) -> Part:
        """The good rows; the others are noted."""
        n = len(rows)
        arrive = self.clock.seconds(rows.arrive) if self.clock else np.zeros(n)
        n_input, n_output = numbers(rows.input_tokens), numbers(rows.output_tokens)
        priority = numbers(rows.priority) if rows.priority else np.zeros(n)
        is_good = np.isfinite(arrive) & _is_length(n_input) & _is_length(n_output)
        is_good &= np.isfinite(priority) & (np.trunc(priority) == priority)
        if not is_good.all():
            self._note(rows, np.flatnonzero(~is_good), arrive=arrive, lengths=(n_input, n_output))
        good = np.flatnonzero(is_good)
        self._take_blocks(rows, good)
        return Part(
            line=np.array(rows.line, dtype=np.int64)[good],
            arrive_s=arrive[good],
            input_tokens=n_input[good].astype(np.int64),
            output_tokens=n_output[good].astype(np.int64),
            session=self._session(rows, good),
            priority=priority[good].astype(np.int64),
            max_tokens=_requested(rows, good),
        )

    def _session(self, rows: RawRows, good: Ints) -> Ints:
        if not rows.session:
            return np.full(len(good), -1, dtype=np.int64)
        known = self._sessions
        given = [rows.session[i] for i in good]
        number = [-1 if key in (None, "") else known.setdefault(key, len(known)) for key in given]
        return np.array(number, dtype=np.int64)

    def _take_blocks(self, rows: RawRows, good: Ints) -> None:
        if not rows.blocks or not self.keeps_blocks:
            return
        known = self._block_numbers
        for i in good:
            ids = rows.blocks[i]
            self.n_blocks.append(len(ids))
            self.block.extend([known.setdefault(number, len(known)) for number in ids])

    def _note(
        self, rows: RawRows, bad: Ints, *, arrive: Floats, lengths: tuple[Floats, Floats]
    ) -> None:
        for i in bad:
            where = f"{self._unit} {rows.line[i]}"
            cells = {"input tokens": rows.input_tokens[i], "output tokens": rows.output_tokens[i]}
            for (name, cell), length in zip(cells.items(), lengths, strict=True):
                if not _is_length(length[i : i + 1])[0]:
                    fix = f"must be a whole number from 0 to {MAX_TOKENS:,}"
                    self.findings.note_bad(where, f"{name} {_show(cell)}", fix)
                    break
            else:
                what = f"time {_show(rows.arrive[i])}" if np.isnan(arrive[i]) else "priority"
                self.findings.note_bad(where, what, "must be a number or a date and time")


def _requested(rows: RawRows, good: Ints) -> Ints:
    """Tokens that each request asks for; -1 where its cell is empty or no length."""
    if not rows.max_tokens:
        return np.full(len(good), -1, dtype=np.int64)
    given = numbers(rows.max_tokens)[good]
    return np.where(_is_length(given) & (given > 0), given, -1).astype(np.int64)


def _is_length(values: Floats) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        is_whole = (values >= 0) & (values <= MAX_TOKENS) & (np.trunc(values) == values)
    return np.asarray(is_whole, dtype=np.bool_)


def _show(cell: object) -> str:
    if cell is None or cell == "":
        return "is missing"
    return f"is {shorten(printable(str(cell)[:80]))}"
