"""Ranks that share a sequence, and adapters beside the model: limits and laws."""

import pytest

from fakes.models import FFN, HEAD_DIM, HIDDEN, N_HEADS, dense_group, device, model
from fakes.steps import BF16, IDEAL, REGIME, USUAL, case, link, work
from gpuplan.domain.inference.serving import LoraUse, ServingLayout
from gpuplan.performance.kernels.regimes import n_held
from gpuplan.performance.kernels.step import (
    Adapters,
    StepLoad,
    StepWork,
    n_adapters_touched,
    step_time_s,
)
from gpuplan.performance.serving.work import step_work

LARGE = model(dense_group(n_layers=60))
LONG_PROMPT = StepLoad(100_000.0, 50_000.0, 1.0, 0.0, 0.0)
LONG_CONTEXTS = StepLoad(0.0, 0.0, 0.0, 8.0, 1_000_000.0)


def shared(cp: int, *, rate: float = 450e9) -> StepWork:
    return step_work(LARGE, device(), storage=BF16, layout=ServingLayout(cp=cp), link=link(rate))


def adapted(use: LoraUse | None, *, tp: int = 1) -> StepWork:
    layout = ServingLayout(tp=tp)
    return step_work(LARGE, device(), storage=BF16, layout=layout, link=link(), adapters=use)


def test_one_rank_shares_nothing():
    assert shared(1) == work(LARGE)


@pytest.mark.parametrize("cp", [2, 4, 8])
def test_free_links_divide_a_long_prompt(cp: int):
    alone, together = (step_time_s(shared(n, rate=1e18), IDEAL, LONG_PROMPT) for n in (1, cp))
    # The head's one row and the gather's own launches remain.
    assert together == pytest.approx(alone / cp, rel=0.05)


def test_decoding_shares_the_cache_and_not_the_weights():
    bare = LONG_CONTEXTS._replace(context_tokens=0.0)
    for load, gain in ((LONG_CONTEXTS, 3.0), (bare, 1.0)):
        alone, together = (step_time_s(shared(n), IDEAL, load) for n in (1, 4))
        assert alone / together == pytest.approx(gain, abs=1.0)
    assert step_time_s(shared(4), USUAL, bare) >= step_time_s(shared(1), USUAL, bare)


def test_slow_links_undo_the_gain():
    quick, slow = (step_time_s(shared(4, rate=r), USUAL, LONG_PROMPT) for r in (450e9, 1e8))
    assert quick < step_time_s(shared(1), USUAL, LONG_PROMPT) < slow


def test_ranks_that_share_sequences_hold_more_of_them():
    assert n_held(shared(4), REGIME, case()) == pytest.approx(4 * n_held(shared(1), REGIME, case()))
    assert ServingLayout(tp=2, cp=4).n_accelerators == 8


def test_prompt_traffic_is_the_cache_of_a_layer():
    kv_bytes = 2 * 2 * HEAD_DIM * 2
    assert shared(2).context.cache_bytes == pytest.approx(kv_bytes)
    assert shared(2).context.answer_bytes == pytest.approx(2 * N_HEADS * (2 * HEAD_DIM + 1))


def test_adapters_cost_their_rank():
    width = 4 * HIDDEN + 2 * N_HEADS * HEAD_DIM + 2 * 2 * HEAD_DIM + 3 * (HIDDEN + FFN)
    found = adapted(LoraUse(rank=16)).adapters
    assert found.flop == pytest.approx(2 * 16 * 60 * width)
    assert found.adapter_bytes == pytest.approx(2 * 16 * 60 * width)


def test_no_adapters_cost_nothing():
    none = adapted(LoraUse(rank=16, request_frac=0.0))
    assert none == adapted(None)


@pytest.mark.parametrize(
    "load", [LONG_PROMPT, LONG_CONTEXTS, StepLoad(512.0, 256.0, 1.0, 64.0, 1e3)]
)
def test_more_rank_adapters_and_use_are_never_quicker(load: StepLoad):
    times = [
        step_time_s(adapted(use), USUAL, load)
        for use in (
            None, LoraUse(rank=8, request_frac=0.5), LoraUse(rank=8), LoraUse(rank=64),
            LoraUse(rank=64, n_adapters=32),
        )
    ]  # fmt: skip
    assert times == sorted(times)
    assert times[0] < times[1]


def test_a_usual_adapter_costs_little_beside_the_model():
    load = StepLoad(0.0, 0.0, 0.0, 32.0, 1000.0)
    big = model(dense_group(n_layers=60))
    plain, with_one = (step_time_s(adapted(use), USUAL, load) for use in (None, LoraUse(rank=16)))
    assert big.main.n_layers == 60
    assert 1.0 < with_one / plain < 2.0


def test_distinct_adapters_follow_the_urn():
    urn = Adapters(n_adapters=8.0, token_frac=1.0)
    assert n_adapters_touched(urn, 1.0) == pytest.approx(1.0)
    assert n_adapters_touched(urn, 2.0) == pytest.approx(2 - 1 / 8)
    assert n_adapters_touched(urn, 1e6) == pytest.approx(8.0)
    assert n_adapters_touched(Adapters(), 100.0) == 0.0
