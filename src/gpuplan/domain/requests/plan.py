"""What is asked of the planner, as typed."""

from collections.abc import Mapping
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gpuplan.domain.noun import dataclass
from gpuplan.domain.provenance import Assumption

# What a description asks: is hardware enough, how long, how fast, at what cost, which.
Question = Literal["", "enough", "duration", "speed", "cost", "choice"]


class PlanBasis(NamedTuple):
    """What the speeds of a plan rest on, and how they are tried."""

    calibration: Path | None = None  # of the user's site; None: that of the package
    is_replay_full: bool = False  # every request of the day or week, however many
    engines: tuple[str, ...] = ()  # to choose from; empty: the one of the scenario
    is_brief: bool = False  # the choice with its cost range and odds: no alternatives, no charts
    is_choice_alone: bool = False  # what can be chosen and nothing that is only shown beside it
    is_largest: bool | None = None  # the largest load instead of the stated one; None: as words say
    largest: str = ""  # what a search for the largest load found, to be told with its plan


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A scenario file or a line of words, flags over it, and how to plan."""

    target: str  # scenario.yaml, or "Llama-3.3-70B, 6000 users, chat"
    today: date  # against which the age of prices is judged
    given: Mapping[str, Any] = field(default_factory=dict)  # flags; None is what was left out
    changes: tuple[str, ...] = ()  # key=value, set before reading
    seed: int = 0
    n_samples: int = 200  # of uncertain inputs; 0: none
    min_probability_frac: float | None = None  # of meeting all SLOs; None: as the scenario says
    is_check: bool = False  # limits of money, power and count are judged after, not kept to
    overlays: tuple[Path, ...] = ()
    store: Path | None = None
    basis: PlanBasis = PlanBasis()
    tree: Mapping[str, Any] | None = (
        None  # the scenario itself, as written; then the target names it
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """A key of the scenario, its value, and the words that it was read from."""

    key: str
    value: Any
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a description in words amounts to: the scenario, and what that rests on."""

    tree: Mapping[str, Any]
    understood: tuple[Understood, ...]
    assumptions: tuple[Assumption, ...]
    asks_largest: bool = False  # how much hardware carries, not what a load needs
    question: Question = ""  # that the first sentence of the answer is to answer
