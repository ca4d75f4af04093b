"""Services and runs under shared limits: the best of all mixes, and sums of plans and proofs."""

from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import candidate, demand, sized
from fakes.plans import chosen
from fakes.selection import horizon
from gpuplan.domain.plan.selection import SelectionProblem
from gpuplan.domain.plan.sizing import Sizing
from gpuplan.studies.planning.groups import (
    SolvedGroup,
    _joined,
    select_from,
    solve_groups,
    whole_proof,
)
from gpuplan.studies.planning.options import FleetTable


def never(host, runs):
    """No run ends in the idle hours of services."""
    del host, runs


def work(name, *, is_run):
    return SimpleNamespace(name=name, has_end=is_run, interval_s=None)


SCENARIO = SimpleNamespace(
    workloads=(work("chat", is_run=False), work("run", is_run=True)),
    workload=lambda name: work(name, is_run=name == "run"),
)


def fleets(name, sizes):
    """Fleets that take so many nodes each; a node is a dollar unless said otherwise."""
    found = tuple(sized(n, candidate=candidate(f"k{i}", name)) for i, n in enumerate(sizes))
    return Sizing(workload=name, demand=demand(1.0), sized=found)


class Solver:
    """Nodes within a limit that all share: the cheapest fleet of each group that still fits."""

    def __init__(self, most, prices):
        self.most, self.prices = most, prices

    def price(self, name, kind):
        return self.prices[name, kind]

    def __call__(self, sizings, is_jobs, before):
        left = self.most - sum(choice.n_nodes for choice in before)
        picked = []
        for sizing in sizings:
            fits = [s for s in sizing.sized if s.n_serving <= left]
            if not fits:
                return (f"{sizing.workload}: no room",)
            best = min(fits, key=lambda s: self.price(sizing.workload, s.candidate.accelerator))
            left -= best.n_serving
            picked.append((sizing.workload, best))
        usd = sum(self.price(name, s.candidate.accelerator) for name, s in picked)
        proof = SimpleNamespace(value=usd)
        choice = SimpleNamespace(
            n_nodes=sum(s.n_serving for _, s in picked), selection=SimpleNamespace(proof=proof)
        )
        return SolvedGroup(choice, sizings, 1)


SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=3)


@given(SIZES, SIZES, st.integers(2, 14), st.randoms(use_true_random=False))
def test_the_best_of_both_is_what_trying_every_pair_finds(services, runs, most, random):
    prices = {
        (name, f"k{i}"): random.randint(1, 20)
        for name, sizes in (("chat", services), ("run", runs))
        for i in range(len(sizes))
    }
    tried = [
        prices["chat", f"k{i}"] + prices["run", f"k{j}"]
        for (i, a), (j, b) in product(enumerate(services), enumerate(runs))
        if a + b <= most
    ]
    sizings = [fleets("chat", services), fleets("run", runs)]
    # A run stands for itself here: it is not made a fleet of blocks of time.
    found = solve_groups(SCENARIO, sizings, Solver(most, prices), never)
    if not tried:
        assert isinstance(found, tuple)
    else:
        assert sum(group.score for group in found) == min(tried)


def test_one_kind_of_work_is_solved_alone():
    solver = Solver(5, {("chat", "k0"): 3})
    alone = SimpleNamespace(workloads=SCENARIO.workloads[:1])
    [group] = solve_groups(alone, [fleets("chat", [2])], solver, never)
    assert group.score == 3
    assert solve_groups(alone, [fleets("chat", [9])], solver, never) == ("chat: no room",)


def test_a_workload_that_the_budget_leaves_nothing_is_named():
    problem = SelectionProblem(horizon=horizon(), pools=(), terms=())
    option = SimpleNamespace(workload="run")
    whole = SimpleNamespace(workloads=("run",), options=(option,))
    found = select_from(problem, FleetTable(problem=whole, by_name={}, rates={}))
    assert found.without_limits == "run: the budget that others leave pays for none of its fleets"


def test_two_plans_add_up():
    first, second = chosen(6), chosen(4, is_kept=False)
    both = _joined(first, second)
    assert both.pools == first.pools + second.pools
    for name in ("cost_usd_per_month", "power_w"):
        for end in ("value", "low", "high"):
            sums = [getattr(getattr(plan, name), end) for plan in (first, second)]
            assert getattr(getattr(both, name), end) == pytest.approx(sum(sums))
    assert not both.slo.is_kept
    assert both.carbon_kg_per_month is None
    assert both.energy_j_per_month == pytest.approx(2e9)
    assert both.span_s == max(first.span_s, second.span_s)


def group(usd, bound, *, objective="cost", status="optimal", n_rounds=1):
    proof = SimpleNamespace(
        objective=objective, bound=bound, gap_frac=(usd - bound) / usd, status=status
    )
    selection = SimpleNamespace(proof=proof, worth_usd=usd)
    return SimpleNamespace(choice=SimpleNamespace(selection=selection), n_rounds=n_rounds)


def test_bounds_add_up_and_the_worst_gap_counts():
    found = whole_proof([group(100.0, 98.0), group(50.0, 50.0, status="within gap", n_rounds=3)])
    assert (found.bill_usd, found.bound_usd) == (150.0, 148.0)
    assert found.gap_frac == pytest.approx(0.02)
    assert (found.n_rounds, found.status) == (3, "optimal, within gap")


def test_a_bound_in_other_units_is_not_money():
    found = whole_proof([group(100.0, 7e6, objective="energy")])
    assert found.bound_usd == found.bill_usd == 100.0


def test_a_run_in_idle_hours_needs_no_fleet_of_its_own():
    solver = Solver(5, {("chat", "k0"): 3, ("run", "k0"): 1})
    sizings = [fleets("chat", [5]), fleets("run", [5])]
    assert solve_groups(SCENARIO, sizings, solver, never) == ("run: no room",)
    found = solve_groups(SCENARIO, sizings, solver, lambda host, runs: (host.score, len(runs)))
    assert found[0].score == 3
    assert found[1] == (3, 1)
