"""Verbs of planning: plan, explain, diff, report."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuplan.domain.plan.answer import Answer
    from gpuplan.domain.requests.plan import PlanRequest
    from gpuplan.domain.sheet import Sheet


def plan(request: "PlanRequest | str") -> "Answer":
    """What to get, how many, from where, at what cost, and why not the others.

    A text is a scenario file or a line of words, planned with the prices of today.
    """
    from datetime import date

    from gpuplan.domain.requests.plan import PlanRequest
    from gpuplan.pipeline.plan import plan as verb

    if isinstance(request, str):
        return verb(PlanRequest(target=request, today=date.today()))
    return verb(request)


def what_if(request: "PlanRequest", changes: tuple[str, ...]) -> "tuple[Answer, Answer]":
    """The plan as asked, and with keys of the scenario changed."""
    from gpuplan.pipeline.what_if import what_if as verb

    return verb(request, changes)


def refuse(answer: "Answer", *, is_check: bool = False) -> None:
    """Raise where there is no plan, or where a limit is broken and limits are checked."""
    from gpuplan.studies.planning.gate import refuse as verb

    verb(answer, is_check=is_check)


def plan_sheet(answer: "Answer") -> "Sheet":
    """A plan, ready to show."""
    from gpuplan.report.plan.answer import plan_sheet as verb

    return verb(answer)


def plan_text(answer: "Answer") -> str:
    """A plan as the text of plan.yaml."""
    from gpuplan.report.plan.document import plan_text as verb

    return verb(answer)


def plan_page(answer: "Answer") -> str:
    """A plan as one self-contained page."""
    from gpuplan.api.showing import need

    need("jinja2", "HTML pages")
    from gpuplan.report.page.plan import plan_page as verb

    return verb(answer)


def explain(path: Path) -> "Answer":
    """A plan file as a value, with its reasons."""
    from gpuplan.inputs.plan_file import read_plan

    return read_plan(path)


def explain_sheet(answer: "Answer") -> "Sheet":
    """Why this plan and no other, ready to show."""
    from gpuplan.report.plan.explanation import explain_sheet as verb

    return verb(answer)


def diff(old: Path, new: Path) -> "tuple[Answer, Answer]":
    """Two plan files as values."""
    from gpuplan.inputs.plan_file import read_plan

    return read_plan(old), read_plan(new)


def diff_sheet(old: "Answer", new: "Answer") -> "Sheet":
    """What differs between two plans, ready to show."""
    from gpuplan.report.plan.difference import diff_sheet as verb

    return verb(old, new)


def report(path: Path) -> str:
    """A plan file as one self-contained page."""
    return plan_page(explain(path))
