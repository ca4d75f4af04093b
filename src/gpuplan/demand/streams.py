"""Chance, one stream per cause: what one cause draws never moves what another draws."""

import numpy as np

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
    "urgency",
    "recorded lengths",
)


def stream(seed: int, cause: str, *, member: int | None = None) -> np.random.Generator:
    """The generator of one cause, or of one member (a client, a copy) of that cause.

    The same as the cause's place in `SeedSequence(seed).spawn(...)`, reached directly.
    """
    place = CAUSES.index(cause)
    key = (place,) if member is None else (place, member)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
