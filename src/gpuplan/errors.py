"""Every error a user can see. Each knows the exit code that it ends the program with."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple


class Problem(NamedTuple):
    """One thing to mend: where it is, what is wrong, what would be right."""

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}"


class PlannerError(Exception):
    """Base of all errors raised on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{source}: {len(self.problems)} to mend\n{lines}")

    def __reduce__(self) -> tuple[type["PlannerError"], tuple[str, tuple[Problem, ...]]]:
        """Made again from its parts: an error of another process arrives whole."""
        return type(self), (self.source, self.problems)


class InputError(PlannerError):
    """The request is wrong. Holds every problem found, not the first."""

    exit_code = 2


class InfeasibleError(PlannerError):
    """The request is right, and no plan meets it."""

    exit_code = 3


class SolverError(PlannerError):
    """No answer, or no proof of one, within the limits given to the solver."""


class ViolationError(PlannerError):
    """A limit that the user set is broken."""

    exit_code = 4


class CatalogError(PlannerError):
    """Data is missing, stale or unsound."""

    exit_code = 5


class DriftError(PlannerError):
    """What runs has moved away from the plan."""

    exit_code = 6


class InvariantError(PlannerError):
    """Something that cannot be has happened: our fault."""


def one(error: type[PlannerError], source: str, where: str, what: str, fix: str) -> PlannerError:
    """An error with a single problem."""
    return error(source, [Problem(where, what, fix)])
