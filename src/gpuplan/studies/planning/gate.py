"""A plan as a gate: no plan ends with 3, a broken limit with 4."""

from gpuplan.domain.plan.answer import Answer
from gpuplan.errors import InfeasibleError, Problem, ViolationError


def refuse(answer: Answer, *, is_check: bool) -> None:
    """Raise InfeasibleError without a plan, ViolationError where a checked limit is broken."""
    if answer.plan is None:
        raise InfeasibleError(answer.name, _conflicts(answer))
    broken = violations(answer)
    if broken and is_check:
        raise ViolationError(answer.name, broken)


def violations(answer: Answer) -> list[Problem]:
    """Every limit that the plan does not keep."""
    if answer.plan is None:
        return _conflicts(answer)
    limits = [
        Problem(use.name, f"takes {use.used} of {use.limit}", "loosen it, or ask for less")
        for use in answer.plan.limits
        if not use.is_kept
    ]
    promises = [
        Problem(f"{p.workload} {p.what}", "is not kept", "add replicas, or promise less")
        for p in answer.plan.slo.promises
        if not p.is_kept
    ]
    return limits + promises


def _conflicts(answer: Answer) -> list[Problem]:
    lines = answer.explanation.conflicts or ("nothing meets every limit",)
    return [Problem("plan", line, "loosen one of these limits") for line in lines]
