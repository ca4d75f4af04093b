"""The question that words ask, in: a request and its plan; out: the plan that answers it."""

from collections.abc import Callable
from dataclasses import replace

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.studies.planning.inputs import description_of

EVEN_FRAC = 0.5


def with_question(request: PlanRequest, answer: Answer) -> Answer:
    """The plan with the question that words ask beside it, to be answered first."""
    description = None if request.basis.is_brief else description_of(request)
    if description is None or not description.question:
        return answer
    remarks = replace(answer.explanation, question=description.question)
    return replace(answer, explanation=remarks)


def at_even_odds(
    request: PlanRequest, answer: Answer, solve: Callable[[PlanRequest], Answer]
) -> Answer:
    """Whether hardware is enough at even odds, where it is not at those that are usually asked."""
    is_requested = answer.explanation.question == "enough"
    if answer.feasible or not is_requested or request.min_probability_frac is not None:
        return answer
    likely = solve(replace(request, min_probability_frac=EVEN_FRAC))
    return likely if likely.feasible else answer
