"""Times as sources write them, in seconds."""

import re
from contextlib import suppress
from datetime import UTC, datetime

from gpuplan.domain.provenance import Assumption
from gpuplan.observe.collect import Collector
from gpuplan.observe.guard import is_time
from gpuplan.units import HOUR, MINUTE

OF_DAY = re.compile(r"^(\d{1,2}):([0-5]\d)(?::([0-5]\d))?$")
MONTHS, MONTH_LENGTH = ("%Y-%m", "%m-%Y", "%b %Y", "%B %Y", "%b-%Y"), len("September 2026")

NO_ZONE = Assumption(
    what="time zone",
    value="UTC",
    why="the source writes times without one",
    change="write times with an offset, such as +02:00",
)


def seconds(text: str, collector: Collector) -> float | None:
    """Seconds since 1970, or since a start of the source's own; None where it is no time."""
    text = text.strip().strip('"')
    try:
        number = float(text)
    except ValueError:
        of_day_s = time_of_day_s(text)
        return _date_s(text, collector) if of_day_s is None else of_day_s
    # 1e11 seconds lie in the year 5138; so many are milliseconds, or finer still.
    for limit, scale in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)):
        if abs(number) > limit:
            number *= scale
            break
    return number if is_time(number) else None


def time_of_day_s(text: str) -> float | None:
    """Seconds since midnight of a time such as 10:05 or 10:05:30; None where it is none."""
    found = OF_DAY.match(text)
    if found is None:
        return None
    hour, minute, second = (float(part or 0) for part in found.groups())
    return hour * HOUR + minute * MINUTE + second


def dated_s(text: str) -> float | None:
    """Seconds since 1970 of a date with a time, in UTC where no zone is written; None: no date."""
    moment = _moment(text)
    return None if moment is None else (moment.replace(tzinfo=moment.tzinfo or UTC)).timestamp()


def _moment(text: str) -> datetime | None:
    """A date with or without a time, or the first of a month: 2026-03, Mar 2026, March 2026."""
    text = text.replace("/", "-").replace(" UTC", "+00:00")
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    for form in MONTHS if len(text) <= MONTH_LENGTH else ():
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None


def _date_s(text: str, collector: Collector) -> float | None:
    moment = _moment(text)
    if moment is not None and moment.tzinfo is None:
        collector.assume(NO_ZONE)
    return dated_s(text)
