"""Every error a user can see. Each knows the exit code that it ends the program with."""

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

# Matches a file and line before the key, or the line alone: scenario.yaml:6 site.pue; line 6.
LINE = re.compile(r"(?:(?P<file>.+?):|line )(?P<line>\d+)(?:[:,]? (?P<key>.+))?", re.DOTALL)


def printable(text: str) -> str:
    """The text with characters that could move a terminal's cursor written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _lines(text: str) -> str:
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


class Problem(NamedTuple):
    """One problem: where it is, what is wrong, what would be right."""

    where: str
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}"


class PlannerError(Exception):
    """Base of all errors raised on purpose."""

    exit_code: ClassVar[int] = 1

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        # Names and cells of foreign files stand in errors: nothing of them reaches a terminal raw.
        self.source = _lines(source)
        self.problems = tuple(Problem(*map(_lines, problem)) for problem in problems)
        lines = [_located(self.source, problem) for problem in self.problems]
        if len(lines) != 1:
            lines = [f"{self.source}: {len(lines)} errors", *(f"  {line}" for line in lines)]
        super().__init__("\n".join(lines))

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
    """A limit that the user set is violated."""

    exit_code = 4


class CatalogError(PlannerError):
    """Data is missing, stale or unsound."""

    exit_code = 5


class DriftError(PlannerError):
    """Observed figures have left the range and the tolerance of the plan."""

    exit_code = 6


class InvariantError(PlannerError):
    """Something that cannot be has happened: an internal error."""


def one(error: type[PlannerError], source: str, where: str, what: str, fix: str) -> PlannerError:
    """An error with a single problem."""
    return error(source, [Problem(where, what, fix)])


def unknown_choice(source: str, where: str, found: str, known: Sequence[str]) -> InputError:
    """The error for a word that is none of those allowed."""
    fix = f"use one of {', '.join(known)}"
    return InputError(source, [Problem(where, f"unknown value {found!r}", fix)])


def _located(source: str, problem: Problem) -> str:
    """The problem as compilers write it: file:line: key: what; fix."""
    found = LINE.fullmatch(problem.where)
    if found is None:
        is_named = problem.where.startswith(source)
        return str(problem) if is_named else f"{source}: {problem}"
    place = f"{found['file'] or source}:{found['line']}"
    where = f"{place}: {found['key']}" if found["key"] else place
    return str(problem._replace(where=where))
