"""SGLang's kernel beyond recorded streams: routers, fleets that change, what is left at the end."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import Admission, EngineLimits, PrefillFirst
from gpuplan.domain.simulation.fleet import UNSERVED
from gpuplan.domain.traffic.stream import Grouping, Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.arrays import engine_state
from gpuplan.simulation.serving.fleet.run import resting, simulate_fleet
from gpuplan.simulation.serving.gaps import gaps_of
from gpuplan.simulation.serving.kernels.engine import state as st
from gpuplan.simulation.serving.kernels.engine.runs import run_apart
from gpuplan.simulation.serving.kernels.sglang import state as sg
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.sglang import most_tokens, requested_tokens, with_sglang
from gpuplan.simulation.serving.stream import can_stream
from kernels.cases import fleet_of, stream_of
from kernels.fleets import autoscaled_fleet, grouped_stream

COLUMNS = ("ttft_s", "e2e_s", "n_preemptions", "n_cached_tokens")


def limits_of(draw: np.random.Generator, requests: Requests, **changes: object) -> EngineLimits:
    """From a cache that holds just the largest request to one that holds all."""
    page = int(draw.choice([1, 16]))
    largest = int((requests.input_tokens + requests.output_tokens).max()) + 2 * page + 2
    rules = PrefillFirst(
        chunk_tokens=int(draw.choice([64, 512])),
        is_longest_first=bool(draw.integers(0, 2)),
        conservativeness_ratio=float(draw.choice([0.05, 1.0])),
        max_tokens=int(draw.choice([1, 200])),
        ignores_eos=bool(draw.integers(0, 2)),
        knows_ends=bool(draw.integers(0, 4)),
    )
    values = {
        "max_sequences": int(draw.integers(1, 40)),
        "max_batch_tokens": 600,
        "block_tokens": page,
        "n_blocks": int(largest * draw.choice([1.0, 1.3, 2.0, 5.0])) // page + 1,
        "caches_prefixes": bool(draw.integers(0, 4)),
        "admission": Admission(is_ahead=bool(draw.integers(0, 2)), prefill_first=rules),
    }
    return EngineLimits(**(values | changes))  # type: ignore[arg-type]


def shared_stream(draw: np.random.Generator, n: int) -> Requests:
    """A stream of which some begin with what was said before."""
    asked = stream_of(draw, n)
    group = draw.integers(-1, 5, n)
    shared = np.where(group >= 0, draw.integers(0, asked.input_tokens + 1), 0)
    return requests_of(
        asked.arrive_s,
        asked.input_tokens,
        asked.output_tokens,
        grouping=Grouping(prefix_group=group, prefix_tokens=shared, session=group),
    )


def equal(one, other) -> bool:
    pairs = ((getattr(one, name), getattr(other, name)) for name in COLUMNS)
    return all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("seed", range(60))
def test_jumping_is_stepping_behind_any_router(seed):
    draw = np.random.default_rng(seed)
    requests = shared_stream(draw, int(draw.integers(5, 120)))
    router = ("round_robin", "least_outstanding", "power_of_two")[seed % 3]
    fleet = fleet_of(limits_of(draw, requests), n_engines=int(draw.integers(1, 4)), router=router)
    found = simulate_serving(requests, fleet)
    assert equal(found.times, simulate_serving(requests, fleet, method="step").times)
    assert found.times.is_finished.all()
    fixed = simulate_fleet(requests, resting(fleet)).outcome
    assert equal(found.times, fixed.times)
    assert found.totals.busy_s == pytest.approx(fixed.totals.busy_s)


@pytest.mark.parametrize("seed", range(40))
def test_a_fleet_that_changes_loses_nobody_and_jumps_as_it_steps(seed):
    draw = np.random.default_rng(seed)
    requests = grouped_stream(draw, int(draw.integers(20, 100)))
    fleet = autoscaled_fleet(draw, requests)
    limits = limits_of(draw, requests)
    table = fleet_of(limits).table
    pools = tuple(replace(pool, limits=limits, table=table) for pool in fleet.pools)
    services = tuple(replace(one, decode_pools=()) for one in fleet.services)
    fleet = replace(fleet, pools=pools, services=services, kv_transfer=None)
    found = simulate_fleet(requests, fleet)
    stepped = simulate_fleet(requests, fleet, method="step")
    assert np.array_equal(found.end, stepped.end)
    assert np.allclose(found.outcome.times.e2e_s, stepped.outcome.times.e2e_s, atol=1e-9)
    assert (found.end != UNSERVED).all()


def test_an_engine_that_has_served_all_holds_nothing():
    draw = np.random.default_rng(5)
    requests = shared_stream(draw, 100)
    limits = limits_of(draw, requests, caches_prefixes=True)
    fleet = fleet_of(limits)
    sim = with_sglang(engine_state(requests, fleet, 60.0), requests, (limits,), blocks=None)
    sim.limit[:, st.IS_JUMPING], sim.limit[:, st.LAST_INSTANT] = 1, st.FOREVER
    run_apart(sim, np.arange(100), 0)
    own = sim.own[0]
    assert sim.scalar[0, st.FREE] == limits.n_blocks
    assert own[sg.N_LOCKED] == 0
    assert sim.scalar[0, st.N_RUNNING] == sim.scalar[0, st.N_DECODES] == own[sg.COMMITTED] == 0
    assert own[sg.N_FRESH] == own[sg.N_GONE] == own[sg.N_LONG] == own[sg.N_PENDING] == 0
    assert 0 < own[sg.N_TREE] <= limits.n_blocks
    assert not sim.scalar[0, st.PHASES :].any()


def test_what_is_asked_for_is_cut_to_what_can_be_held():
    limits = EngineLimits(max_batch_tokens=99, max_sequences=9, n_blocks=300, block_tokens=1)
    asked = Grouping(max_tokens=[50, -1, -1])
    requests = requests_of([0, 0, 0], [100, 100, 250], [60, 20, 20], grouping=asked)
    assert requested_tokens(requests, PrefillFirst(), limits).tolist() == [60, 20, 20]
    wide = PrefillFirst(max_tokens=4096)
    assert requested_tokens(requests, wide, limits).tolist() == [60, 196, 46]
    assert requested_tokens(requests, wide, replace(limits, max_context_tokens=150))[1] == 50
    assert most_tokens(replace(limits, caches_prefixes=True)) == 298


def test_a_request_that_no_cache_can_hold_is_refused():
    limits = EngineLimits(
        max_batch_tokens=99, max_sequences=9, n_blocks=100, block_tokens=1,
        admission=Admission(prefill_first=PrefillFirst(chunk_tokens=64)),
    )  # fmt: skip
    requests = requests_of([0.0, 0.0], [90, 50], [9, 30])
    found = simulate_serving(requests, fleet_of(limits))
    assert found.refused == (("larger than the whole cache", 1),)
    assert found.times.is_finished.tolist() == [0, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"drafts": SpeculativeDecoding(n_tokens=2, acceptance_frac=0.5)},
        {"scheduling": "priority"},
        {"long_prefill_tokens": 100},
        {"block_tokens": 64, "n_blocks": 100},
    ],
)
def test_what_is_not_simulated_is_refused_by_name(change):
    rules = PrefillFirst(chunk_tokens=128, is_longest_first=True)
    given = {"n_blocks": 9999, "block_tokens": 1, "admission": Admission(prefill_first=rules)}
    limits = EngineLimits(max_batch_tokens=512, max_sequences=9, **(given | change))
    fleet = replace(fleet_of(replace(limits, drafts=None)), limits=limits)
    with pytest.raises(InputError, match="SGLang"):
        simulate_serving(requests_of([0], [9], [9]), fleet)


def test_gaps_and_streams_are_refused():
    limits = EngineLimits(
        max_batch_tokens=512, max_sequences=9, n_blocks=9999, block_tokens=1,
        admission=Admission(prefill_first=PrefillFirst(chunk_tokens=128)),
    )  # fmt: skip
    fleet = fleet_of(limits)
    assert not can_stream(fleet)
    with pytest.raises(InputError, match="SGLang"):
        gaps_of(requests_of([0], [9], [9]), fleet)
    mixed = resting(fleet)
    vllm = replace(mixed.pools[0], name="other", limits=replace(limits, admission=Admission()))
    with pytest.raises(InputError, match="one engine"):
        simulate_fleet(requests_of([0], [9], [9]), replace(mixed, pools=(*mixed.pools, vllm)))
