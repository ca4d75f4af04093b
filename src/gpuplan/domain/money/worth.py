"""Answers about money: when it comes back, from which use on owning pays, what a unit costs."""

from typing import Literal

from gpuplan.domain.money.statement import Statement
from gpuplan.domain.noun import dataclass

TokenKind = Literal["input", "cached", "output"]
TokenRule = Literal["accelerator time", "price ratio", "token count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """When an outlay has come back; None is never within the time compared."""

    simple_month: int | None
    discounted_month: int | None
    npv_gain_usd: float  # of the dearer start over the other, below zero it is a loss


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where owning and renting cost the same."""

    utilization_ratio: float  # used hours over all hours; above 1 renting always wins
    own_usd_per_available_h: float  # one accelerator, used or not
    rent_usd_per_used_h: float
    is_reachable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BookYear:
    """One year in the books, at its end."""

    year: int
    expense_cents: int  # all but purchase and residual
    depreciation_cents: int
    book_value_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens that were served while the bill ran."""

    n_input: float  # read by prefill: not found in a cache
    n_cached: float
    n_output: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWeights:
    """What a token of each kind weighs in the bill; only their ratios matter."""

    input_ratio: float
    cached_ratio: float
    output_ratio: float
    rule: TokenRule


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCost:
    """One kind of token: its share of the bill, and what a token then costs."""

    kind: TokenKind
    n_tokens: float
    cost_cents: int
    usd_per_token: float | None  # None: no such tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCosts:
    """A bill shared out over tokens; the parts add up to it."""

    rule: TokenRule
    rule_text: str
    basis: Literal["paid hours"]
    parts: tuple[TokenCost, ...]

    @property
    def total_cents(self) -> int:
        """The whole bill."""
        return sum(part.cost_cents for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadBlock:
    """A stretch of time in which so many nodes are needed."""

    n_nodes: int
    n_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOrBurst:
    """How many to own when the rest is rented at the peaks."""

    n_owned: int
    own_usd: float
    burst_usd: float
    break_even_frac: float  # share of hours above which a node is worth owning
    usd_by_owned: tuple[float, ...]  # total for owning 0, 1, 2 …: the curve of the chart

    @property
    def total_usd(self) -> float:
        """Owned and rented together."""
        return self.own_usd + self.burst_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamCost:
    """One team's part of a shared bill."""

    team: str
    used_cents: int  # for hours in which its accelerators worked
    idle_cents: int  # for hours allocated to it and left idle
    shared_cents: int  # its part of what nobody had allocated

    @property
    def total_cents(self) -> int:
        """All three."""
        return self.used_cents + self.idle_cents + self.shared_cents


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipCost:
    """The cost over life of owning so many nodes and renting the rest."""

    name: str
    n_owned: int
    statement: Statement
    npv_usd: float
    payback: Payback | None  # against renting all; None where nothing is owned
