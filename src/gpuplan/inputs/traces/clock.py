"""Times as files write them: numbers in some unit, or stamps with or without a zone."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.traffic.trace import TimeUnit

SECONDS: dict[TimeUnit, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
UNIT_NAMES: dict[TimeUnit, str] = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
SUFFIXES: dict[str, TimeUnit] = {"_ms": "ms", "_us": "us", "_ns": "ns", "_s": "s", "_sec": "s"}
# Numbers this large count from 1970 in the unit beside them.
EPOCHS: tuple[tuple[float, TimeUnit], ...] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e9, "s"))
ABSENT = frozenset({"XXX"})  # what files of lengths alone put in place of a time
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
YEARS = ("1700", "2200")  # what nanoseconds from 1970 can hold, and more than enough
NO_TIME = int(np.iinfo(np.int64).min)


class Clock:
    """Reads the times of one file; remembers what the first of them shows about the rest."""

    def __init__(self, unit: TimeUnit | None, *, name: str = "") -> None:
        self.unit = unit
        self.is_stamp = False
        self.is_absent = False
        self.is_guessed = False
        self.zones: set[str] = set()
        self.base_ns: int | None = None
        self._name = name
        self._is_settled = False

    def seconds(self, cells: list[object]) -> Floats:
        """Seconds of each cell (of stamps, since the first one); NaN where it is no time."""
        if not self._is_settled and cells:
            self._settle(cells)
        if self.is_absent:
            is_mark = [cell in ABSENT for cell in cells]
            return np.where(is_mark, 0.0, np.nan)
        if self.is_stamp:
            return self._stamps(list(map(str, cells)))
        return numbers(cells) * SECONDS[self.unit or "s"]

    def is_dated(self, arrive_s: Floats) -> bool:
        """Whether times are instants, which cannot start again."""
        return self.is_stamp or bool(len(arrive_s) and arrive_s[0] >= EPOCHS[-1][0])

    def start_at(self, first_s: float) -> str:
        """The instant of a time as ISO 8601, or nothing where times are not dates."""
        is_epoch = not self.is_stamp and 1e9 <= first_s < 7e9
        if not is_epoch and self.base_ns is None:
            return ""
        base = (self.base_ns or 0) / 1e9 if self.is_stamp else 0.0
        return datetime.fromtimestamp(base + first_s, UTC).isoformat()

    def _settle(self, cells: list[object]) -> None:
        """Stamps or numbers, and of numbers the unit: from the column's name, else their size."""
        self._is_settled = True
        first = next((cell for cell in cells if cell not in (None, "")), "")
        self.is_absent = str(first).strip() in ABSENT
        self.is_stamp = isinstance(first, str) and bool(_STAMP.fullmatch(first.strip()))
        if self.unit is not None or self.is_stamp or self.is_absent:
            return
        value = numbers([first])[0]
        by_size = next((unit for least, unit in EPOCHS if value >= least), None)
        by_name = next((u for end, u in SUFFIXES.items() if self._name.lower().endswith(end)), None)
        self.unit = by_name or by_size or "s"
        self.is_guessed = by_name is None

    def _stamps(self, texts: list[str]) -> Floats:
        try:
            ns = self._same_zone(texts)
        except ValueError:
            ns = np.array([self._one(text) for text in texts], dtype=np.int64)
        is_bad = ns == NO_TIME
        if self.base_ns is None and not is_bad.all():
            self.base_ns = int(ns[~is_bad][0])
        since = np.where(is_bad, 0, ns) - (self.base_ns or 0)
        return np.where(is_bad, np.nan, since / 1e9)

    def _same_zone(self, texts: list[str]) -> Ints:
        """All at once, where all end in the same zone; ValueError where one does not parse."""
        zone = _zone(texts[0])
        cut = len(zone)
        low, high = min(texts), max(texts)
        # Digits stand together in the order of characters: if both ends begin with a year that
        # nanoseconds can hold, so do all between.
        if not YEARS[0] <= low[:4] <= high[:4] < YEARS[1] or not low[:4].isdigit():
            raise ValueError("not all are stamps")
        if cut and set(map(itemgetter(slice(-cut, None)), texts)) != {zone}:
            raise ValueError("zones differ")
        if not cut and not _ends(texts).isdisjoint("+-Z"):
            raise ValueError("zones differ")
        bare = list(map(itemgetter(slice(None, -cut)), texts)) if cut else texts
        self.zones.add(zone)
        return np.array(bare, dtype="datetime64[ns]").astype(np.int64) - _offset_ns(zone)

    def _one(self, text: str) -> int:
        text = text.strip()
        if not _STAMP.fullmatch(text) or not YEARS[0] <= text[:4] < YEARS[1]:
            return NO_TIME
        zone = _zone(text)
        self.zones.add(zone)
        try:
            bare = np.datetime64(text.removesuffix(zone), "ns")
        except ValueError:
            return NO_TIME
        return int(bare.astype(np.int64)) - _offset_ns(zone)


def numbers(cells: Sequence[object]) -> Floats:
    """Each cell as a number; NaN where it is none, or is not finite."""
    try:
        values = np.array(cells, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([])
    if values.shape != (len(cells),):
        values = np.array([_number(cell) for cell in cells], dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _number(cell: object) -> float:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str) or cell == "":
        return float("nan")
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return float("nan")


def _ends(texts: list[str]) -> set[str]:
    """Where the sign of a zone would stand: the last place, and before hours with minutes."""
    places = (slice(-1, None), slice(-5, -4), slice(-6, -5))
    return {sign for place in places for sign in map(itemgetter(place), texts)}


def _zone(text: str) -> str:
    match = _ZONE.search(text)
    return match[0] if match and len(text) > 12 and _STAMP.fullmatch(text) else ""


def _offset_ns(zone: str) -> int:
    if zone in ("", "Z"):
        return 0
    digits = zone[1:].replace(":", "")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if zone[0] == "-" else minutes) * 60 * 10**9
