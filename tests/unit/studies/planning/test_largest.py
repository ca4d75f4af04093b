"""The largest load that limits allow: what a plan says of a load, sought from both sides."""

from dataclasses import dataclass, field, replace
from datetime import date
from math import ceil
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.plan.answer import Explanation
from gpuplan.domain.requests.plan import PlanBasis, PlanRequest
from gpuplan.errors import InputError
from gpuplan.pipeline.plan import plan
from gpuplan.studies.planning.largest import LOADS, asks_largest, at_largest_load

TODAY = date(2026, 11, 1)


@dataclass(frozen=True)
class Carried:
    """What the search looks at of an answer."""

    load: float
    feasible: bool
    explanation: Explanation = field(default_factory=Explanation)
    used_frac: float = 0.0

    @property
    def plan(self):
        """Its limits, where there is a plan."""
        return SimpleNamespace(limits=[self]) if self.feasible else None


def asked(unit, value=1):
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "Qwen/Qwen3-8B",
        "demand": {unit: value},
        "request": {"input_tokens": 1000, "output_tokens": 200},
        "slo": {"tpot_p95_ms": 50},
    }
    limit = {"max_accelerators": 8}
    tree = {"version": 1, "name": "largest", "workloads": [work], "policy": limit}
    return PlanRequest(
        target="largest", today=TODAY, tree=tree, basis=PlanBasis(is_largest=True), n_samples=0
    )


# Of a limit, what a load of so much of the largest uses: in proportion, in whole servers, all of
# it from the start.
USED = {
    "proportion": lambda part: part,
    "servers": lambda part: ceil(6 * part) / 6,
    "all": lambda part: 1.0,
}


def carrying(most, tried, used=USED["all"]):
    def solve(request):
        load = float(request.changes[-1].partition("=")[2])
        tried.append(load)
        told, part = Explanation(largest=request.basis.largest), load / most if most else 0.0
        return Carried(load, load <= most, told, used(part))

    return solve


@pytest.mark.parametrize(("used", "n_plans"), [("proportion", 13), ("servers", 16), ("all", 24)])
@pytest.mark.parametrize("unit", LOADS)
@given(ratio=st.floats(0.02, 5000))
@settings(max_examples=25, deadline=None)
def test_the_largest_is_found_within_a_few_percent_and_a_few_plans(unit, used, n_plans, ratio):
    tried: list[float] = []
    most = max(1.0, LOADS[unit][1] * ratio)
    found = at_largest_load(asked(unit), carrying(most, tried, USED[used]))
    assert found.feasible
    assert found.load <= most < max(1.031 * found.load, found.load + 1.001)
    assert len(tried) <= n_plans  # each is a brief plan
    number = found.explanation.largest.split()[2].replace(",", "")
    assert float(number) == found.load


def test_where_nothing_is_carried_the_answer_says_why():
    assert not at_largest_load(asked("requests_per_s"), carrying(0.0, [])).feasible


def test_a_load_that_nothing_limits_is_refused():
    with pytest.raises(InputError, match="limited by nothing"):
        at_largest_load(asked("requests_per_s"), carrying(float("inf"), []))


def test_a_scenario_without_limits_is_refused_before_anything_is_planned():
    request = asked("requests_per_s")
    bare = {**request.tree, "policy": {}}
    tried: list[float] = []
    with pytest.raises(InputError, match="limited by nothing"):
        at_largest_load(replace(request, tree=bare), carrying(1.0, tried))
    assert tried == []


def test_several_loads_have_no_largest():
    request = asked("requests_per_s")
    [work] = request.tree["workloads"]
    both = {**request.tree, "workloads": [work, {**work, "name": "other"}]}
    with pytest.raises(InputError, match="one service"):
        at_largest_load(replace(request, tree=both), carrying(1.0, []))


def test_words_ask_and_a_load_that_is_set_is_meant():
    request = PlanRequest(target="how many users of Qwen3-8B can one L4 serve?", today=TODAY)
    assert asks_largest(request)
    assert not asks_largest(replace(request, changes=("workloads[0].demand.users=50",)))
    assert not asks_largest(replace(request, target="50 users of Qwen3-8B on one L4"))


def test_the_planner_agrees_on_both_sides_of_what_it_says():
    request = PlanRequest(
        target="how many requests per second of Qwen3-8B, 1000 in 200 out, on 1 L40S",
        today=TODAY,
        basis=PlanBasis(is_brief=True),
    )
    answer = plan(request)
    load = answer.provenance.scenario["workloads"][0]["demand"]["requests_per_s"]
    assert answer.explanation.largest.startswith(f"At most {load:g} requests/s are carried")
    key = "workloads[0].demand.requests_per_s"
    assert plan(replace(request, changes=(f"{key}={0.95 * load}",))).feasible
    assert not plan(replace(request, changes=(f"{key}={1.05 * load}",))).feasible
