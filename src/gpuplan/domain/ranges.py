"""A number that is not known exactly."""

from collections.abc import Iterable

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Low, middle and high value; the unit is in the name of the field that holds it."""

    low: float
    mid: float
    high: float

    @property
    def is_exact(self) -> bool:
        """The user gave one number."""
        return self.low == self.high

    def times(self, factor: float) -> "Range":
        """The same range in another unit."""
        return Range(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)


def exactly(value: float) -> Range:
    """A known number as a range."""
    return Range(low=value, mid=value, high=value)


def total(parts: Iterable[Range]) -> Range:
    """The sum of ranges: all low, all middle, all high values."""
    retained = list(parts)
    return Range(
        low=sum(p.low for p in retained),
        mid=sum(p.mid for p in retained),
        high=sum(p.high for p in retained),
    )
