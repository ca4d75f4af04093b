"""Phrases of hours: peaks, days and nights, and how much there is room for."""

import re
from collections.abc import Callable
from typing import NamedTuple

from gpuplan.inputs.words.amounts import Rate, rated, unit_of
from gpuplan.inputs.words.phrases import Facts, Phrase
from gpuplan.inputs.words.tables import named, rules_of
from gpuplan.units import DAY, HOUR, MINUTE


class Hours(NamedTuple):
    """Hours of the day, from one to before the other."""

    start: int
    end: int

    def holds(self, hour: int) -> bool:
        """Whether an hour is one of them; those of a night go over midnight."""
        is_late, is_early = hour >= self.start, hour < self.end
        return is_late and is_early if self.start < self.end else is_late or is_early

    @property
    def seconds(self) -> float:
        """How long they last."""
        return ((self.end - self.start) % 24 or 24) * HOUR


def _day_and_night(phrase: Phrase) -> Facts:
    """The rate of the day, and the share of it that is left at night."""
    period = 1.0 if phrase.get("short") else phrase.period_s()
    share = round(min(1.0, phrase.number("m") / max(phrase.number(), 1e-9)), 6)
    return {"night_frac": share, **rated(unit_of(phrase), phrase.number() / period, period)}


def _labelled(field: str) -> Callable[[Phrase], Facts]:
    """A rate that is said to be the mean or the peak."""

    def make(phrase: Phrase) -> Facts:
        short = phrase.get("short")
        period = (
            {"s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY}[short[-1]] if short else phrase.period_s()
        )
        unit = unit_of(phrase)
        return {f"{field}.{unit}": Rate(unit, phrase.number() / period, period)}

    return make


def _pair(phrase: Phrase) -> Facts:
    """A rate of the peak and a mean, one of them without its unit."""
    if phrase.get("peak"):
        return {**_labelled("peak")(phrase), "demand.peak_to_mean": _ratio(phrase)}
    [(_, rate)] = _labelled("peak")(phrase).items()
    ratio = phrase.number("m") / max(phrase.number(), 1e-9)
    return {
        f"peak.{rate.unit}": rate.times(ratio),
        "demand.peak_to_mean": round(max(1.0, ratio), 6),
    }


def _ratio(phrase: Phrase) -> float:
    return round(max(1.0, phrase.number() / max(phrase.number("m"), 1e-9)), 6)


def _largest(phrase: Phrase) -> Facts:
    """How much hardware carries: of whom or what, the largest number is asked for."""
    if phrase.get("streams"):
        return {"largest": "demand.requests_per_s", "streams": True}
    if phrase.get("tokens"):
        return {"largest": "demand.output_tokens_per_s"}
    if phrase.get("agents"):
        return {"largest": "demand.concurrent_requests", "use": "agents"}
    if phrase.get("people"):
        is_at_once = phrase.get("at_once") or phrase.get("at_once2")
        return {"largest": "demand.concurrent_users" if is_at_once else "demand.users"}
    if phrase.get("at_once") or phrase.get("at_once2"):
        return {"largest": "demand.concurrent_requests"}
    return {"largest": "demand.requests_per_day" if phrase.get("day") else "demand.requests_per_s"}


def _hour(text: str) -> int:
    """The hour of a clock: 22:00, 10 pm, noon."""
    if text in ("noon", "midnight"):
        return 12 if text == "noon" else 0
    hour = int(re.match(r"\d+", text)[0])  # type: ignore[index]
    return hour % 12 + 12 * ("p" in text) if "m" in text else hour % 24


def _share_of_hours(phrase: Phrase) -> Facts:
    """A share of the day's load within hours, and what the others have of the peak."""
    hours = Hours(_hour(phrase.get("start")), _hour(phrase.get("end")))
    n_hours, share = hours.seconds / HOUR, min(1.0, phrase.number() / 100)
    quiet = (1.0 - share) / max(1.0, 24 - n_hours) / max(share / n_hours, 1e-9)
    return {"hours": hours, "night_frac": round(min(1.0, quiet), 6)}


def _hours(phrase: Phrase) -> Facts:
    return {"hours": Hours(_hour(phrase.get("start")), _hour(phrase.get("end")))}


HOURS = rules_of(
    "hours",
    named(
        *(_day_and_night, _largest, _share_of_hours, _pair, _hours),
        mean=_labelled("mean"),
        peak=_labelled("peak"),
        peak_and_mean=lambda p: {**_labelled("peak")(p), "demand.peak_to_mean": _ratio(p)},
        by_day=lambda _: {"hours": Hours(8, 20)},
        office_hours=lambda _: {"hours": Hours(9, 18)},
    ),
)
