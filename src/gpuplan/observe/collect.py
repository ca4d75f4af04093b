"""Samples in any order in, series in order out; everything odd is counted on the way.

Values that no instrument measured: blanks in disguise, and the physically impossible.

Cumulative buckets over time become what fell into each bucket between two samples.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.observation import (
    Allocation,
    Histogram,
    Quirk,
    Sampling,
    Series,
    Span,
    Subject,
    Telemetry,
)
from gpuplan.observe.guard import clean
from gpuplan.observe.names import Word


class Buckets:
    """The buckets of one histogram as they are read."""

    def __init__(self) -> None:
        self._counts: dict[float, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        self._totals: dict[float, float] = defaultdict(float)
        self._all: dict[float, float] = defaultdict(float)

    def bucket(self, at_s: float, upper: float, count: float) -> None:
        """A cumulative count; equal bounds at one time (several reasons, models) add up."""
        self._counts[at_s][upper] += count

    def total(self, at_s: float, value: float) -> None:
        """Sum of the values so far."""
        self._totals[at_s] += value

    def number(self, at_s: float, count: float) -> None:
        """How many values so far: the infinite bucket, should the source not write it."""
        self._all[at_s] += count

    def histogram(self, metric: str, subject: int, quirk: Callable[..., None]) -> Histogram | None:
        """What fell into each bucket from sample to sample, or since the start if read once."""
        if not self._counts:
            return None
        if not any(math.inf in row for row in self._counts.values()):
            for at_s, count in self._all.items():
                self._counts[at_s][math.inf] = count
        times = sorted(self._counts)
        uppers = sorted({upper for row in self._counts.values() for upper in row})
        below = np.array([[self._counts[t].get(u, math.nan) for u in uppers] for t in times])
        if np.isnan(below).any():
            quirk("a bucket is missing in some samples", metric, "read as its lower neighbour")
            below = _filled(below)
        if uppers[-1] != math.inf:
            quirk("no infinite bucket", metric, "values above the last bound are not known")
        total = np.array([self._totals.get(t, math.nan) for t in times])
        if len(times) == 1:
            quirk("a histogram read once counts from the start", metric, "kept")
            rises, sums, at = below, total, times
        else:
            rises, sums, at = np.diff(below, axis=0), np.diff(total), times[:-1]
            is_reset = rises[:, -1] < 0
            rises[is_reset], sums[is_reset] = below[1:][is_reset], total[1:][is_reset]
        return Histogram(
            metric=metric,
            subject=subject,
            at_s=floats(at),
            upper=floats(uppers),
            count=floats(np.maximum(np.diff(rises, axis=1, prepend=0.0), 0.0)),
            total=floats(sums),
        )


Mask = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
# Blank, not found, not supported, no permission: the last sixteen of each integer width, and the
# floating marks from 2^47 [DCGM-blanks]; and the wrapped minus one.
_BLANKS = ((2**31 - 16, 2**31), (2**32 - 1, 2**32), (2**47, 2**47 + 16), (2**63 - 1024, math.inf))
# Past these a reading is a fault of the instrument. Clocks lag, so shares get some room.
_MOST = {
    "frac": 1.05,
    "w": 20_000.0,
    "c": 200.0,
    "hz": 2e10,
    "bytes": 2e15,
    "bytes_per_s": 1e14,
}
_LEAST = {"c": -60.0}


DATED_FROM_S = 1e9  # smaller times count from a start of their own, not from 1970
N_PLACES = 3  # of a quirk that are named
MAX_GAP_S = 400 * 86400.0  # no recording pauses so long: what lies beyond is of another clock
NO_TIME = "a time that is none"
OTHER_CLOCK = "readings years away from all others"
Named = TypeVar("Named", Subject, Span, Allocation)


@dataclass(slots=True)
class _Odd:
    done: str
    n_cases: int = 0
    places: list[str] = field(default_factory=list)


class Collector:
    """Takes samples as a reader meets them; `finish` gives the telemetry."""

    def __init__(self, source: str, format_name: str) -> None:
        self.source = source
        self.format_name = format_name
        self.sampling: Sampling = "instant"
        self.assumptions: dict[str, Assumption] = {}
        self._subjects: dict[Subject, int] = {}
        self._samples: dict[tuple[int, Word], list[tuple[float, float]]] = defaultdict(list)
        self._buckets: dict[tuple[int, str], Buckets] = defaultdict(Buckets)
        self._spans: list[Span] = []
        self._allocations: list[Allocation] = []
        self._odd: dict[str, _Odd] = {}
        self._sums: set[tuple[int, Word]] = set()

    # ── what readers say ─────────────────────────────────────────────────────────────────────────

    def subject(self, about: Subject) -> int:
        """Row of this subject, new or known; names from outside are cleaned here, once."""
        known = self._subjects.get(about)
        if known is not None:
            return known
        return self._subjects.setdefault(_clean(about), len(self._subjects))

    def sample(self, subject: int, word: Word, at_s: float, value: float) -> None:
        """One reading in the source's own unit; NaN where the source gave none."""
        self._samples[subject, word].append((at_s, value))

    def add_up(self, subject: int, word: Word) -> None:
        """Several sources report parts of this (ports, disks): readings of one instant add."""
        self._sums.add((subject, word))

    def bucket(self, subject: int, metric: str, at_s: float, *, upper: float, count: float) -> None:
        """One cumulative bucket of a histogram."""
        self._buckets[subject, metric].bucket(at_s, upper, count)

    def bucket_sum(self, subject: int, metric: str, at_s: float, total: float) -> None:
        """Sum of all values of a histogram so far."""
        self._buckets[subject, metric].total(at_s, total)

    def bucket_number(self, subject: int, metric: str, at_s: float, count: float) -> None:
        """How many values a histogram holds so far."""
        self._buckets[subject, metric].number(at_s, count)

    def span(self, about: Span) -> None:
        """A label that the source states."""
        self._spans.append(_clean(about))

    def allocation(self, about: Allocation) -> None:
        """A job that holds or asks for accelerators."""
        self._allocations.append(_clean(about))

    def quirk(self, what: str, where: str, done: str, *, n_cases: int = 1) -> None:
        """Something odd, and what was done about it."""
        odd = self._odd.setdefault(what, _Odd(done))
        odd.n_cases += n_cases
        if len(odd.places) < N_PLACES:
            odd.places.append(clean(where))

    def assume(self, assumption: Assumption) -> None:
        """A default that the source did not state; once."""
        self.assumptions.setdefault(assumption.what, assumption)

    # ── what comes of it ─────────────────────────────────────────────────────────────────────────

    def finish(self) -> Telemetry:
        """Everything that was said, in order of time."""
        self._leave_out_other_clocks()
        series = [self._series(*key, readings) for key, readings in self._samples.items()]
        retained = [one for one in series if one is not None]
        starts = [float(one.at_s[0]) for one in retained]
        histograms = [
            made
            for (subject, metric), buckets in self._buckets.items()
            if (made := buckets.histogram(metric, subject, self.quirk)) is not None
        ]
        starts += [float(one.at_s[0]) for one in histograms]
        return Telemetry(
            source=self.source,
            format=self.format_name,
            subjects=tuple(self._subjects),
            series=tuple(_merged(retained, self.quirk)),
            histograms=tuple(histograms),
            spans=tuple(sorted(self._spans, key=lambda span: (span.subject, span.begin_s))),
            allocations=tuple(self._allocations),
            quirks=tuple(
                Quirk(what=what, where="; ".join(odd.places), n_cases=odd.n_cases, done=odd.done)
                for what, odd in self._odd.items()
            ),
            sampling=self.sampling,
            is_dated=bool(starts) and min(starts) >= DATED_FROM_S,
            assumptions=tuple(self.assumptions.values()),
        )

    def _leave_out_other_clocks(self) -> None:
        """A few readings that lie years from all others come from a clock that was not set."""
        times = [reading[0] for found in self._samples.values() for reading in found]
        begin_s, end_s = _main_stretch(floats(times)) if times else (0.0, 0.0)
        n_left_out = 0
        for key, found in list(self._samples.items()):
            retained = [reading for reading in found if begin_s <= reading[0] <= end_s]
            n_left_out += len(found) - len(retained)
            self._samples[key] = retained
            if not retained:
                del self._samples[key]
        if n_left_out:
            where = f"all others lie between {begin_s:.0f} and {end_s:.0f} s"
            self.quirk(OTHER_CLOCK, where, "excluded", n_cases=n_left_out)

    def _series(
        self, subject: int, word: Word, readings: list[tuple[float, float]]
    ) -> Series | None:
        at_s = np.array([reading[0] for reading in readings])
        value = self._sound(word, np.array([reading[1] for reading in readings]))
        if (np.diff(at_s) < 0).any():
            self.quirk("rows out of order of time", word.metric, "put in order")
        order = np.argsort(at_s, kind="stable")
        at_s, value = at_s[order], value[order]
        at_s, value = self._one_each(at_s, value, is_sum=(subject, word) in self._sums)
        if word.is_counter:
            at_s, value = self._rate(word, at_s, value)
            if len(at_s) == 0:
                return None
        return Series(metric=word.metric, subject=subject, at_s=floats(at_s), value=floats(value))

    def _sound(self, word: Word, raw: Floats) -> Floats:
        """In base units; marks for "no value" and what no device can show are missing."""
        with np.errstate(over="ignore"):  # 1e300 of anything is impossible, and told below
            value = np.where(is_blank(raw), np.nan, raw * word.scale)
        if (n_blank := int(is_blank(raw).sum())) > 0:
            where = f"{word.metric} = {raw[is_blank(raw)][0]:.0f}"
            self.quirk("a mark for 'no value'", where, "read as missing", n_cases=n_blank)
        if word.is_counter:
            return floats(value)
        is_wrong = is_impossible(word.metric, value)
        if (n_wrong := int(is_wrong.sum())) > 0:
            where = f"{word.metric} = {value[is_wrong][0]:g}"
            self.quirk("impossible reading", where, "read as missing", n_cases=n_wrong)
        return floats(np.where(is_wrong, np.nan, value))

    def _one_each(self, at_s: Floats, value: Floats, *, is_sum: bool) -> tuple[Floats, Floats]:
        """One reading for each instant: the sum of parts, or the last word."""
        is_last = np.append(np.diff(at_s) > 0, True)
        if is_last.all():
            return at_s, value
        if is_sum:
            starts = np.flatnonzero(np.append(True, np.diff(at_s) > 0))
            return at_s[starts], floats(np.add.reduceat(value, starts))
        n_double = int((~is_last).sum())
        self.quirk("two readings of one instant", "", "the later one counts", n_cases=n_double)
        return at_s[is_last], value[is_last]

    def _rate(self, word: Word, at_s: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Increase per second from each sample to the next; a fall is a restart from zero."""
        is_given = np.isfinite(value)
        at_s, value = at_s[is_given], value[is_given]
        if len(at_s) < 2:
            self.quirk("a counter read once has no rate", word.metric, "excluded")
            return at_s[:0], value[:0]
        rise = np.diff(value)
        n_resets = int((rise < 0).sum())
        if n_resets:
            done = "counted on from zero"
            self.quirk("a counter was reset", word.metric, done, n_cases=n_resets)
        gained = np.where(rise < 0, value[1:], rise)
        return at_s[:-1], floats(gained / np.diff(at_s))


def _main_stretch(times: Floats) -> tuple[float, float]:
    """Begin and end of the stretch with most readings, where years without any lie between."""
    ordered = np.sort(times)
    cuts = np.flatnonzero(np.diff(ordered) > MAX_GAP_S) + 1
    stretches = np.split(ordered, cuts)
    longest = max(reversed(stretches), key=len)  # the later one of two that are equal
    return float(longest[0]), float(longest[-1])


def _clean(about: Named) -> Named:
    """A noun whose texts are on one line and hold nothing that a terminal obeys."""
    texts = {
        each.name: clean(value) if isinstance(value, str) else tuple(map(clean, value))
        for each in fields(about)
        if isinstance(value := getattr(about, each.name), str | tuple) and value
    }
    return replace(about, **texts)  # type: ignore[arg-type]


def _merged(series: list[Series], quirk: Callable[..., None]) -> list[Series]:
    """One series for each metric and subject: two generations of a name may stand together."""
    first: dict[tuple[str, int], Series] = {}
    for one in series:
        known = first.get((one.metric, one.subject))
        if known is None or len(one.at_s) > len(known.at_s):
            first[one.metric, one.subject] = one
        if known is not None:
            quirk("two names for one metric", one.metric, "the longer series counts")
    return list(first.values())


def is_blank(values: Floats) -> Mask:
    """Where there is a mark for "no value" rather than a value."""
    found = np.zeros(len(values), dtype=bool)
    for low, high in _BLANKS:
        found |= (values >= low) & (values < high)
    return found


def is_impossible(metric: str, values: Floats) -> Mask:
    """Where no device can be in this state, for a metric of the vocabulary; NaN is not wrong."""
    unit = next((u for u in ("bytes_per_s", *_MOST) if metric.endswith("_" + u)), "")
    least, most = (_LEAST.get(unit, 0.0), _MOST[unit]) if unit else (0.0, math.inf)
    return (values < least) | (values > most)


def _filled(
    below: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    filled = below.copy()
    filled[:, 0] = np.nan_to_num(filled[:, 0])
    for k in range(1, filled.shape[1]):
        is_gap = np.isnan(filled[:, k])
        filled[is_gap, k] = filled[is_gap, k - 1]
    return filled
