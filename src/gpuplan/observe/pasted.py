"""The two columns that people paste: minutes and percent, in whatever way they were typed."""

import re
from typing import NamedTuple

from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.observation import Subject
from gpuplan.observe.clock import dated_s, time_of_day_s
from gpuplan.observe.collect import Collector
from gpuplan.observe.formats import GENERIC, plain
from gpuplan.observe.names import PERCENT, Word

_SPLITS = ("\t", "|", ";", ",", ":", None)  # None: any white space
_TIME = re.compile(r"^(?P<value>\d+(?:[.,]\d+)?)\s*(?P<unit>[^\W\d]+)?\.?$")
_DATE = re.compile(r"^\d{4}[-/]\d{1,2}(?:[-/]\d{1,2}(?:[ T]\d{1,2}:\d{2})?)?")
_SHARE = re.compile(r"^(?P<value>\d+(?:[.,]\d+)?)\s*%?$")
_UNITS = (
    (("min", "phút"), 60.0),
    (("hour", "hrs", "giờ"), 3600.0),
    (("sec", "giây"), 1.0),
)
_SHORT = {"m": 60.0, "h": 3600.0, "s": 1.0}
_SHARE_WORDS = ("%", "util", "usage", "use", "busy", "load", "sử dụng", "percent")
_RULE = set("-=+|: \t")
MAX_PERCENT, MAX_STEPS = 105.0, 1e6
MAX_LINE = 500  # of two columns
NO_UNIT = Assumption(
    what="unit of the first column",
    value="minutes",
    why="the pasted table does not say",
    change="write the unit into its heading, e.g. Time (s)",
)
RATIOS = Assumption(
    what="unit of the second column",
    value="shares from 0 to 1",
    why="no value is above 1, and nothing says percent",
    change="write % into its heading",
)


class Pasted(NamedTuple):
    """Rows in seconds and percent, and what the table did not say."""

    rows: list[tuple[float, float]]
    assumptions: tuple[Assumption, ...] = ()


def pasted(text: str) -> Pasted:
    """A table of two columns pasted as text; no rows if it is none."""
    unit_s: float | None = None
    rows: list[tuple[float, float]] = []
    nothing = Pasted([])
    n_heads, longest = 0, 0.0
    for line in text.splitlines():
        if set(line) <= _RULE:
            continue
        if len(line) > MAX_LINE:
            return nothing
        row = _row(line)
        if row is None:
            n_heads += 1
            if rows or n_heads > 1 or not _is_heading(line, has_percent="%" in text):
                return nothing
            unit_s = _unit(line)
            continue
        at, percent, own_s = row
        unit_s = own_s or unit_s  # what a line says of itself wins over the heading
        rows.append((at, percent))
        longest = longest if _DATE.match(line.strip(' "|')) else max(longest, at)
    if not rows or max(p for _, p in rows) > MAX_PERCENT or longest > MAX_STEPS:
        return nothing
    is_ratio = _is_ratio(text, [share for _, share in rows])
    unknown = ((NO_UNIT,) if unit_s is None else ()) + ((RATIOS,) if is_ratio else ())
    scale, percent = unit_s or 60.0, 100.0 if is_ratio else 1.0
    return Pasted([(at * scale, share * percent) for at, share in rows], unknown)


def _is_ratio(text: str, shares: list[float]) -> bool:
    """Whether values are shares of one, as exporters write them: 0.97 is no hundredth of a GPU."""
    says_percent = "%" in text or "percent" in text.lower()
    return not says_percent and max(shares) <= 1.0 and any(share % 1 for share in shares)


def take_pasted(collector: Collector, found: Pasted) -> None:
    """Utilization in percent over time, as people write it into a message."""
    for unknown in found.assumptions:
        collector.assume(unknown)
    subject, word = collector.subject(Subject()), Word("gpu_util_frac", PERCENT)
    for at_s, percent in found.rows:
        collector.sample(subject, word, at_s, percent)


def _cells(line: str, split: str | None) -> list[str]:
    parts = [part.strip().strip('"') for part in line.strip().strip("|").split(split)]
    return [part for part in parts if part and part != "%"]


def _clock_s(text: str) -> float | None:
    """Seconds of a time of day, or of a date or month: 2026-11-10 00:05, 2026-11; None: neither."""
    of_day_s = time_of_day_s(text)
    if of_day_s is not None or not _DATE.match(text):
        return of_day_s
    return dated_s(text)


def _row(line: str) -> tuple[float, float, float | None] | None:
    """Time, percent, and the unit where the line itself names it."""
    for split in _SPLITS:
        cells = _cells(line, split)
        if split is None and len(cells) == 3 and _unit_of(cells[1]) is not None:
            cells = [f"{cells[0]} {cells[1]}", cells[2]]
        if len(cells) != 2:
            continue
        clock_s, share = _clock_s(cells[0]), _SHARE.match(cells[1])
        if clock_s is not None and share is not None:
            return clock_s, _number(share["value"]), 1.0
        at = _TIME.match(cells[0])
        if at is not None and share is not None:
            unit_s = _unit_of(at["unit"]) if at["unit"] else None
            if at["unit"] and unit_s is None:
                return None
            return _number(at["value"]), _number(share["value"]), unit_s
    return None


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _unit_of(word: str) -> float | None:
    small = word.lower()
    for names, scale in _UNITS:
        if small.startswith(names):
            return scale
    return _SHORT.get(small)


def _unit(heading: str) -> float | None:
    """What the heading's words say about time."""
    found = [unit for word in re.findall(r"[^\W\d]+", heading) if (unit := _unit_of(word))]
    return found[0] if found else None


def _is_heading(line: str, *, has_percent: bool) -> bool:
    """Words about a share, or any words above values in percent.

    Names of columns that a table of metrics has are left to its reader.
    """
    cells = [plain(cell) for cell in line.split(",")]
    if any(cell in GENERIC.times for cell in cells) and any(c in GENERIC.words for c in cells):
        return False
    is_share = has_percent or any(word in line.lower() for word in _SHARE_WORDS)
    return is_share or _unit(line) is not None
