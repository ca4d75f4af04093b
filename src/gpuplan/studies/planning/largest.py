"""The largest load that limits allow, in: a request and the planner; out: the plan at that load.

Whether a load is carried is what a plan says of it, so the two cannot disagree: the load at which
plans end is bracketed, then halved, on a scale of ratios.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite, sqrt
from typing import Any, NamedTuple

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError, one
from gpuplan.studies.planning.inputs import description_of, requested_scenario

UNITS = {
    "users": "users",
    "concurrent_requests": "concurrent clients",
    "requests_per_s": "requests/s",
    "requests_per_day": "requests/day",
    "output_tokens_per_s": "output tokens/s",
}
# Where the search begins: some 1 request/s of a chat service.
STARTS = {
    "users": 2000.0,
    "concurrent_requests": 32.0,
    "requests_per_s": 1.0,
    "requests_per_day": 30_000.0,
    "output_tokens_per_s": 300.0,
}
COUNTED = ("users", "concurrent_requests")
STEP_RATIO, NEAR_RATIO = 4.0, 1.03
LEAST_FRAC, MOST_RATIO = 1e-3, 1e6  # of the start: beyond, limits are not what ends it
BACK_RATIO, N_BACK = 0.97, 5  # what a brief plan allows, a whole one may find just too much

Solve = Callable[[PlanRequest], Answer]


class LoadKey(NamedTuple):
    """The key of the one load there is."""

    path: str
    unit: str  # users, requests_per_s …


class _Search(NamedTuple):
    request: PlanRequest
    key: LoadKey
    solve: Solve

    def at(self, load: float, *, is_brief: bool) -> Answer:
        """The plan for a load."""
        basis = self.request.basis._replace(is_largest=False, is_brief=is_brief)
        changes = (*self.request.changes, f"{self.key.path}={self._written(load)}")
        return self.solve(replace(self.request, changes=changes, basis=basis))

    def carries(self, load: float) -> bool:
        """Whether a plan meets every limit at a load."""
        return self.at(load, is_brief=True).feasible

    def _written(self, load: float) -> str:
        return f"{load:.0f}" if self.key.unit in COUNTED else f"{load:.4g}"

    def rounded(self, load: float) -> float:
        """As it is written: whole clients, four digits of a rate."""
        return float(self._written(load))

    def text(self, load: float) -> str:
        """With its unit."""
        number = f"{load:,.0f}" if load >= 1000 else f"{load:.4g}"
        return f"{number} {UNITS[self.key.unit]}"


def asks_largest(request: PlanRequest) -> bool:
    """Whether the largest load is asked for, by a flag or in words."""
    if request.basis.is_largest is not None:
        return request.basis.is_largest
    if any(".demand." in change for change in request.changes):  # a load that is set is meant
        return False
    description = description_of(request)
    return description is not None and description.asks_largest


def at_largest_load(request: PlanRequest, solve: Solve) -> Answer:
    """The plan at the largest load; where not even a small one is carried, why not."""
    search = _Search(request, _load_key(requested_scenario(request)[1]), solve)
    served, beyond = _bracket(search)
    if served == 0.0:
        return search.at(beyond, is_brief=request.basis.is_brief)
    while beyond / served > NEAR_RATIO and search.rounded(sqrt(served * beyond)) not in (
        search.rounded(served),
        search.rounded(beyond),
    ):
        middle = search.rounded(sqrt(served * beyond))
        served, beyond = (middle, beyond) if search.carries(middle) else (served, middle)
    for _ in range(N_BACK):
        answer = search.at(served, is_brief=request.basis.is_brief)
        if answer.feasible:
            return _told(search, answer, served, beyond)
        served, beyond = search.rounded(served * BACK_RATIO), served
    return answer


def _bracket(search: _Search) -> tuple[float, float]:
    """A load that is carried, 0 if none is, and one that is not."""
    start = STARTS[search.key.unit]
    load = start
    if search.carries(load):
        while load < MOST_RATIO * start:
            served, load = load, load * STEP_RATIO
            if not search.carries(load):
                return served, load
        fix = 'limit it: "on 8 H100", --budget, --power-kw, policy.max_accelerators'
        raise one(InputError, "plan", "the largest load", "is limited by nothing", fix)
    least = 1.0 if search.key.unit in COUNTED else LEAST_FRAC * start
    while load > least:
        beyond, load = load, max(least, search.rounded(load / STEP_RATIO))
        if search.carries(load):
            return load, beyond
    return 0.0, load


def _told(search: _Search, answer: Answer, served: float, beyond: float) -> Answer:
    """With what was found, before all reasons."""
    text = f"At most {search.text(served)}: {search.text(beyond)} would violate an SLO or a limit."
    return replace(answer, explanation=replace(answer.explanation, largest=text))


def _load_key(tree: Mapping[str, Any]) -> LoadKey:
    """The key of the one load of a scenario; InputError where there is none, or more than one."""
    works = list(enumerate(tree.get("workloads") or ()))
    found = [
        LoadKey(f"workloads[{place}].demand.{unit}", unit)
        for place, work in works
        for unit in UNITS
        if isinstance((work.get("demand") or {}).get(unit), int | float)
        and isfinite(work["demand"][unit])
    ]
    if len(found) == 1:
        return found[0]
    what = "needs one service whose load is given by " + ", ".join(UNITS)
    fix = f"{len(found)} are there; plan each alone, or give the load so"
    raise one(InputError, "plan", "the largest load", what, fix)
