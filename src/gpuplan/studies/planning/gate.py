"""A plan as a gate in CI: no plan ends with exit code 3, a violated limit with 4."""

from gpuplan.domain.plan.answer import Answer
from gpuplan.errors import InfeasibleError, Problem, ViolationError


def refuse(answer: Answer, *, is_check: bool = False, is_forced: bool = True) -> None:
    """Raise InfeasibleError without a plan, ViolationError where a checked limit is violated.

    And where a training run is past the knee of its speed-up, unless that is asked for.
    """
    if answer.plan is None:
        raise InfeasibleError(answer.name, _conflicts(answer))
    violated = violations(answer) if is_check else []
    if not is_forced:
        violated += past_knee(answer)
    if violated:
        raise ViolationError(answer.name, violated)


def past_knee(answer: Answer) -> list[Problem]:
    """Training runs of the plan on more accelerators than bring half of what they could."""
    rows = [row for row in answer.decision.comparison if row.is_chosen and row.evidence.run]
    fix = "change network, parallelism or deadline first, or ask for it with --force"
    return [
        Problem(row.workload, f"{row.n_accelerators:,} accelerators are past the knee", fix)
        for row in rows
        if row.evidence.run and row.evidence.run.is_past_knee
    ]


def violations(answer: Answer) -> list[Problem]:
    """Every limit and SLO that the plan violates."""
    if answer.plan is None:
        return _conflicts(answer)
    limits = [
        Problem(use.name, f"uses {use.used} of {use.limit}", "raise it, or ask for less")
        for use in answer.plan.limits
        if not use.is_kept
    ]
    slos = [
        Problem(f"{slo.workload} {slo.what}", "is violated", "add replicas, or relax the SLO")
        for slo in answer.plan.slo.promises
        if not slo.is_kept
    ]
    return limits + slos


def _conflicts(answer: Answer) -> list[Problem]:
    what, *changes = answer.explanation.conflicts or ("nothing meets every limit",)
    return [Problem("plan", what, changes[0] if changes else "relax one of the limits")]
