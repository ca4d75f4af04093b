"""Numbers for people: few digits, the unit always beside them."""

from gpuplan.units import GIB, KB, MIB

BILLION = 1e9
MILLION = 1e6


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
