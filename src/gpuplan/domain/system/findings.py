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
