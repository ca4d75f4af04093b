"""Engines that step together: against a slow group, single engines, and the regimes' formulas."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from fakes.steps import USUAL, work
from gpuplan.domain.columns import floats
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.simulation.engine import Fleet, LockStep
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.performance.kernels.regimes import ServingCase, steady_token_s
from gpuplan.performance.kernels.step import ExpertMatrices, StepWork
from gpuplan.simulation.serving.gaps import gaps_of
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.stream import can_stream
from gpuplan.studies.inference.step_table import lockstep_of, step_table
from kernels.cases import bent_table, fleet_of, limits_of, stream_of, true_time_s
from kernels.reference import Engine, Request, rules_of

EXPERTS = ExpertMatrices(
    flop=2e8, expert_bytes=3e8, peak_flop_per_s=1e15, n_experts=64.0, n_active=4.0, uneven_ranks=0.5
)


def shared_experts(n: int) -> StepWork:
    """A small network with experts that so many attention replicas share."""
    return work()._replace(experts=EXPERTS, n_data_parallel=float(n))


def grouped(limits, of: StepWork, layout: ServingLayout, n_replicas: int = 1, **changes) -> Fleet:
    sizes = {"max_tokens": limits.max_batch_tokens, "max_sequences": limits.max_sequences}
    return Fleet(
        limits=limits,
        table=step_table(of, USUAL, **sizes),
        n_engines=n_replicas * layout.n_engines,
        lockstep=lockstep_of(of, USUAL, layout=layout, **sizes),
        **changes,
    )


class SlowEngine(Engine):
    """The oracle's engine with its step in two halves."""

    def begin(self) -> tuple[tuple[int, float, int, list[int]], int]:
        self.now = self.schedule()
        prefills = [r for r in self.running if r.number in self.now and not r.is_decoding]
        decodes = [r.n_tokens for r in self.running if r.number in self.now and r.is_decoding]
        chunks = [self.now[r.number] for r in prefills]
        pairs = sum(n * (r.n_computed + n / 2) for n, r in zip(chunks, prefills, strict=True))
        ended = sum(r.n_computed + n == r.n_tokens for n, r in zip(chunks, prefills, strict=True))
        return (sum(chunks), pairs, ended, decodes), sum(chunks) + len(decodes)

    def end(self, at_s: float) -> None:
        self.now_s = at_s
        for request in list(self.running):
            if request.number in self.now:
                self.gain(request, self.now[request.number])


def slow_group(engines: list[SlowEngine], rows: list[Request], own_s, shared_s: float) -> None:
    """Requests in turn to the engines; every step lasts as long as the longest of them."""
    coming = [(row, engines[number % len(engines)]) for number, row in enumerate(rows)]
    now_s = 0.0
    while coming or any(e.running or e.waiting for e in engines):
        if not any(e.running or e.waiting for e in engines):
            now_s = max(now_s, coming[0][0].arrive_s)
        while coming and coming[0][0].arrive_s <= now_s:
            row, engine = coming.pop(0)
            engine.waiting.append(row)
        for engine in engines:
            engine.now_s = now_s
        begun = [engine.begin() for engine in engines]
        busy = [own_s(*load) for load, n in begun if n]
        now_s += max(busy, default=0.0) + shared_s * sum(n for _, n in begun)
        for engine in engines:
            engine.end(now_s)


