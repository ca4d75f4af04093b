"""Routing: engines advanced on demand equal engines stepped one by one, and nothing is lost."""

from collections import deque

import numpy as np
import pytest

from fakes.steps import work
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import fleet_of, limits_of, stream_of, true_time_s
from kernels.reference import Engine, Request, Rules, rules_of

WORK = work()


class Stepped:
    """A reference engine whose iteration in progress cannot be taken back."""

    def __init__(self, rules: Rules) -> None:
        self.engine = Engine(rules, lambda *load: true_time_s(*load, WORK))
        self.coming: deque[Request] = deque()
        self.sent: list[Request] = []

    def reach(self, until_s: float) -> None:
        """Take every iteration that begins before this instant."""
        engine = self.engine
        while engine.running or engine.waiting or self.coming:
            if not engine.running and not engine.waiting:
                engine.now_s = max(engine.now_s, self.coming[0].arrive_s)
            if engine.now_s >= until_s:
                return
            while self.coming and self.coming[0].arrive_s <= engine.now_s:
                engine.waiting.append(self.coming.popleft())
            engine.step()

    def n_outstanding(self, at_s: float) -> int:
        return sum(r.end_s is None or r.end_s > at_s for r in self.sent)


@pytest.mark.parametrize("seed", range(12))
def test_least_outstanding_equals_a_slow_fleet(seed: int):
    draw = np.random.default_rng(seed)
    requests = stream_of(draw, 60)
    requests = requests.take(np.arange(60))
    limits = limits_of(draw, requests)
    rules = rules_of(limits)
    engines = [Stepped(rules) for _ in range(3)]
    rows = []
    for number, at in enumerate(requests.arrive_s - requests.arrive_s[0]):
        for engine in engines:
            engine.reach(float(at))
        counts = [engine.n_outstanding(float(at)) for engine in engines]
        chosen = engines[counts.index(min(counts))]
        row = Request(
            number, float(at), int(requests.input_tokens[number]),
            int(requests.output_tokens[number]),
        )  # fmt: skip
        chosen.coming.append(row)
        chosen.sent.append(row)
        rows.append(row)
    for engine in engines:
        engine.reach(np.inf)
    fleet = fleet_of(limits, WORK, n_engines=3, router="least_outstanding")
    found = simulate_serving(requests, fleet)
    ends = np.array([r.end_s - r.arrive_s for r in rows])
    np.testing.assert_allclose(found.times.e2e_s, ends, rtol=1e-9, atol=1e-8)
    assert found.times.n_preemptions.tolist() == [r.n_preemptions for r in rows]


@pytest.mark.parametrize("router", ["round_robin", "least_outstanding", "power_of_two"])
def test_a_fleet_of_one_is_the_engine(router: str):
    draw = np.random.default_rng(5)
    requests = stream_of(draw, 300)
    limits = limits_of(draw, requests)
    alone = simulate_serving(requests, fleet_of(limits, WORK))
    routed = simulate_serving(requests, fleet_of(limits, WORK, router=router))
    np.testing.assert_array_equal(alone.times.e2e_s, routed.times.e2e_s)
    assert alone.totals.n_steps == routed.totals.n_steps


@pytest.mark.parametrize("router", ["round_robin", "least_outstanding", "power_of_two"])
def test_same_input_same_bytes_and_nothing_lost(router: str):
    draw = np.random.default_rng(9)
    requests = stream_of(draw, 500)
    limits = limits_of(draw, requests)
    fleet = fleet_of(limits, WORK, n_engines=5, router=router, seed=3)
    a, b = simulate_serving(requests, fleet), simulate_serving(requests, fleet)
    for name in ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions"):
        assert getattr(a.times, name).tobytes() == getattr(b.times, name).tobytes()
    assert a.n_completed + a.n_refused == len(requests)
    assert a.totals.n_free_blocks == 5 * limits.n_blocks
    assert np.all(a.times.wait_s >= 0)
    assert np.all(a.times.ttft_s >= a.times.wait_s)
    assert np.all(a.times.e2e_s >= a.times.ttft_s)
