"""What a rule says: a cause, how sure, on what grounds, about whom.

The list of causes: what each is called, how bad it is, and what helps, best first.

Both are tables: `data/causes.csv` names a cause in a line, `data/actions.csv` an action in a line,
with the part of the room that it takes: what that gains a fleet, `gains.py` computes.
"""

from collections.abc import Sequence
from typing import NamedTuple, get_args

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.telemetry.diagnosis import Action, Evidence, Severity, Verdict

# Layers of activity, from "some kernel ran" to "bytes moved", by DCGM's names.
ACTIVITY = (
    ("GPU utilization", "gpu_util_frac"),
    ("SM active", "sm_active_frac"),
    ("tensor active", "tensor_active_frac"),
    ("DRAM active", "dram_active_frac"),
)


class Finding(NamedTuple):
    """One rule that fired."""

    cause: str
    confidence_frac: float
    evidence: tuple[Evidence, ...]
    subjects: tuple[str, ...] = ()
    share_frac: float = 1.0


def evidence_of(what: str, found: str, against: str) -> Evidence:
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


SEVERITIES: dict[str, Severity] = {name: name for name in get_args(Severity)}
# What follows where nobody acts, by how bad it is.
LEFT_ALONE: dict[Severity, str] = {
    "fault": "it fails again, and work since the last checkpoint is lost each time",
    "slow": "work stays as slow as it is",
    "waste": "the same is paid for nothing, month after month",
}
NOTHING = Action(what="do nothing", effect="it stays as it is", cost="none")
MORE_DEVICES = {"": None, "no": False, "yes": True}


class Cause(NamedTuple):
    """One entry of the list of causes."""

    title: str
    severity: Severity
    actions: tuple[Action, ...]
    more_devices_help: bool | None = None


def _causes() -> dict[str, Cause]:
    """Every cause by its name; each can also be left alone, and what follows is said."""
    actions: dict[str, list[Action]] = {}
    for row in packaged_rows("gpuplan.diagnose", "data/actions.csv"):
        actions.setdefault(row["cause"], []).append(_action(row))
    return {
        row["cause"]: _with_nothing(
            Cause(
                row["title"],
                SEVERITIES[row["severity"]],
                tuple(actions.get(row["cause"], ())),
                MORE_DEVICES[row["more_devices_help"]],
            )
        )
        for row in packaged_rows("gpuplan.diagnose", "data/causes.csv")
    }


def _action(row: dict[str, str]) -> Action:
    return Action(
        what=row["what"],
        effect=row["effect"],
        cost=row["cost"],
        gain_low_frac=float(row["part_low"] or 0),
        gain_high_frac=float(row["part_high"] or 0),
    )


def _with_nothing(cause: Cause) -> Cause:
    """The cause with "do nothing" among its actions, and what that leads to."""
    if any(action.what == NOTHING.what for action in cause.actions):
        return cause
    effect = LEFT_ALONE.get(cause.severity, NOTHING.effect)
    nothing = Action(what=NOTHING.what, effect=effect, cost="none")
    return cause._replace(actions=(*cause.actions, nothing))


CAUSES = _causes()
