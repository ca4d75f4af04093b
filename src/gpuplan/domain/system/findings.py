"""What a check objects to, and what would put it right."""

from typing import Literal

from gpuplan.domain.noun import dataclass

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One objection of one rule: an error must go, a warning needs a look, a note informs."""

    severity: Severity
    rule: str
    where: str
    what: str
    fix: str


def error(rule: str, where: str, what: str, fix: str) -> Finding:
    """The finding that rejects a system until it is fixed."""
    return Finding(severity="error", rule=rule, where=where, what=what, fix=fix)


def warning(rule: str, where: str, what: str, fix: str) -> Finding:
    """The finding that somebody should look at."""
    return Finding(severity="warning", rule=rule, where=where, what=what, fix=fix)


def note(rule: str, where: str, what: str, fix: str) -> Finding:
    """The finding that only informs."""
    return Finding(severity="note", rule=rule, where=where, what=what, fix=fix)
