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
from gpuplan.errors import InputError, PlannerError, one
from gpuplan.studies.planning.inputs import (
    description_of,
    requested_probability,
    requested_scenario,
)

# What a load is counted in, and where the search begins: some 1 request/s of a chat service.
LOADS = {
    "users": ("users", 2000.0),
    "concurrent_requests": ("concurrent clients", 32.0),
    "requests_per_s": ("requests/s", 1.0),
    "requests_per_day": ("requests/day", 30_000.0),
    "output_tokens_per_s": ("output tokens/s", 300.0),
}
COUNTED = ("users", "concurrent_requests")
STEP_RATIO, NEAR_RATIO = 4.0, 1.03
PAST_RATIO = 1.05  # over the load at which the fullest limit would be used up, in proportion
LEAST_FRAC, MOST_RATIO = 1e-3, 1e4  # of the start: beyond, limits are not what ends it
BACK_RATIO, N_BACK = 0.97, 5  # what a brief plan allows, a whole one may find just too much

EVEN_FRAC = 0.5

Solve = Callable[[PlanRequest], Answer]


class LoadKey(NamedTuple):
    """The key of the one load there is."""

    path: str
    unit: str  # users, requests_per_s …


class _Search(NamedTuple):
    request: PlanRequest
    key: LoadKey
    solve: Solve

    def at(self, load: float, **basis: Any) -> Answer:
        """The plan for a load."""
        whole = self.request.basis._replace(is_largest=False, **basis)
        changes = (*self.request.changes, f"{self.key.path}={self._written(load)}")
        return self.solve(replace(self.request, changes=changes, basis=whole))

    def used_frac(self, load: float) -> float | None:
        """Of its fullest limit, what the plan for a load uses; None: none meets every limit."""
        plan = self.at(load, is_brief=True, is_choice_alone=True).plan
        return None if plan is None else max((x.used_frac for x in plan.limits), default=0.0)

    def carries(self, load: float) -> bool:
        """Whether a plan meets every limit at a load."""
        return self.used_frac(load) is not None

    def as_likely(self, level: float) -> "_Search":
        """The same with another probability of meeting all SLOs."""
        return self._replace(request=replace(self.request, min_probability_frac=level))

    def _written(self, load: float) -> str:
        return f"{load:.0f}" if self.key.unit in COUNTED else f"{load:.4g}"

    def rounded(self, load: float) -> float:
        """As it is written: whole clients, four digits of a rate."""
        return float(self._written(load))

    def text(self, load: float) -> str:
        """With its unit."""
        number = f"{load:,.0f}" if load >= 1000 else f"{load:.4g}"
        return f"{number} {LOADS[self.key.unit][0]}"


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
    scenario, tree = requested_scenario(request)
    search = _Search(request, _load_key(tree), solve)
    if not _is_limited(tree):
        raise _nothing_limits()
    served, beyond = _nearer(search, *_bracket(search, LOADS[search.key.unit][1]))
    if served == 0.0:
        return search.at(beyond)
    requested = requested_probability(scenario, request)
    predicted = _at_predicted_speed(search, served) if requested and requested > EVEN_FRAC else None
    for _ in range(N_BACK):
        answer = search.at(served, largest=_text(search, served, requested, predicted))
        if answer.feasible:
            break
        served = search.rounded(served * BACK_RATIO)
    return answer


def with_largest(request: PlanRequest, answer: Answer) -> Answer:
    """The plan with what a search for its load found."""
    if not request.basis.largest or not answer.feasible:
        return answer
    remarks = replace(answer.explanation, largest=request.basis.largest)
    return replace(answer, explanation=remarks)


def _text(search: _Search, served: float, requested: float | None, predicted: float | None) -> str:
    odds = "" if requested is None else f" with {requested:.0%} probability"
    is_more = (predicted or 0.0) > served
    even = f" ({search.text(predicted or served)} at the predicted speed)" if is_more else ""
    return f"At most {search.text(served)} are carried within all SLOs and limits{odds}{even}."


def _at_predicted_speed(search: _Search, served: float) -> float:
    """The largest load at even odds: what a fleet carries if it is as fast as predicted."""
    even = search.as_likely(EVEN_FRAC)
    return _nearer(even, *_bracket(even, served))[0]


def _nearer(search: _Search, served: float, beyond: float) -> tuple[float, float]:
    """The bracket, halved on a scale of ratios until its ends are near each other."""
    while served and beyond / served > NEAR_RATIO:
        middle = search.rounded(sqrt(served * beyond))
        if middle in (search.rounded(served), search.rounded(beyond)):
            break
        served, beyond = (middle, beyond) if search.carries(middle) else (served, middle)
    return served, beyond


def _bracket(search: _Search, start: float) -> tuple[float, float]:
    """A load that is carried, 0 if none is, and one that is not.

    Limits fill about in proportion to the load: a little past that the next one is tried. Where
    they do not, steps double until they are as long as any.
    """
    load, least_step, is_counted = start, PAST_RATIO, search.key.unit in COUNTED
    used = search.used_frac(load)
    if used is not None:
        while load < MOST_RATIO * start:
            step = max(least_step, PAST_RATIO / used if used else STEP_RATIO)
            served, load = load, max(search.rounded(load * step), load + is_counted)
            used, least_step = search.used_frac(load), min(STEP_RATIO, least_step**2)
            if used is None:
                return served, load
        raise _nothing_limits()
    least = 1.0 if search.key.unit in COUNTED else LEAST_FRAC * start
    while load > least:
        beyond, load = load, max(least, search.rounded(load / STEP_RATIO))
        if search.carries(load):
            return load, beyond
    return 0.0, load


def _is_limited(tree: Mapping[str, Any]) -> bool:
    """Whether anything of a scenario ends the growth of a fleet."""
    policy, site = tree.get("policy") or {}, tree.get("site") or {}
    is_spent = any("usd" in key for key in tree.get("budget") or {})
    limits = (policy.get("max_accelerators"), site.get("power_kw"), site.get("racks"))
    is_own = policy.get("purchases") == ["owned"] or (tree.get("prices") or {}).get("offers")
    return bool(is_spent or is_own or tree.get("teams") or any(limits))


def _nothing_limits() -> PlannerError:
    fix = 'limit it: "on 8 H100", --budget, --power-kw, policy.max_accelerators'
    return one(InputError, "plan", "the largest load", "is limited by nothing", fix)


def _load_key(tree: Mapping[str, Any]) -> LoadKey:
    """The key of the one load of a scenario; InputError where there is none, or more than one."""
    works = list(enumerate(tree.get("workloads") or ()))
    found = [
        LoadKey(f"workloads[{place}].demand.{unit}", unit)
        for place, work in works
        for unit in LOADS
        if isinstance((work.get("demand") or {}).get(unit), int | float)
        and isfinite(work["demand"][unit])
    ]
    if len(found) == 1:
        return found[0]
    what = "needs one service whose load is given by " + ", ".join(LOADS)
    fix = f"{len(found)} are there; plan each alone, or give the load so"
    raise one(InputError, "plan", "the largest load", what, fix)
