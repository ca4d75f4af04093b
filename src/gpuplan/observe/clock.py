"""Times as sources write them, in seconds."""

from datetime import UTC, datetime

from gpuplan.domain.provenance import Assumption
from gpuplan.observe.collect import Collector

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
        return _date_s(text, collector)
    # 1e11 seconds lie in the year 5138; so many are milliseconds, or finer still.
    for limit, scale in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)):
        if abs(number) > limit:
            return number * scale
    return number


def _date_s(text: str, collector: Collector) -> float | None:
    try:
        moment = datetime.fromisoformat(text.replace("/", "-").replace(" UTC", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        collector.assume(NO_ZONE)
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
