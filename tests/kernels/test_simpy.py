"""SimPy models, fed the same draws, agree with the kernels request by request."""

import numpy as np
import pytest

from gpuplan.domain.simulation.batching import BatchPolicy, BatchServers
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.batching import simulate_servers
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import constant_table
from kernels.test_batching import ones, table_of

simpy = pytest.importorskip("simpy")
NS = 1e-9  # models count whole nanoseconds: their sums are exact, ties are ties


class Gate:
    """Requests that have come, and a bell that rings when some do."""

    def __init__(self, env, arrive: np.ndarray) -> None:
        self.env, self.queue, self.bell = env, [], env.event()
        env.process(self._arrivals(arrive))

    def _arrivals(self, arrive: np.ndarray):
        for at in np.unique(arrive):
            yield self.env.timeout(int(at) - self.env.now)
            self.queue += np.flatnonzero(arrive == at).tolist()
            if not self.bell.triggered:
                self.bell.succeed()

    def ring(self):
        """The next time that somebody comes."""
        self.bell = self.env.event()
        return self.bell


def run_engine(arrive: np.ndarray, outputs: np.ndarray, n_slots: int, step: int):
    """First come, first served; slots; every iteration takes `step` and gives each one token."""
    env = simpy.Environment()
    gate = Gate(env, arrive)
    done: dict[int, tuple[int, int, int]] = {}

    def engine():
        made: dict[int, int] = {}
        started: dict[int, int] = {}
        first: dict[int, int] = {}
        while len(done) < len(arrive):
            if not made and not gate.queue:
                yield gate.ring()
            yield env.timeout(0)  # who arrives at this instant is seen
            while gate.queue and len(made) < n_slots:
                i = gate.queue.pop(0)
                made[i], started[i] = 0, env.now
            yield env.timeout(step)
            for i in list(made):
                made[i] += 1
                first.setdefault(i, env.now)
                if made[i] == outputs[i]:
                    done[i] = (started[i], first[i], env.now)
                    del made[i]

    env.process(engine())
    env.run()
    return done


@pytest.mark.parametrize("seed", range(8))
def test_slots_and_equal_iterations(seed: int):
    """A quarter of an iteration is the grain of arrivals: many fall on the end of one."""
    draw = np.random.default_rng(seed)
    n, n_slots, step = 120, int(draw.integers(1, 9)), 1_000_000
    mean = 40 / n_slots / draw.uniform(0.5, 1.3)  # quarters of an iteration; answers of ten tokens
    arrive = (step // 4) * np.cumsum(draw.exponential(mean, n).astype(int))
    arrive -= arrive[0]
    outputs = draw.geometric(0.1, n)
    limits = EngineLimits(
        max_batch_tokens=64, max_sequences=n_slots, n_blocks=10**5, block_tokens=16
    )
    table = constant_table(step * NS, max_tokens=64, max_sequences=n_slots)
    requests = requests_of(arrive * NS, np.ones(n), outputs)
    found = simulate_serving(requests, Fleet(limits=limits, table=table))
    compare(found.times, arrive, run_engine(arrive, outputs, n_slots, step))
    assert found.times.wait_s.max() > step * NS


def run_batcher(arrive: np.ndarray, policy: BatchPolicy, times: list[int]):
    """One server that takes a preferred size at once, and anything after the delay."""
    env = simpy.Environment()
    gate = Gate(env, arrive)
    done: dict[int, tuple[int, int, int]] = {}
    delay = round((policy.max_delay_s or 0.0) / NS)

    def chosen() -> int:
        n = min(len(gate.queue), policy.max_batch)
        if delay and env.now - arrive[gate.queue[0]] >= delay:
            return n
        filled = [size for size in policy.sizes if size <= n]
        return max(filled) if filled else (0 if delay else n)

    def server():
        while len(done) < len(arrive):
            if not gate.queue:
                yield gate.ring()
            n = chosen()
            if n == 0:
                left = int(arrive[gate.queue[0]]) + delay - env.now
                yield env.timeout(left) | gate.ring()
                continue
            members, start = [gate.queue.pop(0) for _ in range(n)], env.now
            yield env.timeout(times[n])
            done.update(dict.fromkeys(members, (start, env.now, env.now)))

    env.process(server())
    env.run()
    return done


@pytest.mark.parametrize("seed", range(12))
def test_dynamic_batcher(seed: int):
    draw = np.random.default_rng(100 + seed)
    most, n = int(draw.integers(2, 9)), 200
    sizes = tuple({int(size) for size in draw.integers(1, most + 1, int(draw.integers(0, 3)))})
    delay = 1000 * int(draw.choice([0, 400, 3000, 20_000]))
    policy = BatchPolicy(max_batch=most, max_delay_s=delay * NS, preferred_sizes=sizes)
    times = [0, *(1000 * draw.integers(200, 3000, most)).tolist()]
    # Times are whole microseconds and each arrival has its own remainder: ends meet no arrival.
    mean = 1600 / draw.uniform(0.5, 1.5 * most)
    arrive = 1000 * np.cumsum(draw.exponential(mean, n).astype(int) + 1) + np.arange(n)
    arrive -= arrive[0]
    servers = BatchServers(policy=policy, table=table_of([t * NS for t in times[1:]]))
    found = simulate_servers(ones(arrive * NS), servers)
    compare(found.times, arrive, run_batcher(arrive, policy, times))
    assert found.times.wait_s.max() > 0


def compare(times, arrive: np.ndarray, expected: dict[int, tuple[int, int, int]]) -> None:
    rows = range(len(arrive))
    for k, values_s in enumerate((times.wait_s, times.ttft_s, times.e2e_s)):
        wanted = np.array([expected[i][k] for i in rows]) - arrive
        np.testing.assert_array_equal(np.rint(values_s / NS).astype(int), wanted)
