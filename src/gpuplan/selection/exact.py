"""The whole problem as one program, solved to the gap asked for."""

from dataclasses import replace

from gpuplan.domain.plan.selection import Proof, Selection, Status
from gpuplan.errors import InvariantError, one
from gpuplan.selection.program.model import Model
from gpuplan.selection.program.solver import Answer, Effort, solve
from gpuplan.selection.result.extract import selection

# Relative difference allowed between the solver's objective and the bill of the rounded answer.
SAME = 1e-6


def solve_exactly(built: Model, effort: Effort) -> Selection | None:
    """The cheapest choice; None where there is none."""
    answer = solve(built.program, effort)
    return None if answer is None else cost_selection(built, answer)


def cost_selection(built: Model, answer: Answer) -> Selection:
    """The choice of an answer to the cost objective; its value is the bill, not the solver's."""
    proof = Proof(
        status="optimal", objective="cost", value=0.0, bound=0.0, gap_frac=0.0, method="one program"
    )
    found = selection(built.tab, built.lay, answer.values, proof=proof)
    if abs(found.worth_usd - answer.objective) > SAME * abs(answer.objective) + 0.01:
        what = f"bill {found.worth_usd:.2f}, objective {answer.objective:.2f}"
        raise one(InvariantError, "selection", "bill", what, "report this as a fault")
    return with_proof(found, bound=answer.bound, is_proven=answer.is_proven, method="one program")


def with_proof(found: Selection, *, bound: float, is_proven: bool, method: str) -> Selection:
    """The choice with what is known about its cost."""
    value = found.worth_usd
    # A bound within a cent of the bill is the bill: lines are rounded, bounds are not.
    gap = 0.0 if value - bound <= 0.01 else (value - bound) / value
    status: Status = "optimal" if gap <= 1e-9 else "within gap" if is_proven else "not proven"
    proof = Proof(
        status=status,
        objective="cost",
        value=value,
        bound=min(bound, value),
        gap_frac=gap,
        method=method,
    )
    return replace(found, proof=proof)
