"""Single gaps: their number and sum are those of the answers, their lengths those of the steps."""

import numpy as np
import pytest

from fakes.steps import work
from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.traffic.stream import Requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.gaps import gaps_of
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.simulation.serving.sketch import ERROR_FRAC
from kernels.cases import constant_table, fleet_of, stream_of

WORK = work()


def load(n: int = 300, seed: int = 0) -> Requests:
    return stream_of(np.random.default_rng(seed), n)


def ample(requests: Requests, **changes: object) -> Fleet:
    limits = EngineLimits(max_batch_tokens=300, max_sequences=24, n_blocks=10**6, block_tokens=16)
    return fleet_of(limits, WORK, **changes)


@pytest.mark.parametrize("router", ["round_robin", "least_outstanding", "power_of_two"])
@pytest.mark.parametrize("seed", range(4))
def test_number_and_mean_are_those_of_the_answers(router: str, seed: int):
    requests = load(seed=seed)
    fleet = ample(requests, n_engines=3, router=router, seed=seed)
    outcome, found = simulate_serving(requests, fleet), gaps_of(requests, fleet)
    assert outcome.totals.n_preemptions == 0
    n_gaps = requests.output_tokens - 1
    assert found.n == n_gaps.sum()
    mean_s = (outcome.times.tpot_s * n_gaps).sum() / n_gaps.sum()
    assert found.mean_s == pytest.approx(mean_s, rel=ERROR_FRAC)
    assert found.p50_s <= found.p99_s <= found.p999_s <= found.max_s
    # No answer's mean gap is longer than the longest single one.
    assert outcome.times.tpot_s.max() <= found.max_s * (1 + 2 * ERROR_FRAC)


def test_equal_steps_are_equal_gaps():
    limits = EngineLimits(max_batch_tokens=64, max_sequences=8, n_blocks=1000, block_tokens=16)
    fleet = Fleet(limits=limits, table=constant_table(0.02, max_tokens=64, max_sequences=8))
    found = gaps_of(requests_of([0.0, 0.5, 7.0], [10, 200, 5], [30, 5, 9]), fleet)
    assert found.n == 29 + 4 + 8
    for value in (found.mean_s, found.p50_s, found.p999_s, found.max_s):
        assert value == pytest.approx(0.02, rel=ERROR_FRAC)


def test_a_long_prompt_is_a_long_gap_for_those_who_decode():
    limits = EngineLimits(max_batch_tokens=4096, max_sequences=8, n_blocks=5000, block_tokens=16)
    fleet = fleet_of(limits, WORK)
    calm = gaps_of(requests_of([0.0], [10], [200]), fleet)
    disturbed = gaps_of(requests_of([0.0, 0.4], [10, 4000], [200, 1]), fleet)
    assert disturbed.p50_s == pytest.approx(calm.p50_s, rel=0.02)
    assert disturbed.max_s > 1.02 * calm.max_s
    assert disturbed.p99_s == calm.p99_s


def test_answers_of_one_token_have_no_gaps_and_policies_are_refused():
    requests = requests_of([0.0, 1.0], [10, 10], [1, 1])
    assert gaps_of(requests, ample(requests)) is None
    limits = EngineLimits(
        max_batch_tokens=64, max_sequences=8, n_blocks=100, block_tokens=16, long_prefill_tokens=32
    )
    with pytest.raises(InputError, match="--itl"):
        gaps_of(requests, fleet_of(limits, WORK))
