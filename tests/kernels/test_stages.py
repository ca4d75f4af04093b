"""Pipeline stages: one scheduler, a batch a stage on the way; recorded runs: tests/oracles."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.columns import ints
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import Admission, EngineLimits, Fleet, StageRules
from gpuplan.domain.simulation.fleet import ElasticFleet, Pool, PoolSize, Router
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.fleet.run import simulate_fleet
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.stream import can_stream
from kernels.cases import constant_table, fleet_of, limits_of, stream_of

STEP_S = 0.01


def staged(n_stages: int, **changes: object) -> Fleet:
    values = {"max_batch_tokens": 64, "max_sequences": 8, "n_blocks": 40, "block_tokens": 16}
    limits = EngineLimits(**(values | changes))  # type: ignore[arg-type]
    limits = replace(limits, admission=replace(limits.admission, n_stages=n_stages))
    table = constant_table(STEP_S, max_tokens=64, max_sequences=8)
    return Fleet(limits=limits, table=table)


def test_a_lone_request_gains_nothing_by_stages():
    requests = requests_of([0.0], [30], [12])
    found = simulate_serving(requests, staged(4))
    assert found.times.ttft_s[0] == pytest.approx(STEP_S)
    assert found.times.e2e_s[0] == pytest.approx(12 * STEP_S)


def test_chunks_of_a_prompt_follow_each_other_through_the_stages():
    """Three chunks over two stages: the last ends when five half steps have gone by."""
    requests = requests_of([0.0], [192], [1])
    found = simulate_serving(requests, staged(2))
    assert found.times.ttft_s[0] == pytest.approx(STEP_S + 2 * STEP_S / 2)


def test_prompts_that_fill_a_batch_each_decode_half_a_step_after_one_another():
    """In one stage the second prompt shares two steps with a decode of the first."""
    requests = requests_of([0.0, 0.0], [64, 64], [50, 50])
    one, two = (simulate_serving(requests, staged(n)).times.e2e_s for n in (1, 2))
    assert one.tolist() == pytest.approx([50 * STEP_S, 52 * STEP_S])
    assert two.tolist() == pytest.approx([50 * STEP_S, 50.5 * STEP_S])


@pytest.mark.parametrize("seed", range(2))
def test_a_fleet_of_one_is_the_engine_itself(seed: int):
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, 40)
    n_blocks = 2 + int((requests.input_tokens + requests.output_tokens).max()) // 16 * 2
    fleet = staged(3, n_blocks=n_blocks, caches_prefixes=bool(seed % 2))
    size = PoolSize(n_first=1)
    pool = Pool(name="one", limits=fleet.limits, table=fleet.table, size=size)
    alone = simulate_serving(requests, fleet)
    found = simulate_fleet(requests, ElasticFleet(pools=(pool,), router=Router(rule="round_robin")))
    assert found.outcome.times.e2e_s.tolist() == pytest.approx(alone.times.e2e_s.tolist())
    assert alone.totals.n_free_blocks == n_blocks


@pytest.mark.parametrize(
    "changes",
    [
        {"admission": Admission(is_ahead=True)},
        {"drafts": SpeculativeDecoding(n_tokens=2, acceptance_frac=0.5)},
    ],
)
def test_what_is_not_simulated_with_stages_is_refused(changes: dict[str, object]):
    with pytest.raises(InputError, match="pipeline stages"):
        simulate_serving(requests_of([0.0], [5], [5]), staged(2, **changes))


def test_stages_are_not_streamed():
    assert can_stream(staged(1))
    assert not can_stream(replace(staged(1), limits=staged(2).limits))


def drawn_fleet(draw: np.random.Generator, requests: Requests) -> Fleet:
    """Stages, rules and limits at random, memory from scarce to plenty."""
    changes: dict[str, object] = {}
    if draw.random() < 0.3:
        changes["long_prefill_tokens"] = int(draw.integers(5, 200))
    if draw.random() < 0.3:
        changes["scheduling"] = "priority"
    limits = limits_of(draw, requests, **changes)
    # Prompts that are admitted by their first chunk alone may preempt one another for ever.
    rules = StageRules(
        fills_queue=bool(draw.integers(0, 2)),
        waits_for_late=bool(draw.integers(0, 2)),
        keeps_turns=len(requests) % 2 == 0,
    )
    admission = replace(
        limits.admission, n_stages=int(draw.integers(2, 9)), stages=rules, reserves_prompt=True
    )
    router = "least_outstanding" if draw.random() < 0.5 else "round_robin"
    fleet = fleet_of(replace(limits, admission=admission))
    return replace(fleet, n_engines=int(draw.integers(1, 4)), router=router)


@pytest.mark.parametrize("seed", range(60))
def test_batches_taken_at_once_are_those_of_stepping(seed: int):
    """First token, end and preemptions of every request, steps and use of the engines."""
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, int(draw.integers(5, 120)))
    longer = int(draw.integers(1, 12))
    requests = replace(
        requests,
        output_tokens=ints(longer * requests.output_tokens),
        priority=ints(draw.integers(0, 3, len(requests))),
    )
    fleet = drawn_fleet(draw, requests)
    jump, step = (simulate_serving(requests, fleet, method=each) for each in ("jump", "step"))
    for name in ("wait_s", "ttft_s", "e2e_s", "n_preemptions", "is_finished"):
        assert np.array_equal(getattr(jump.times, name), getattr(step.times, name)), name
    for name in ("busy_frac", "cache_frac", "compute_frac", "bandwidth_frac"):
        assert np.array_equal(getattr(jump.use, name), getattr(step.use, name)), name
    assert jump.totals == step.totals


@pytest.mark.parametrize("method", ["jump", "step"])
@pytest.mark.parametrize(("n_stages", "n_engines"), [(2, 1), (2, 2), (7, 1)])
def test_prompts_that_preempt_one_another_for_ever_are_an_error(
    method: str, n_stages: int, n_engines: int
):
    """Admitted by their first chunks alone, prompts take each other's blocks; none is read."""
    of = staged(n_stages, n_blocks=6, long_prefill_tokens=4, scheduling="priority")
    admission = replace(of.limits.admission, reserves_prompt=False)
    of = replace(of, limits=replace(of.limits, admission=admission), n_engines=n_engines)
    requests = requests_of([0.0] * 4, [64] * 4, [2] * 4)
    with pytest.raises(InputError, match=r"[24] requests preempt one another for ever"):
        simulate_serving(requests, of, method=method)
    ample = replace(of, limits=replace(of.limits, n_blocks=60))
    assert simulate_serving(requests, ample, method=method).times.is_finished.all()


@pytest.mark.parametrize("seed", [50, 95])
def test_drawn_stages_without_reservation_end_or_are_an_error(seed: int):
    """Of 150 drawn ones, the two that used to run for ever; jumping and stepping say the same."""
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, int(draw.integers(5, 120)))
    longer = int(draw.integers(1, 12))
    requests = replace(
        requests,
        output_tokens=ints(longer * requests.output_tokens),
        priority=ints(draw.integers(0, 3, len(requests))),
    )
    fleet = drawn_fleet(draw, requests)
    admission = replace(fleet.limits.admission, reserves_prompt=False)
    limits = replace(fleet.limits, scheduling="priority", admission=admission)
    for method in ("jump", "step"):
        with pytest.raises(InputError, match="preempt one another for ever"):
            simulate_serving(requests, replace(fleet, limits=limits), method=method)
