"""Axes of drawings: from values to pixels, and round numbers to write beside them."""

from math import floor, log10
from typing import NamedTuple

N_TICKS = 5


class Axis(NamedTuple):
    """A scale from values to pixels."""

    low: float
    high: float
    start_px: float
    end_px: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start_px + share * (self.end_px - self.start_px)


def ticks(low: float, high: float) -> list[float]:
    """A handful of round values between two."""
    rough = (high - low) / N_TICKS
    scale = 10 ** floor(log10(rough))
    step = next(scale * nice for nice in (1, 2, 2.5, 5, 10) if scale * nice >= rough)
    first = floor(low / step)
    values = [(first + n) * step for n in range(2 * N_TICKS + 3)]
    return [value for value in values if low - step * 1e-9 <= value <= high + step * 1e-9]


def tick_label(value: float) -> str:
    """A round number in few characters."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if abs(value) >= 1e4 else f"{value:.6g}"
