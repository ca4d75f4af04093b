"""The register of checks: which requirement, which command, and what is still missing."""

from collections.abc import Callable
from dataclasses import dataclass

from requirements.asking import Ask
from requirements.says import SAYS

Body = Callable[[Ask], None]


@dataclass(frozen=True)
class Check:
    """One executable statement about one requirement."""

    requirement: str  # R1 … R114
    command: str
    body: Body
    missing: str = ""  # what is not built yet: the check must fail until it is
    elsewhere: str = ""  # which other part of the project answers for it

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"{self.requirement}-{self.body.__name__}"

    @property
    def title(self) -> str:
        """What the check states, in words."""
        return self.body.__name__.replace("_", " ")


CHECKS: list[Check] = []


def check(
    requirement: str, command: str, *, missing: str = "", elsewhere: str = ""
) -> Callable[[Body], Body]:
    """Register a function as a check of this requirement."""

    def register(body: Body) -> Body:
        assert requirement in SAYS, requirement
        CHECKS.append(Check(requirement, command, body, missing, elsewhere))
        return body

    return register


def checks_of(requirement: str) -> list[Check]:
    """All checks of one requirement, in the order in which they were written."""
    return [one for one in CHECKS if one.requirement == requirement]


def verdict(requirement: str) -> str:
    """works, partly, not yet, or elsewhere; strict expected failures keep this true."""
    found = checks_of(requirement)
    here = [one for one in found if not one.elsewhere]
    if not here:
        return "elsewhere" if found else "no check"
    n_missing = sum(bool(one.missing) for one in here)
    if n_missing == 0:
        return "works"
    return "partly" if n_missing < len(here) else "not yet"
