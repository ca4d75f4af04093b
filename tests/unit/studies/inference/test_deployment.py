"""One deployment, evaluated: blocks, limits and start agree with the formulas they rest on."""

from dataclasses import replace

import numpy as np
import pytest

from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.models import find_model
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.inference.performance import EngineChoice, ServingLoad, ServingSetup
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.simulation.simulation import AdmissionRequest, EngineRequest
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.performance.kernels.regimes import decode_token_s, prefill_s
from gpuplan.performance.memory.cache import N_NULL_BLOCKS, NO_CACHE_BLOCKS, n_cache_blocks
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.simulation.serving.run import simulate_serving
from gpuplan.studies.inference.deployment import evaluated
from gpuplan.studies.inference.prefix import fresh_requests
from gpuplan.units import GIB


def setup(model="Llama-3.1-8B", on="h100-sxm", *, version="0.15", layout=None, **load):
    network = find_model(model)
    card = find_accelerator(on, read_catalog()).accelerator
    pair = tuple(int(x) for x in version.split(".")[:2])
    asked = {"regime": "poisson", "input_tokens": 1000.0, "output_tokens": 200.0,
             "requests_per_s": 4.0, **load}  # fmt: skip
    return ServingSetup(
        model=network,
        accelerator=card,
        storage=storage_of(network, None, None)[0],
        layout=layout or ServingLayout(),
        engine=EngineChoice(name="vllm", version=version),
        settings=engine_settings("vllm", pair, card),
        load=ServingLoad(**asked),
    )


