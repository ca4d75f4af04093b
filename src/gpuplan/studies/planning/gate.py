"""A plan as a gate in CI: no plan ends with exit code 3, a violated limit with 4."""

from gpuplan.domain.plan.answer import Answer
from gpuplan.errors import InfeasibleError, Problem, ViolationError


def refuse(answer: Answer, *, is_check: bool = False) -> None:
    """Raise InfeasibleError without a plan, ViolationError where a checked limit is violated."""
    if answer.plan is None:
        raise InfeasibleError(answer.name, _conflicts(answer))
    violated = violations(answer)
    if violated and is_check:
        raise ViolationError(answer.name, violated)


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
