"""How figures look: few digits, the unit always beside them."""

from gpuplan.domain.plan.answer import ChosenPlan
from gpuplan.domain.provenance import Estimate
from gpuplan.units import DAY, GIB, HOUR, KB, KW, MIB, MINUTE, MONTH, YEAR

BILLION = 1e9
MILLION = 1e6
SURE_FRAC = 0.995  # samples are too few to tell more from certainty
UNUSUAL = {"gaudi2": "Gaudi2", "gaudi3": "Gaudi3", "ada": "Ada", "xeon": "Xeon", "epyc": "EPYC"}


def gib(n_bytes: float) -> str:
    """Memory, to a hundredth of a GiB."""
    return f"{n_bytes / GIB:,.2f} GiB"


def small_bytes(n_bytes: float) -> str:
    """A few bytes to some MiB, exactly where it is a whole number of bytes."""
    if n_bytes < 100 * KB:
        return f"{n_bytes:,.0f} B"
    if n_bytes < MIB:
        return f"{n_bytes / 1024:,.1f} KiB"
    return f"{n_bytes / MIB:,.2f} MiB" if n_bytes < GIB else gib(n_bytes)


def params(n: float) -> str:
    """A parameter count in billions or millions."""
    return f"{n / BILLION:,.2f} B" if n >= BILLION else f"{n / MILLION:,.1f} M"


def count(n: float) -> str:
    """A whole number with separators."""
    return f"{n:,.0f}"


def frac(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.1f} %"


def usd(amount: float) -> str:
    """Whole dollars; cents where the sum is small."""
    sign = "−" if amount < 0 else ""
    return f"{sign}${abs(amount):,.0f}" if abs(amount) >= 100 else f"{sign}${abs(amount):,.2f}"


def usd_range(found: Estimate) -> str:
    """The sum with its 80 % range; one figure where nothing is uncertain."""
    low, high = usd(found.low), usd(found.high)
    return usd(found.value) + ("" if low == high else f" ({low} … {high})")


def kw(power_w: float) -> str:
    """Power."""
    return f"{power_w / KW:,.1f} kW" if power_w >= KW else f"{power_w:,.0f} W"


def peak_kw(plan: ChosenPlan) -> str:
    """The peak at the plug; unknown where a maker publishes no limit."""
    return "unknown" if plan.power_w is None else kw(plan.power_w.value)


def span(seconds: float) -> str:
    """A latency, or a span of days."""
    if seconds < 1:
        return f"{seconds * 1e3:,.1f} ms"
    if seconds < 5 * MINUTE:
        return f"{seconds:,.2f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:,.1f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:,.1f} h"
    years, months = seconds / YEAR, seconds / MONTH
    if years < 2 and months > 3 and abs(months - round(months)) < 0.01:
        return f"{months:.0f} months"
    return f"{seconds / DAY:,.1f} days" if years < 2 else f"{years:,.3g} years"


def signed_usd(amount: float) -> str:
    """A difference."""
    return f"+{usd(amount)}" if amount >= 0 else usd(amount)


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f} %"


def chance(share: float) -> str:
    """A probability in whole percent: nothing that is sampled is certain."""
    return "> 99 %" if share >= SURE_FRAC else percent(share)


def plural(n: int, noun: str) -> str:
    """1 replica, 3 replicas."""
    return f"{count(n)} {noun}" + ("" if n == 1 else "s")


def accelerator_name(identifier: str) -> str:
    """The catalog's id as people write it: H100 SXM for h100-sxm, TPU v5p for tpu-v5p."""
    words = identifier.split("-")
    return " ".join(
        w if w[:1] == "v" and w[1:2].isdigit() else UNUSUAL.get(w, w.upper()) for w in words
    )


def three(figure: float) -> str:
    """Three digits: more would claim more than is known."""
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.3g}"


def whole(number: float) -> float | int:
    """A number of things as an integer, where it is one."""
    return int(number) if float(number).is_integer() else number