def test_blocks_are_what_the_memory_holds_by_hand():
    # 32 layers x 2 x 8 heads x 128 x 2 bytes = 131,072 bytes a token, 2 MiB a block of 16.
    of = evaluated(setup())
    assert of.n_blocks == int(of.memory.cache_bytes // (16 * 131_072)) - N_NULL_BLOCKS
    assert of.limits.n_blocks == of.n_blocks


def test_stages_of_a_replica_have_one_scheduler():
    whole, staged = evaluated(setup()), evaluated(setup(layout=ServingLayout(pp=2)))
    limits, of = staged.limits, staged.setup.settings
    assert (limits.max_sequences, limits.admission.n_stages) == (of.max_sequences, 2)
    # Half of the layers lie on a stage: a block takes half, and fewer weights leave more room.
    assert staged.n_blocks > 2 * whole.n_blocks
    assert staged.fleet(3).n_engines == 3


def test_stages_of_ranks_that_step_together_are_apart():
    of = evaluated(setup(layout=ServingLayout(pp=2, dp=2)))
    assert (of.limits.admission.n_stages, of.fleet(3).n_engines) == (1, 12)
    assert of.limits.max_sequences == of.setup.settings.max_sequences // 2


def test_a_model_without_a_cache_never_runs_out_of_blocks():
    n = n_cache_blocks(GIB, sequence_bytes=0.0, context_tokens=100, block_tokens=16)
    assert n == NO_CACHE_BLOCKS


def test_what_does_not_fit_says_so_and_still_has_an_answer():
    of = evaluated(setup("Llama-3.3-70B", "l4"))
    assert not of.fits
    assert of.n_blocks > 0


def test_a_lone_start_is_a_fixed_time_steps_and_a_part_of_the_prompt():
    of = evaluated(setup(version="0.13"))
    assert not of.limits.admission.is_ahead
    r, alone_s = of.regime, float(decode_token_s(of.work, of.step, of.case, 1.0))
    prompt_s = float(prefill_s(of.work, of.step, of.case))
    expected = r.serve_start_s + r.start_prompts * prompt_s + r.start_steps * alone_s
    assert of.start_s == pytest.approx(expected)


def test_an_engine_that_plans_ahead_loses_one_step_inside_itself():
    of = setup(version="0.15")
    ahead = evaluated(of)
    plain = evaluated(of, scheduler=EngineRequest(admission=AdmissionRequest(is_ahead=False)))
    assert ahead.limits.admission.is_ahead
    alone_s = float(decode_token_s(plain.work, plain.step, plain.case, 1.0))
    assert plain.start_s - ahead.start_s == pytest.approx(alone_s)


def test_a_cached_prefix_is_held_but_not_read():
    plain, hit = evaluated(setup()), evaluated(setup(cached_input_frac=0.75))
    fresh = fresh_requests(requests_of([0.0, 1.0], [1000, 400], [10, 10]), 0.75)
    assert list(fresh.input_tokens) == [250, 100]
    # 450 of 1,200 tokens are a sequence's own: its blocks are scarcer by as much.
    assert hit.limits.n_blocks == pytest.approx(plain.limits.n_blocks * 450 / 1200, rel=0.05)
    assert hit.most_running == pytest.approx(plain.most_running, rel=0.05)
    assert hit.start_s < plain.start_s


def test_blocks_that_are_asked_for_are_taken():
    of = evaluated(setup(layout=ServingLayout(pp=2)), scheduler=EngineRequest(n_blocks=900))
    assert of.limits.n_blocks == 900


def test_slower_steps_leave_less_capacity():
    of = evaluated(setup())
    assert of.capacity_per_s(token_limit_s=0.02) <= of.capacity_per_s()
    assert of.capacity_per_s(token_limit_s=1e-6) == 0.0
    longer = evaluated(replace(of.setup, load=replace(of.setup.load, output_tokens=400.0)))
    assert longer.capacity_per_s() < of.capacity_per_s()


@pytest.mark.parametrize("name", ["Llama-3.3-70B", "DeepSeek-V3.1"])
def test_a_cached_prefix_costs_a_prompt_what_prompts_cost(name):
    """Latent attention does 3.4 times the arithmetic for a token that is decoded."""
    load = {"input_tokens": 40_000.0, "cached_input_frac": 0.9}
    of = evaluated(setup(name, "h200-sxm", layout=ServingLayout(tp=8), **load))
    work, n = of.table.attention, of.cached_tokens
    assert n == pytest.approx(36_000)
    assert work.prefix_prefill_flop == pytest.approx(work.prefill_flop * n)
    assert work.prefix_decode_flop == pytest.approx(work.decode_flop * n)
    asked = fresh_requests(requests_of([0.0], [40_000], [2]), 0.9)
    ttft_s = float(simulate_serving(asked, of.fleet()).times.ttft_s[0])
    assert ttft_s == pytest.approx(of.start_s + of.prompt_s, rel=0.1)


# What vLLM's own get_kv_cache_groups makes of as many layers, windows first: groups of windows, of
# full attention, layers of the largest. All 24 kinds of the catalog were compared, by two versions.
ENGINE_GROUPS = {
    ("google/gemma-3-27b-it", "0.32.0"): (6, 1, 10),
    ("google/gemma-3-27b-it", "0.15.1"): (6, 1, 10),
    ("google/gemma-3-4b-it", "0.32.0"): (6, 1, 5),
    ("google/gemma-3-1b-it", "0.15.1"): (6, 1, 4),
    ("openai/gpt-oss-20b", "0.32.0"): (1, 1, 12),
    ("google/gemma-2-27b", "0.32.0"): (1, 1, 23),
    ("mistralai/Ministral-8B-Instruct-2410", "0.32.0"): (1, 0, 36),
}


@pytest.mark.parametrize(("model", "version"), ENGINE_GROUPS)
def test_a_model_has_the_groups_that_its_engine_makes_of_its_layers(model: str, version: str):
    of = evaluated(setup(model, "b200-sxm", version=version))
    pool = of.limits.admission.blocks.hybrid
    assert pool is not None
    kinds = [one.kind for one in pool.groups]
    expected = (kinds.count("window"), kinds.count("full"), pool.n_layers)
    assert expected == ENGINE_GROUPS[model, version]
    assert kinds == sorted(kinds, reverse=True)
    # A block is 16 tokens of one group's layers.
    cache = next(cache for _, cache in of.setup.model.caches())
    each = 16 * pool.n_layers * 2 * cache.elements_per_head * cache.n_heads
    assert pool.n_blocks == int(of.memory.cache_bytes // each) - N_NULL_BLOCKS


@pytest.mark.parametrize(
    ("model", "version", "asked"),
    [
        ("Llama-3.1-8B", "0.32", {}),  # all layers alike
        ("openai/gpt-oss-20b", "0.9.0", {}),  # before the hybrid KV cache
        ("openai/gpt-oss-20b", "0.32", {"admission": AdmissionRequest(groups=())}),
        ("openai/gpt-oss-20b", "0.32", {"n_blocks": 5000}),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "0.32", {}),  # off for chunks by default
    ],
)
def test_there_is_no_pool_of_groups_where_the_engine_has_none(model: str, version: str, asked):
    of = evaluated(setup(model, "b300-sxm", version=version), scheduler=EngineRequest(**asked))
    assert of.limits.admission.blocks.hybrid is None


def test_a_tight_pool_of_groups_is_simulated_block_by_block():
    """Sequences are counted as vLLM counts them: all groups take blocks of one pool."""
    of = evaluated(setup("openai/gpt-oss-20b", "l4", version="0.32"))
    few = replace(
        of.limits.admission.blocks, hybrid=replace(of.limits.admission.blocks.hybrid, n_blocks=300)
    )
    limits = replace(of.limits, admission=replace(of.limits.admission, blocks=few))
    requests = requests_of([0.0] * 8, [1000] * 8, [200] * 8)
    ample, tight = (
        simulate_serving(requests, replace(of.fleet(), limits=each)) for each in (of.limits, limits)
    )
    # 75 blocks of full attention each, and 9 of a window: three at once.
    assert ample.times.wait_s.max() < tight.times.wait_s.max()
    assert tight.n_completed == 8


def test_the_quick_way_of_groups_is_block_by_block():
    of = evaluated(setup("google/gemma-3-4b-it", "l4", version="0.32"))
    draw = np.random.default_rng(4)
    arrive = np.cumsum(draw.exponential(0.4, 300))
    requests = requests_of(arrive, draw.integers(10, 4000, 300), draw.integers(1, 300, 300))
    quick, slow = (simulate_serving(requests, of.fleet(), method=how) for how in ("jump", "step"))
    assert quick.times.e2e_s.tolist() == slow.times.e2e_s.tolist()
    assert quick.totals.n_steps == slow.totals.n_steps
    assert quick.times.wait_s.tolist() == slow.times.wait_s.tolist()