@pytest.mark.parametrize("n", [2, 4])
def test_a_slow_group_agrees_request_by_request(n):
    of = work()
    for seed in range(12):
        draw = np.random.default_rng(400 + seed)
        requests = stream_of(draw, 40)
        requests = replace(
            requests, arrive_s=np.sort(requests.arrive_s + draw.uniform(0, 1e-3, 40))
        )
        limits = limits_of(draw, requests)
        rate_s = 10.0 ** draw.uniform(-6, -3)
        n_most = n * limits.max_batch_tokens
        lock = LockStep(
            n_engines=n,
            own=fleet_of(limits, of).table,
            shared_s=floats(rate_s * np.arange(n_most + 1)),
        )
        fleet = replace(fleet_of(limits, of, n_engines=n), lockstep=lock)
        found = simulate_serving(requests, fleet)
        rules = rules_of(limits)
        engines = [SlowEngine(rules, lambda *_: inf) for _ in range(n)]
        columns = (requests.arrive_s, requests.input_tokens, requests.output_tokens)
        rows = [
            Request(i, float(at), int(a), int(b))
            for i, (at, a, b) in enumerate(zip(*columns, strict=True))
        ]
        slow_group(engines, rows, lambda *x: true_time_s(*x, of), rate_s)
        for name, values in (("ttft_s", "first_s"), ("e2e_s", "end_s"), ("wait_s", "start_s")):
            expected = np.array([getattr(row, values) for row in rows]) - requests.arrive_s
            np.testing.assert_allclose(getattr(found.times, name), expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("is_ahead", [False, True])
def test_jumping_equals_stepping_bit_for_bit(is_ahead):
    for seed in range(60):
        draw = np.random.default_rng(7000 + seed)
        requests = stream_of(draw, 150)
        limits = limits_of(draw, requests, is_ahead=is_ahead)
        table = bent_table(draw, limits)
        rate_s = float(draw.choice([0.0, 1e-5]))
        shared_s = floats(1e-3 + rate_s * np.arange(3 * limits.max_batch_tokens + 1))
        lock = LockStep(n_engines=3, own=table, shared_s=shared_s)
        fleet = Fleet(
            limits=limits, table=table, n_engines=6, router="least_outstanding", lockstep=lock
        )
        jumped = simulate_serving(requests, fleet, method="jump", bin_s=0.1)
        stepped = simulate_serving(requests, fleet, method="step", bin_s=0.1)
        for name in ("wait_s", "ttft_s", "e2e_s"):
            one, other = getattr(jumped.times, name), getattr(stepped.times, name)
            assert one.tobytes() == other.tobytes(), (seed, name)
        assert jumped.totals.n_steps == stepped.totals.n_steps
        assert jumped.totals.n_preemptions == stepped.totals.n_preemptions


def test_a_group_of_one_is_an_engine_by_itself():
    for seed in range(10):
        draw = np.random.default_rng(seed)
        requests = stream_of(draw, 80)
        limits = limits_of(draw, requests)
        alone = fleet_of(limits, n_engines=3, router="least_outstanding")
        lock = LockStep(n_engines=1, own=alone.table, shared_s=floats([0.0]))
        together = simulate_serving(requests, replace(alone, lockstep=lock))
        apart = simulate_serving(requests, alone)
        assert together.times.e2e_s.tobytes() == apart.times.e2e_s.tobytes()
        assert together.times.ttft_s.tobytes() == apart.times.ttft_s.tobytes()


def evenly(n_engines: int, n_each: int) -> Requests:
    """Equal requests, as many to each engine, all at once."""
    n = n_engines * n_each
    return requests_of(np.zeros(n), np.full(n, 200), np.full(n, 100))


@pytest.mark.parametrize(
    "layout",
    [ServingLayout(dp=4, ep=4), ServingLayout(tp=2, pp=4), ServingLayout(dp=4, ep=4, pp=2)],
)
def test_equal_loads_take_what_the_formula_says(layout):
    """Where every engine carries the same, the group is the engine of the equal-load table."""
    of = shared_experts(4) if layout.dp > 1 else work()
    limits = limits_of(
        np.random.default_rng(0), evenly(1, 1), max_sequences=16, max_batch_tokens=3200,
        n_blocks=10**5,
    )  # fmt: skip
    fleet = grouped(limits, of, layout)
    together = simulate_serving(evenly(layout.n_engines, 16), fleet)
    one = simulate_serving(evenly(1, 16), replace(fleet, n_engines=1, lockstep=None))
    assert together.times.e2e_s.max() == pytest.approx(one.times.e2e_s.max(), rel=1e-6)


@pytest.mark.parametrize("layout", [ServingLayout(dp=4, ep=4), ServingLayout(pp=4)])
def test_a_full_replica_does_what_the_regime_says(layout):
    of = shared_experts(4) if layout.dp > 1 else work()
    n_each, n_in, n_out = 32, 200, 100
    n = 12 * n_each * layout.n_engines
    requests = requests_of(np.zeros(n), np.full(n, n_in), np.full(n, n_out))
    limits = limits_of(
        np.random.default_rng(0), requests, max_sequences=n_each, max_batch_tokens=8192,
        n_blocks=10**5,
    )  # fmt: skip
    found = simulate_serving(requests, grouped(limits, of, layout))
    rate = n * n_out / found.times.e2e_s.max()
    running = float(n_each * layout.n_engines)
    case = ServingCase(running, 0.0, float(n_in), float(n_out), 1e12, float(layout.pp))
    assert rate == pytest.approx(running / float(steady_token_s(of, USUAL, case, running)), rel=0.1)


def test_a_prompt_of_one_attention_replica_holds_up_the_others():
    """What independent engines would miss: a token of another replica waits for the prompt."""
    of, layout = shared_experts(4), ServingLayout(dp=4, ep=4)
    limits = limits_of(
        np.random.default_rng(0), evenly(1, 1), max_sequences=16, max_batch_tokens=8192,
        n_blocks=10**5,
    )  # fmt: skip
    # One long answer on the first engine; prompts for the others come while it is written.
    arrive = np.array([0.0, 0.1, 0.3, 0.5])
    requests = requests_of(arrive, [16, 8000, 8000, 8000], [400, 1, 1, 1])
    fleet = grouped(limits, of, layout)
    alone = simulate_serving(requests.take([0]), fleet).times
    beside = simulate_serving(requests, fleet).times
    late_s = beside.e2e_s[0] - alone.e2e_s[0]
    prompts_s = (beside.e2e_s - beside.wait_s)[1:] - alone.tpot_s[0]
    assert late_s == pytest.approx(prompts_s.sum(), rel=0.05)
    apart = replace(fleet, lockstep=None)
    assert simulate_serving(requests, apart).times.e2e_s[0] == pytest.approx(
        simulate_serving(requests.take([0]), apart).times.e2e_s[0]
    )


def test_batches_of_a_pipeline_step_by_themselves():
    assert (
        lockstep_of(work(), USUAL, layout=ServingLayout(tp=8, pp=2), max_tokens=8, max_sequences=4)
        is None
    )


def test_groups_must_be_whole_and_cannot_be_streamed():
    limits = limits_of(np.random.default_rng(0), evenly(1, 1), max_sequences=4)
    fleet = grouped(limits, shared_experts(2), ServingLayout(dp=2, ep=2))
    assert not can_stream(fleet)
    with pytest.raises(InputError, match="groups of 2"):
        simulate_serving(evenly(1, 4), replace(fleet, n_engines=3))
    with pytest.raises(InputError, match="lockstep"):
        gaps_of(evenly(1, 4), fleet)
