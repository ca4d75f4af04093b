"""Who joins when: prompts that are not cut, and ends that are foreseen for some requests alone."""

from dataclasses import replace

import pytest

from gpuplan.domain.simulation.engine import Admission, EngineLimits, Fleet
from gpuplan.domain.traffic.stream import Grouping, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import constant_table

STEP_S = 0.01


def fleet(admission: Admission, **changes: int) -> Fleet:
    values = {"max_batch_tokens": 64, "max_sequences": 8, "n_blocks": 100, "block_tokens": 16}
    limits = EngineLimits(**(values | changes), admission=admission)
    return Fleet(limits=limits, table=constant_table(STEP_S, max_tokens=64, max_sequences=8))


def test_prompts_that_are_not_cut_wait_until_they_fit_a_step():
    requests = requests_of([0.0, 0.0], [40, 40], [1, 1])
    cut, whole = (
        simulate_serving(requests, fleet(Admission(chunks_prompts=cuts))).times.ttft_s.tolist()
        for cuts in (True, False)
    )
    assert cut == whole == pytest.approx([STEP_S, 2 * STEP_S])
    # A third comes to 24 tokens left of the first step and fits the second beside the other.
    requests = requests_of([0.0, 0.0, 0.0], [40, 40, 24], [1, 1, 1])
    cut, whole = (
        simulate_serving(requests, fleet(Admission(chunks_prompts=cuts))).totals.n_steps
        for cuts in (True, False)
    )
    assert (cut, whole) == (2, 2)


@pytest.mark.parametrize(("name", "most"), [("max_tokens", 63), ("max_sequences", 7)])
def test_a_step_table_that_is_too_short_is_refused(name: str, most: int):
    sizes = {"max_tokens": 64, "max_sequences": 8, name: most}
    short = replace(fleet(Admission()), table=constant_table(STEP_S, **sizes))
    with pytest.raises(InputError, match=f"step table: ends at {most} "):
        simulate_serving(requests_of([0.0], [40], [2]), short)


def test_longer_than_a_step_is_refused_where_prompts_are_not_cut():
    requests = requests_of([0.0, 1.0], [65, 30], [1, 1])
    found = simulate_serving(requests, fleet(Admission(chunks_prompts=False)))
    assert found.refused == (("longer than an iteration, without chunked prefill", 1),)


@pytest.mark.parametrize(("asked", "n_steps"), [(4, 4), (9, 5)])
def test_an_end_by_eos_takes_one_more_step_where_max_tokens_says_so(asked: int, n_steps: int):
    """Scheduling ahead: another response goes on, so that the step beyond the end is computed."""
    grouping = Grouping(max_tokens=[asked, 6])
    requests = requests_of([0.0, 0.0], [10, 10], [4, 6], grouping=grouping)
    found = simulate_serving(requests, fleet(Admission(is_ahead=True)))
    assert found.times.e2e_s.tolist() == pytest.approx([4 * STEP_S, 6 * STEP_S])
    # 20 tokens of prompts, three decodes of both, two of the other alone, and the row too many.
    assert found.totals.n_computed_tokens == 20 + 3 * 2 + 2 + (n_steps - 4)


@pytest.mark.parametrize("method", ["jump", "step"])
@pytest.mark.parametrize("n_engines", [1, 2])
def test_prompts_that_preempt_one_another_for_ever_are_an_error(method: str, n_engines: int):
    """Of equal priority and arrival vLLM preempts the first: neither of two is read to its end."""
    of = fleet(Admission(reserves_prompt=False), n_blocks=6, long_prefill_tokens=4)
    of = replace(of, limits=replace(of.limits, scheduling="priority"), n_engines=n_engines)
    requests = requests_of([0.0] * 4, [64] * 4, [2] * 4)
    with pytest.raises(InputError, match="requests preempt one another for ever"):
        simulate_serving(requests, of, method=method)
    ample = replace(of, limits=replace(of.limits, n_blocks=60))
    assert simulate_serving(requests, ample, method=method).times.is_finished.all()


def test_a_cache_may_end_what_would_not_end_without():
    """A preempted prompt finds what it had read; no text is shared."""
    of = fleet(Admission(reserves_prompt=False), n_blocks=6, long_prefill_tokens=4)
    of = replace(of, limits=replace(of.limits, scheduling="priority"))
    requests = requests_of([0.0, 0.0], [64, 64], [2, 2])
    with pytest.raises(InputError):
        simulate_serving(requests, of)
    cached = replace(of, limits=replace(of.limits, caches_prefixes=True))
    assert simulate_serving(requests, cached).times.is_finished.all()
