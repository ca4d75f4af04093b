"""Engines as a variable of the plan, in: a plan for each engine; out: the best, beside the others.

Each engine is planned for whole, with its own scheduler, calibration and memory rules: nothing is
carried over by a factor.
"""

from collections.abc import Sequence
from dataclasses import replace

from gpuplan.domain.plan.answer import Alternative, Answer
from gpuplan.domain.plan.comparison import ComparisonRow
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError, one
from gpuplan.studies.sizing.task import PLANNED_ENGINES

KEY = "site.software.framework"


def request_for(request: PlanRequest, engine: str) -> PlanRequest:
    """The same question for one engine; InputError where plans know no such engine."""
    if engine not in PLANNED_ENGINES:
        fix = f"use {' or '.join(PLANNED_ENGINES)}"
        raise one(InputError, "plan", "--engines", f"unknown engine {engine!r}", fix)
    basis = request.basis._replace(engines=())
    return replace(request, basis=basis, changes=(*request.changes, f"{KEY}={engine}"))


def best_engine(engines: Sequence[str], answers: Sequence[Answer]) -> Answer:
    """The cheapest plan that stands, with the rows of the other engines beside it."""
    found = [each for each in answers if each.plan is not None]
    if not found:
        return answers[0]
    best = min(found, key=_usd)
    others = [each for each in found if each is not best]
    named = dict(zip(map(id, answers), engines, strict=True))
    rows = (*best.decision.comparison, *(row for each in others for row in _rows(each)))
    return replace(
        best,
        decision=replace(best.decision, comparison=rows),
        alternatives=(
            *best.alternatives,
            *(_alternative(named[id(each)], each, best) for each in others),
        ),
    )


def _usd(answer: Answer) -> float:
    return answer.plan.cost_usd_per_month.value if answer.plan else float("inf")


def _rows(answer: Answer) -> list[ComparisonRow]:
    return [replace(row, is_chosen=False) for row in answer.decision.comparison]


def _alternative(engine: str, answer: Answer, best: Answer) -> Alternative:
    pools = answer.plan.pools if answer.plan else ()
    fleet = ", ".join(f"{pool.n_accelerators} x {pool.accelerator}" for pool in pools)
    usd = _usd(answer)
    return Alternative(
        kind="another engine",
        fleet=f"{fleet} with {engine}",
        usd_per_month=usd,
        extra_usd_per_month=usd - _usd(best),
        remark="planned whole with this engine's scheduler and calibration",
    )
