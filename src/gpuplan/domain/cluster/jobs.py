"""Jobs as columns: what was asked for and when."""

from dataclasses import field, fields, replace
from typing import Any, TypeVar

import numpy as np

from gpuplan.domain.columns import Floats, Ints
from gpuplan.domain.noun import dataclass

ANY = -1  # no GPU type, no MIG profile, no scaling curve
# What a job has whose stream lacks the column.
DEFAULTS = {"accelerator": ANY, "share_frac": 1.0, "profile": ANY, "curve": ANY, "n_least": 1}
DEFAULTS |= {"n_most": 1, "deadline_s": 1e300, "limit_s": np.inf}
Columns = TypeVar("Columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNeeds:
    """What jobs ask for beside GPUs; an empty column is the same for all: nothing special."""

    accelerator: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # into names, or ANY
    accelerator_names: tuple[str, ...] = ()
    share_frac: Floats = field(default_factory=lambda: np.empty(0))  # of one GPU; 1: whole ones
    profile: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # into names, or ANY
    profile_names: tuple[str, ...] = ()
    n_cpus: Floats = field(default_factory=lambda: np.empty(0))  # of the whole job
    ram_bytes: Floats = field(default_factory=lambda: np.empty(0))
    level: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # 1: one rack, 2: one zone


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerms:
    """How jobs stand to each other and to interruption; empty columns as above."""

    priority: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    deadline_s: Floats = field(default_factory=lambda: np.empty(0))
    limit_s: Floats = field(default_factory=lambda: np.empty(0))  # what the scheduler knows
    checkpoint_s: Floats = field(default_factory=lambda: np.empty(0))  # interval; 0: none
    restart_s: Floats = field(default_factory=lambda: np.empty(0))
    n_least: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # GPUs, elastic jobs
    n_most: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    curve: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # into `curves`, or ANY
    curves: tuple[Floats, ...] = ()  # speed by number of GPUs, from 0 on
    is_fixed: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # never preempted


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """A stream of jobs in order of submission; times from the start of the trace."""

    arrive_s: Floats
    duration_s: Floats  # at the GPUs that were asked for
    n_accelerators: Ints
    team: Ints  # into `team_names`
    team_names: tuple[str, ...]
    needs: JobNeeds = field(default_factory=JobNeeds)
    terms: JobTerms = field(default_factory=JobTerms)
    week_s: float = 0.0  # where in the week 0 s lies; Monday 0:00 is 0
    remarks: tuple[str, ...] = ()  # what was passed over in reading

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.arrive_s)

    @property
    def span_s(self) -> float:
        """From the first submission to the last."""
        return float(self.arrive_s[-1] - self.arrive_s[0]) if len(self) else 0.0


def column(values: Floats | Ints, n: int, default: float) -> Floats:
    """The column, or the default for every job where none was given."""
    return np.full(n, default) if len(values) == 0 else np.asarray(values, dtype=np.float64)


def at_places(columns: Columns, which: Ints) -> Columns:
    """Needs, terms or jobs at these places, in this order; empty columns stay empty."""
    changed: dict[str, Any] = {}
    for one in fields(columns):  # type: ignore[arg-type]
        value = getattr(columns, one.name)
        if isinstance(value, np.ndarray) and len(value):
            changed[one.name] = value[which]
    made: Columns = replace(columns, **changed)  # type: ignore[type-var]
    return made


def joined(first: Columns, second: Columns, sizes: tuple[int, int]) -> Columns:
    """Columns of two streams, one after the other; what one lacks is filled with its default."""
    changed: dict[str, Any] = {}
    for one in fields(first):  # type: ignore[arg-type]
        a, b = getattr(first, one.name), getattr(second, one.name)
        if isinstance(a, np.ndarray) and (len(a) or len(b)):
            default = DEFAULTS.get(one.name, 0)
            parts = [column(a, sizes[0], default), column(b, sizes[1], default)]
            changed[one.name] = np.concatenate(parts).astype(a.dtype)
    made: Columns = replace(first, **changed)  # type: ignore[type-var]
    return made
