"""Phrases of hours: peaks, days and nights, and how much there is room for."""

import re
from typing import NamedTuple

from gpuplan.inputs.words.amounts import (
    KIND_OF,
    PEOPLE,
    PIECES,
    REQUESTS,
    rated,
    unit_of,
)
from gpuplan.inputs.words.phrases import Facts, Phrase, Rule, means
from gpuplan.units import HOUR


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


def _peak_and_mean(phrase: Phrase) -> Facts:
    """The rate of the peak, and how many times the mean it is."""
    short = phrase.get("short")
    period = {"s": 1.0, "m": 60.0, "h": HOUR}[short[-1]] if short else phrase.period_s()
    ratio = round(max(1.0, phrase.number() / max(phrase.number("m"), 1e-9)), 6)
    return {
        "demand.peak_to_mean": ratio,
        **rated(unit_of(phrase), phrase.number() / period, period),
    }


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


_CLOCK = r"(?:\d{1,2}:\d\d(?:\s*[ap]\.?m\b\.?)?|\d{1,2}\s*[ap]\.?m\b\.?|noon|midnight)"
_AT_ONCE = r"concurrent(?:ly)?|simultaneous(?:ly)?|parallel|at\s+once|at\s+(?:the\s+same|a)\s+time"
HOURS = (
    Rule(
        r"\b(?:how\s+(?:many|much)|what(?:'s|\s+is)?(?:\s+the)?|as\s+many|(?:the\s+)?max(?:imum)?"
        r"(?:\s+(?:number|amount)\s+of)?|(?:the\s+)?(?:most|largest|highest)(?:\s+number\s+of)?)\s+"
        rf"(?:(?P<at_once>{_AT_ONCE})\s+|(?:peak|daily|active|coding|chat|of|our|more)\s+)*"
        rf"(?:(?P<people>{PEOPLE}|conversations|sessions)|(?P<agents>agents)|{REQUESTS}"
        r"|(?P<tokens>(?:output\s+)?tokens?)|(?P<streams>streams|cameras|feeds|channels)|load|throughput|traffic|(?:request\s+)?rate|rps|qps)\b"
        rf"(?:\s*(?:/|per|an?)\s*(?:s|sec|seconds?|(?P<day>day))\b)?(?:\s+(?P<at_once2>{_AT_ONCE})\b)?"
        r"(?:\s+as\s+possible)?",
        _largest,
    ),
    means(
        r"\b(?:price|cost|\$)s?\s*(?:per|/)\s*(?:1\s*)?(?:million|m|mio|k|thousand|1k|1000)?\s*(?:output\s+)?"
        r"(?:tok(?:en)?s?|mtok)\b",
        price_of_tokens="demand.output_tokens_per_s",
    ),
    means(
        r"\bwhat\s+(?:can|could|would|will|do|does)\s+(?:they|it|we|i|this|that|these|those|my|our|the)\s+"
        r"(?:(?:servers?|nodes?|boxes|cluster|machines?|hardware|fleet|gpus?)\s+)?"
        r"(?:carry|handle|serve|sustain|support)\b",
        largest="demand.requests_per_s",
    ),
    Rule(
        r"(?P<kept>\b(?:we|i)\s+(?:only\s+|just\s+)?have\s+){t}(?:\s+(?:of\s+)?time)?(?:\s*(?:,|and|plus))?",
        lambda p: {"deadline_s": p.seconds()},
    ),
    Rule(
        rf"{{n}}\s*{KIND_OF}(?:(?:{PIECES})\s*)?{{per}}\s*(?:at\s+(?:the\s+)?)?peak\s*(?:,|;|/|and|but|with)*\s*"
        rf"{{m}}\s*(?:{REQUESTS}\s*)?(?:(?:/|per|an?)\s*(?:s|second|h|hour|min|minute|day)\s*)?"
        r"(?:on\s+)?(?:average|mean|avg)\b",
        _peak_and_mean,
    ),
    Rule(
        rf"(?:\bpeak\s*(?:of|is|at|:)?\s*)?{{n}}\s*{KIND_OF}(?:(?:(?:{PIECES})\s*)?{{per}}|(?P<short>[rq]p[smh]))\s*"
        rf"(?:at\s+(?:the\s+)?)?(?:peak)?\s*(?:,|;|/|and|but|with)*\s*(?:an?\s+)?(?:average|mean|avg)\s*(?:of|is|at|:)?\s*"
        rf"{{m}}(?:\s*(?:{REQUESTS}\s*)?(?:/|per|an?)\s*(?:s|sec|second|h|hour|min|minute|day)\b|\s*[rq]p[smh]\b)?",
        _peak_and_mean,
    ),
    Rule(
        rf"{{n}}\s*{KIND_OF}(?:(?:{PIECES})\s*)?{{per}}\s*(?:by|during\s+the|in\s+the|at)\s+(?:day(?:time)?|noon|midday|(?:the\s+)?peak)"
        rf"\s*(?:,|;|and|but)*\s*{{m}}(?:\s*{REQUESTS}?\s*(?:/|per|an?)?\s*(?:s|second|h|hour|min|minute)?)"
        r"\s+(?:by|at|during\s+the|in\s+the)\s+night\b",
        _day_and_night,
    ),
    Rule(
        rf"\b(?:day(?:time)?|peak)\s*(?:of|is|at|[:=])?\s*{{n}}\s*(?:(?:{PIECES}\s*)?{{per}}|(?P<short>[rq]ps))\s*(?:,|;|/|and)*\s*"
        rf"(?:at\s+)?night(?:time)?\s*[:=]?\s*{{m}}\s*(?:{REQUESTS}?\s*(?:/|per)\s*s(?:econd)?|[rq]ps)?",
        _day_and_night,
    ),
    Rule(
        rf"{{m}}\s*(?:(?:{REQUESTS})\s*(?:/|per|an?)\s*(?P<long>s|sec|second|min|minute|h|hour)\b|[rq]p[smh])\s*"
        r"(?:,|;|with|and|but)*\s*(?:in\s+)?(?:burst|peak|spik)(?:s|e|es|ing)?\s*(?:of|to|at|up\s+to|:)?\s*"
        rf"{{n}}\s*(?:(?:{REQUESTS})?\s*{{per}}|(?P<short>[rq]p[smh]))",
        _peak_and_mean,
    ),
    means(
        r"\b(?:24\s*/\s*7|around the clock|flat load|constant load)", **{"demand.peak_to_mean": 1.0}
    ),
    Rule(
        rf"(?:(?:\b(?:in|during|only|at)\s+)*(?:business|office|working)\s+hours(?:\s+only)?\s*[,:(]*\s*)?"
        rf"(?:\b(?:between|from)\s+)?(?P<start>{_CLOCK}|(?<![\w.,:])\d{{1,2}})\s*"
        rf"(?:and|to|-|–|until|till)\s*(?P<end>{_CLOCK})(?:\s+(?:only|local\s+time|utc))*",
        lambda p: {"hours": Hours(_hour(p.get("start")), _hour(p.get("end")))},
    ),
    means(r"\b(?:by|during\s+the|in\s+the)\s+day(?:time)?\b", hours=Hours(8, 20)),
    means(
        r"\b(?:in|during|only\s+in)?\s*(?:business|office|working)\s+hours(?:\s+only)?\b",
        hours=Hours(9, 18),
    ),
)
