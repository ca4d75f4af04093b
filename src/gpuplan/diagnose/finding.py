"""What a rule says: a cause, how sure, on what grounds, about whom."""

from collections.abc import Sequence
from typing import NamedTuple

from gpuplan.diagnose.causes import CAUSES
from gpuplan.domain.telemetry.diagnosis import Evidence, Verdict


class Finding(NamedTuple):
    """One rule that fired."""

    cause: str
    confidence_frac: float
    evidence: tuple[Evidence, ...]
    subjects: tuple[str, ...] = ()
    share_frac: float = 1.0


def seen(what: str, found: str, against: str) -> Evidence:
    """One row of evidence."""
    return Evidence(what=what, found=found, against=against)


def percent(value: float) -> str:
    """A share as people read it."""
    return f"{value:.0%}" if abs(value) >= 0.1 else f"{value:.1%}"


def verdict_of(finding: Finding) -> Verdict:
    """The finding with its name, its weight and what helps."""
    cause = CAUSES[finding.cause]
    return Verdict(
        cause=finding.cause,
        title=cause.title,
        severity=cause.severity,
        confidence_frac=finding.confidence_frac,
        evidence=finding.evidence,
        actions=cause.actions,
        subjects=finding.subjects,
        more_devices_help=cause.more_devices_help,
        share_frac=finding.share_frac,
    )


def together(findings: Sequence[Finding], n_all: int) -> list[Finding]:
    """One finding for each cause: the surest one's evidence, everyone's names."""
    by_cause: dict[str, list[Finding]] = {}
    for finding in findings:
        by_cause.setdefault(finding.cause, []).append(finding)
    merged = []
    for cause, group in by_cause.items():
        best = max(group, key=lambda one: one.confidence_frac)
        names = tuple(name for one in group for name in one.subjects)
        share = len(names) / n_all if n_all else 1.0
        merged.append(Finding(cause, best.confidence_frac, best.evidence, names, min(share, 1.0)))
    return merged
