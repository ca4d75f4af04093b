"""What an independent checker found about a plan: each claim beside a number of its own."""

from typing import Literal

from gpuplan.domain.noun import dataclass
from gpuplan.domain.result import Result

Relation = Literal["=", "<=", ">="]
Amount = float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One claim of a plan; `claimed relation found` must hold within the tolerance."""

    name: str
    claimed: Amount
    relation: Relation
    found: Amount
    tolerance_frac: float  # of what was found, by which the claim may differ
    unit: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(Result):
    """A plan file held against its own figures."""

    name: str
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """Checks whose two numbers disagree."""
        return tuple(check for check in self.checks if not check.ok)
