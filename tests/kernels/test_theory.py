"""Limits in which queueing theory knows the answer, inside confidence intervals."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.columns import floats
from gpuplan.domain.simulation.engine import EngineLimits, Fleet, StepTable
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import constant_table

N_SEEDS = 24
T_95 = 2.069  # Student, 23 degrees of freedom


def fleet(step_s: float, n_sequences: int, **changes: object) -> Fleet:
    limits = EngineLimits(
        max_batch_tokens=4096, max_sequences=n_sequences, n_blocks=10**6, block_tokens=16
    )
    table = constant_table(step_s, max_tokens=4096, max_sequences=n_sequences)
    return Fleet(limits=limits, table=table, **changes)  # type: ignore[arg-type]


def interval(means: list[float]) -> tuple[float, float]:
    values = np.array(means)
    return float(values.mean()), float(T_95 * values.std(ddof=1) / math.sqrt(len(values)))


@pytest.mark.parametrize("load_frac", [0.5, 0.8])
def test_one_sequence_of_one_token_is_m_d_1(load_frac: float):
    """Mean wait = rho s / 2(1 - rho) [Kleinrock1975]."""
    service_s, means = 0.05, []
    for seed in range(N_SEEDS):
        draw = np.random.default_rng(seed)
        arrive_s = np.cumsum(draw.exponential(service_s / load_frac, 20_000))
        one = np.ones(len(arrive_s), dtype=np.int64)
        found = simulate_serving(requests_of(arrive_s, one, one), fleet(service_s, 1))
        means.append(float(found.times.wait_s.mean()))
        np.testing.assert_allclose(found.times.ttft_s - found.times.wait_s, service_s, atol=1e-9)
    mean, half = interval(means)
    assert abs(mean - load_frac * service_s / (2 * (1 - load_frac))) < half


def erlang_c(n_servers: int, offered: float) -> float:
    terms = [offered**k / math.factorial(k) for k in range(n_servers)]
    last = offered**n_servers / math.factorial(n_servers) * n_servers / (n_servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(("n_sequences", "load_frac"), [(1, 0.7), (4, 0.8), (16, 0.9)])
def test_many_sequences_of_equal_steps_are_m_m_c(n_sequences: int, load_frac: float):
    """Exponential answers, a step so short that its grain vanishes: Erlang C [Erlang1917]."""
    n_tokens, step_s, means = 2000, 1e-4, []
    service_s = n_tokens * step_s
    for seed in range(N_SEEDS):
        draw = np.random.default_rng(seed)
        rate = load_frac * n_sequences / service_s
        arrive_s = np.cumsum(draw.exponential(1 / rate, 15_000))
        outputs = np.maximum(1, np.rint(draw.exponential(n_tokens, len(arrive_s))))
        stream = requests_of(arrive_s, np.ones(len(arrive_s)), outputs)
        means.append(
            float(simulate_serving(stream, fleet(step_s, n_sequences)).times.wait_s.mean())
        )
    offered = load_frac * n_sequences
    expected = erlang_c(n_sequences, offered) * service_s / (n_sequences - offered)
    mean, half = interval(means)
    assert abs(mean - expected) < half + step_s


def mean_outstanding(found: Outcome, sooner: np.ndarray, later: np.ndarray) -> float:
    return float((later - sooner).sum() / found.totals.span_s)


def test_littles_law_closes():
    """Outstanding = rate x residence, counted from events, not from the times themselves."""
    draw = np.random.default_rng(0)
    arrive_s = np.cumsum(draw.exponential(0.02, 5000))
    stream = requests_of(arrive_s, draw.integers(1, 500, 5000), draw.integers(1, 300, 5000))
    found = simulate_serving(stream, fleet(0.01, 64))
    start_s = arrive_s - arrive_s[0]
    instants = (np.arange(200_000) + 0.5) / 200_000 * found.totals.span_s
    end_s = np.sort(start_s + found.times.e2e_s)
    outstanding = np.searchsorted(start_s, instants) - np.searchsorted(end_s, instants)
    rate = len(stream) / found.totals.span_s
    assert outstanding.mean() == pytest.approx(rate * found.times.e2e_s.mean(), rel=1e-3)


def test_two_servers_beat_a_split_queue_and_chance():
    """Routing by outstanding requests waits least, a pair of draws less than taking turns."""
    draw = np.random.default_rng(1)
    arrive_s = np.cumsum(draw.exponential(0.2 / 8 / 0.85, 40_000))
    outputs = np.maximum(1, np.rint(draw.exponential(20, len(arrive_s))))
    stream = requests_of(arrive_s, np.ones(len(arrive_s)), outputs)
    wait = {
        router: simulate_serving(
            stream, fleet(0.01, 1, n_engines=8, router=router)
        ).times.wait_s.mean()
        for router in ("round_robin", "power_of_two", "least_outstanding")
    }
    assert wait["least_outstanding"] < wait["power_of_two"] < wait["round_robin"]


def shared_table(step_s: float, max_sequences: int) -> StepTable:
    """An iteration takes as long as it has sequences: the engine's speed is shared evenly."""
    bare = constant_table(0.0, max_tokens=max_sequences, max_sequences=max_sequences)
    each_s = floats(step_s * np.arange(max_sequences + 1))
    return replace(bare, token_device_s=each_s)


def lengths_of(law: str, mean: int, n: int, draw: np.random.Generator) -> np.ndarray:
    """Tokens of answers: the same mean, squared deviation 0, 1 or about 4 times its square."""
    if law == "fixed":
        return np.full(n, mean)
    if law == "exponential":
        return draw.geometric(1 / mean, n)
    is_long = draw.random(n) < 0.1
    return np.where(is_long, draw.geometric(1 / (5.5 * mean), n), draw.geometric(2 / mean, n))


@pytest.mark.parametrize("law", ["fixed", "exponential", "mixed"])
@pytest.mark.parametrize("load_frac", [0.4, 0.7])
def test_an_engine_that_shares_its_speed_is_m_g_1_ps(law: str, load_frac: float):
    """Mean residence = E[S] / (1 - rho), whatever the law of the lengths [Kleinrock1976].

    Tokens are served in turns, so a request of one token is not infinitely small beside a turn:
    with the mean answer at 400 tokens the grain is below the tolerance of half a per cent.
    """
    n_tokens, step_s, means = 400, 1e-4, []
    service_s = n_tokens * step_s
    for seed in range(N_SEEDS):
        draw = np.random.default_rng(seed)
        outputs = lengths_of(law, n_tokens, 8_000, draw)
        arrive_s = np.cumsum(draw.exponential(service_s / load_frac, len(outputs)))
        limits = EngineLimits(
            max_batch_tokens=512, max_sequences=512, n_blocks=10**7, block_tokens=16
        )
        of = Fleet(limits=limits, table=shared_table(step_s, 512))
        found = simulate_serving(requests_of(arrive_s, np.ones(len(outputs)), outputs), of)
        is_steady = slice(1000, 7500)
        # Answers of a seed are not quite as long as they should be on average.
        ratio = found.times.e2e_s[is_steady].mean() / (outputs[is_steady].mean() * step_s)
        means.append(float(ratio) * service_s)
    mean, half = interval(means)
    expected = service_s / (1 - load_frac)
    assert abs(mean - expected) < half + 0.005 * expected
    assert half < 0.06 * expected
