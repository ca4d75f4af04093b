"""Explanations hold: relaxations are the least that is enough, and limits save what is said."""

from dataclasses import replace

import pytest

from fakes.selection import brute_force_usd, draw
from gpuplan.domain.plan.selection import Conflict, NamedLimit
from gpuplan.selection.choose import select
from gpuplan.selection.sensitivity.conflict import without
from gpuplan.selection.sensitivity.limit_prices import limit_prices


def drawn(kind, seeds=range(400)):
    """The first problems that have a plan, or have none because of limits."""
    found = []
    for seed in seeds:
        problem = draw(seed)
        if not problem.limits:
            continue
        answer = select(problem)
        is_conflict = isinstance(answer, Conflict) and bool(answer.limits)
        if is_conflict == (kind == "conflict") and (
            is_conflict or not isinstance(answer, Conflict)
        ):
            found.append((seed, problem, answer))
        if len(found) == 12:
            break
    return found


def with_limit(problem, name, most):
    limits = tuple(replace(x, most=most) if x.name == name else x for x in problem.limits)
    return replace(problem, limits=limits)


def test_the_least_relaxation_is_enough_and_no_less_is():
    for seed, problem, clash in drawn("conflict"):
        assert clash.alone, seed
        for wider in clash.alone:
            (name,), (needed,), (most,) = wider.limits, wider.needed, wider.most
            others_given_way = with_limit(problem, name, needed * (1 + 1e-7))
            assert brute_force_usd(others_given_way) is not None, seed
            assert brute_force_usd(with_limit(problem, name, most + 0.99 * (needed - most))) is None


def test_every_limit_of_the_conflict_is_needed_for_it():
    for seed, problem, clash in drawn("conflict"):
        rest = [limit.name for limit in problem.limits if limit.name not in clash.limits]
        core = without(problem, rest)
        assert brute_force_usd(core) is None, seed
        for name in clash.limits:
            assert brute_force_usd(without(core, [name])) is not None, seed


def test_together_the_limits_give_way_enough():
    for seed, problem, clash in drawn("conflict"):
        wider = problem
        for name, needed in zip(clash.together.limits, clash.together.needed, strict=True):
            wider = with_limit(wider, name, needed * (1 + 1e-7))
        assert brute_force_usd(wider) is not None, seed


def test_a_workload_without_nodes_is_named():
    problem = draw(3)
    bare = replace(problem, terms=(), limits=())
    pools = tuple(replace(pool, n_nodes_existing=0) for pool in bare.pools)
    found = select(replace(bare, pools=pools))
    assert isinstance(found, Conflict)
    assert "work0" in found.without_limits


def test_loosening_a_limit_saves_what_is_said():
    for seed, problem, found in drawn("plan"):
        for price in limit_prices(problem, found, step_frac=0.2):
            most = next(x.most for x in problem.limits if x.name == price.limit)
            usd = brute_force_usd(with_limit(problem, price.limit, most * 1.2))
            assert found.worth_usd - usd == pytest.approx(price.saved_usd, abs=0.011), seed


def test_a_limit_that_does_not_bind_saves_nothing():
    problem = draw(1)
    found = select(replace(problem, limits=()))
    n = sum(held.n_nodes.max() for held in found.provisioned)
    limit = NamedLimit(name="nodes", kind="nodes", most=float(n) * 4)
    (price,) = limit_prices(replace(problem, limits=(limit,)), found)
    assert price.saved_usd == 0.0
