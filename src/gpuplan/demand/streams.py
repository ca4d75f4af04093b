"""Random streams, one per cause, and the check of figures that every generator begins with."""

import numpy as np

from gpuplan.errors import InputError, one

# Append only: the place of a cause is its seed.
CAUSES = (
    "arrivals",
    "phases",
    "input lengths",
    "output lengths",
    "turns",
    "think",
    "profile",
    "shift",
    "thinning",
    "clients",
    "rows",
    "priority",
    "recorded lengths",
    "first requests",
    "adapters",
)


def stream(seed: int, cause: str, *, member: int | None = None) -> np.random.Generator:
    """The generator of one cause, or of one member (a client, a copy) of that cause.

    The same as the cause's place in `SeedSequence(seed).spawn(...)`, reached directly.
    """
    place = CAUSES.index(cause)
    key = (place,) if member is None else (place, member)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def require_positive(source: str, **figures: float) -> None:
    """Raise InputError unless every figure is above 0 and finite."""
    for name, value in figures.items():
        if not (np.isfinite(value) and value > 0):
            where, what = name.replace("_", " "), f"got {value:g}"
            raise one(InputError, source, where, what, "must be above 0, and finite")
