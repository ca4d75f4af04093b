"""Samples in any order in, series in order out; everything odd is counted on the way."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.telemetry.observation import (
    Allocation,
    Quirk,
    Sampling,
    Series,
    Span,
    Subject,
    Telemetry,
)
from gpuplan.observe.garbage import is_blank, is_impossible
from gpuplan.observe.guard import clean
from gpuplan.observe.histograms import Buckets
from gpuplan.observe.names import Word

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
        kept = [one for one in series if one is not None]
        starts = [float(one.at_s[0]) for one in kept]
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
            series=tuple(_merged(kept, self.quirk)),
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
            kept = [reading for reading in found if begin_s <= reading[0] <= end_s]
            n_left_out += len(found) - len(kept)
            self._samples[key] = kept
            if not kept:
                del self._samples[key]
        if n_left_out:
            where = f"all others lie between {begin_s:.0f} and {end_s:.0f} s"
            self.quirk(OTHER_CLOCK, where, "left out", n_cases=n_left_out)

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
            self.quirk("a counter read once has no rate", word.metric, "left out")
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
