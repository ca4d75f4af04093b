"""The same request twice: as asked, and with keys of the scenario changed."""

from dataclasses import replace

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.pipeline.plan import plan


def what_if(request: PlanRequest, changes: tuple[str, ...]) -> tuple[Answer, Answer]:
    """Both plans, under the same seed, so that they differ by the change alone."""
    changed = replace(request, changes=(*request.changes, *changes))
    return plan(request), plan(changed)
