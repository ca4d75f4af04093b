"""Sums, powers and spans of time for people."""

from gpuplan.domain.provenance import Estimate
from gpuplan.units import DAY, HOUR, KW, MINUTE


def usd(amount: float) -> str:
    """Whole dollars; cents where the sum is small."""
    sign = "−" if amount < 0 else ""
    return f"{sign}${abs(amount):,.0f}" if abs(amount) >= 100 else f"{sign}${abs(amount):,.2f}"


def usd_range(found: Estimate) -> str:
    """The sum with its 80 % range; one figure where nothing is uncertain."""
    if found.low == found.high:
        return usd(found.value)
    return f"{usd(found.value)} ({usd(found.low)} … {usd(found.high)})"


def kw(power_w: float) -> str:
    """Power."""
    return f"{power_w / KW:,.1f} kW" if power_w >= KW else f"{power_w:,.0f} W"


def span(seconds: float) -> str:
    """A latency, or a span of days."""
    if seconds < 1:
        return f"{seconds * 1e3:,.1f} ms"
    if seconds < 5 * MINUTE:
        return f"{seconds:,.2f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:,.1f} min"
    return f"{seconds / HOUR:,.1f} h" if seconds < 2 * DAY else f"{seconds / DAY:,.1f} days"


def signed_usd(amount: float) -> str:
    """A difference."""
    return f"+{usd(amount)}" if amount >= 0 else usd(amount)
