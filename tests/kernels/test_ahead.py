"""Engines that draw up a step while the one before it runs: who comes meanwhile joins later."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.engine import Admission, Fleet
from gpuplan.domain.simulation.fleet import ElasticFleet
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from gpuplan.simulation.serving.run import simulate_serving
from kernels import test_autoscaled_fleet, test_featured_fleet
from kernels.cases import bent_table, constant_table, fleet_of, limits_of, stream_of, true_time_s
from kernels.oracles import assert_equals_oracle, oracle
from kernels.reference import Engine, rules_of
from kernels.test_engine import WORK, assert_same, reference_run
from kernels.test_features import POLICIES, case

AHEAD = Admission(is_ahead=True)


def test_who_comes_while_a_step_runs_joins_the_next_but_one():
    """Steps of 1 s: the first, from rest, begins at once, and the second is known by then."""
    requests = requests_of(
        np.array([0.0, 0.5, 1.0, 9.25]), np.array([8, 8, 8, 8]), np.array([5, 1, 1, 1])
    )
    table = constant_table(1.0, max_tokens=64, max_sequences=8)
    limits = limits_of(
        np.random.default_rng(0), requests,
        max_batch_tokens=64, max_sequences=8, n_blocks=50, admission=AHEAD,
    )  # fmt: skip
    found = simulate_serving(requests, Fleet(limits=limits, table=table))
    # At 0.5 the step that begins at 1 is drawn up already; at 1.0 that which begins at 2 is not.
    np.testing.assert_allclose(found.times.wait_s, [0.0, 1.5, 1.0, 0.0])
    np.testing.assert_allclose(found.times.ttft_s, [1.0, 2.5, 2.0, 1.0])
    np.testing.assert_allclose(found.times.e2e_s[0], 5.0)
    at_once = replace(limits, admission=Admission())
    before = simulate_serving(requests, Fleet(limits=at_once, table=table))
    np.testing.assert_allclose(before.times.wait_s, [0.0, 0.5, 0.0, 0.0])


def test_jumping_equals_stepping_bit_for_bit():
    for seed in range(120):
        draw = np.random.default_rng(40_000 + seed)
        requests = stream_of(draw, 120)
        if seed % 3 == 0:  # every arrival is a tie with a step
            ties_s = floats(np.sort(draw.integers(0, 2000, 120)) / 100)
            requests = replace(requests, arrive_s=ties_s)
        limits = limits_of(draw, requests, is_ahead=True)
        table = bent_table(draw, limits)
        if seed % 3 == 0:
            table = constant_table(
                0.01, max_tokens=limits.max_batch_tokens, max_sequences=limits.max_sequences
            )
        fleet = Fleet(limits=limits, table=table)
        jumped = simulate_serving(requests, fleet, method="jump")
        assert_same(jumped, simulate_serving(requests, fleet, method="step"))
        if seed % 10 == 0:
            assert_equals_oracle(jumped, *oracle(requests, fleet))


def test_an_independent_engine_agrees_request_by_request():
    for seed in range(25):
        draw = np.random.default_rng(50_000 + seed)
        requests = stream_of(draw, 40)
        apart_s = np.sort(requests.arrive_s + draw.uniform(0, 1e-3, 40))
        requests = replace(requests, arrive_s=apart_s)
        limits = limits_of(draw, requests, is_ahead=True)
        rules = rules_of(limits)
        rows = reference_run(requests, Engine(rules, lambda *load: true_time_s(*load, WORK)))
        found = simulate_serving(requests, fleet_of(limits, WORK))
        for name, at_s in (
            ("ttft_s", [r.first_s for r in rows]),
            ("e2e_s", [r.end_s for r in rows]),
            ("wait_s", [r.start_s for r in rows]),
        ):
            expected_s = np.array(at_s) - requests.arrive_s
            np.testing.assert_allclose(getattr(found.times, name), expected_s, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(seed=st.integers(0, 2**32 - 1), is_traced=st.booleans())
@settings(max_examples=15, deadline=None, derandomize=True)
def test_with_policies_too(policy: dict[str, object], seed: int, is_traced: bool):
    ahead = policy | {"is_ahead": True, "ends_by_eos": seed % 2 == 0}
    requests, fleet, blocks = case(seed, 40, ahead, is_traced=is_traced)
    found = simulate_serving(requests, fleet, blocks=blocks)
    assert_same(found, simulate_serving(requests, fleet, blocks=blocks, method="step"))
    assert_equals_oracle(found, *oracle(requests, fleet, blocks))


def ahead(fleet: ElasticFleet) -> ElasticFleet:
    pools = tuple(replace(p, limits=replace(p.limits, admission=AHEAD)) for p in fleet.pools)
    return replace(fleet, pools=pools)


@given(seed=st.integers(0, 2**32 - 1), has_policies=st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_in_autoscaled_fleets_jumping_equals_stepping(seed: int, has_policies: bool):
    if has_policies:
        requests, fleet, service = test_featured_fleet.case(seed, 60)
    else:
        requests, fleet, service = test_autoscaled_fleet.case(seed)
    found = [
        simulate_fleet(requests, ahead(fleet), service=service, bin_s=1.0, method=method)
        for method in ("jump", "step")
    ]
    assert test_autoscaled_fleet.same_bytes(*found) == []


def test_requests_wait_about_a_step_longer():
    """Light load: half a step until the boundary becomes a step and a half."""
    draw = np.random.default_rng(1)
    requests = requests_of(
        np.cumsum(draw.exponential(1.0, 4000)), np.full(4000, 16), np.full(4000, 400)
    )
    table = constant_table(0.01, max_tokens=600, max_sequences=64)
    limits = limits_of(
        draw, requests, max_batch_tokens=600, max_sequences=64, n_blocks=10_000,
        admission=Admission(),
    )  # fmt: skip
    fleets = [Fleet(limits=replace(limits, admission=a), table=table) for a in (Admission(), AHEAD)]
    at_once, later = (simulate_serving(requests, fleet) for fleet in fleets)
    busy = at_once.totals.busy_s / at_once.totals.span_s
    longer_s = float(later.times.ttft_s.mean() - at_once.times.ttft_s.mean())
    assert longer_s == pytest.approx(0.01 * busy, rel=0.03)
    np.testing.assert_allclose(later.times.tpot_s, at_once.times.tpot_s)
