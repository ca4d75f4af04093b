"""Where a number comes from, and how far to trust it."""

from dataclasses import replace
from typing import Literal

from gpuplan.domain.noun import dataclass

# given: the user said so.
Tier = Literal["given", "measured", "fitted", "simulated", "estimated", "assumed"]
SourceKind = Literal["measured", "vendor", "market", "estimate", "computed", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A publication that facts rest on."""

    key: str
    title: str
    publisher: str
    url: str
    retrieved: str  # ISO date
    licence: str
    kind: SourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A value that the user did not give, and how to give it."""

    what: str
    value: str
    why: str
    change: str  # the flag or key that changes it
    source: str = ""


def assume(what: str, value: str, why: str, change: str, source: str = "") -> Assumption:
    """The assumption in the order in which it is read: what is assumed, how much, and why."""
    return Assumption(what=what, value=value, why=why, change=change, source=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A catalog fact that the user's overlay replaced or added."""

    item: str
    quantity: str
    catalog_value: str  # empty where the catalog had none
    overlay_value: str
    overlay: str  # the file that says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A predicted number with its 80 % range and the tier of its evidence."""

    value: float
    low: float
    high: float
    tier: Tier
    sources: tuple[str, ...] = ()

    def scaled(self, factor: float) -> "Estimate":
        """The estimate in another unit, or of so many."""
        return replace(
            self, value=self.value * factor, low=self.low * factor, high=self.high * factor
        )

    def rate(self, amount: float) -> "Estimate":
        """The rate of so much in this time: the longest time is the lowest rate."""
        return replace(
            self, value=amount / self.value, low=amount / self.high, high=amount / self.low
        )
