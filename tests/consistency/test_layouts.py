"""Every layout of a plan runs: it fits by `fit`, it simulates, it spans servers over a network.

Dense models, experts and latent attention on accelerators that hold them in one, in a server, or
over several.
"""

from pathlib import Path

import pytest

from consistency.plans import planned, reopened
from gpuplan import api
from gpuplan.catalog.offers import read_offers
from gpuplan.domain.plan.answer import Answer, PlannedPool
from gpuplan.domain.plan.candidate import PoolLayout
from gpuplan.domain.requests.requests import FitRequest
from gpuplan.report.plan.document import plan_text
from gpuplan.studies.naming import model_named

CASES = {
    "dense on one": ("Qwen/Qwen3-8B", "L40S"),
    "dense, tensor parallel": ("meta-llama/Llama-3.3-70B-Instruct", "A100"),
    "dense, on AMD": ("meta-llama/Llama-3.3-70B-Instruct", "MI300X"),
    "dense, over servers": ("meta-llama/Llama-3.1-405B-Instruct", "H100"),
    "dense, tensor parallel over PCIe": ("Qwen/Qwen2.5-14B-Instruct", "L4"),
    "experts": ("Qwen/Qwen3-235B-A22B", "H200"),
    "experts in 4 bits": ("openai/gpt-oss-120b", "H100"),
    "latent attention": ("deepseek-ai/DeepSeek-R1", "H200"),
    "latent attention over servers": ("deepseek-ai/DeepSeek-R1", "H100"),
    "latent attention, large memory": ("deepseek-ai/DeepSeek-R1", "B300"),
}
CONTEXT_TOKENS = 1200
REPLAY_S = 40_000.0  # at one request a second


def scenario(name: str, layout: dict[str, int] | None = None) -> dict[str, object]:
    model, on = CASES[name]
    workload = {
        "name": "service",
        "kind": "online_inference",
        "model": model,
        "demand": {"requests_per_s": 1},
        "request": {"input_tokens": 1000, "output_tokens": 200},
        "slo": {"ttft_p95_ms": 5000, "tpot_p95_ms": 120},
        **({"layout": layout} if layout else {}),
    }
    policy = {"accelerators": {"allowed": [on]}}
    return {"version": 1, "name": name, "workloads": [workload], "policy": policy}


def pool_of(answer: Answer) -> PlannedPool:
    assert answer.plan is not None, answer.explanation.conflicts
    [pool] = answer.plan.pools
    return pool


def assert_fits(model: str, accelerator: str, precision: str, layout: PoolLayout) -> None:
    """By `gpuplan fit`, with the published mix of formats where the plan has it."""
    checkpoint = model_named(model, None).checkpoint
    is_own = precision == (checkpoint.quantized or checkpoint.base).name
    request = FitRequest(
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.dp,
        ep=layout.ep,
        context_tokens=CONTEXT_TOKENS,
        precision=None if is_own else precision,
        engine_version=(0, 15),
    )
    n_each = layout.spread.engine.n_accelerators
    found = api.fit(model, f"{n_each}x{accelerator}", request)
    assert found.fits, f"{model} on {accelerator} as {layout}"


@pytest.mark.parametrize("name", CASES)
def test_the_layout_of_a_plan_fits(name):
    answer = planned(scenario(name), n_samples=0)
    pool = pool_of(answer)
    assert_fits(CASES[name][0], pool.accelerator, pool.precision, pool.layout)
    n_each = pool.layout.spread.n_accelerators
    assert pool.n_accelerators >= pool.n_replicas * n_each
    assert reopened(answer) == answer


@pytest.mark.parametrize("name", CASES)
def test_the_layouts_of_all_rows_fit(name):
    answer = planned(scenario(name), n_samples=0)
    for row in answer.decision.comparison:
        if row.layout is not None and not row.layout.share:
            assert_fits(CASES[name][0], row.accelerator, row.precision, row.layout)


@pytest.mark.parametrize("name", CASES)
def test_the_layout_of_a_plan_is_simulated(name, tmp_path):
    answer = planned(scenario(name), n_samples=0)
    path: Path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer), encoding="utf-8")
    # Near its fullest rate a queue comes and goes slowly: 1,800 requests say little of its p95.
    found = api.simulate_planned(path, duration_s=REPLAY_S)
    assert found.outcome.n_completed == found.outcome.n_requests
    for promise in answer.plan.slo.promises:
        metric, statistic = promise.what.split()
        value = getattr(getattr(found.statistics, metric), f"{statistic}_s")
        assert value == pytest.approx(promise.reached_s.value, rel=0.15), promise.what


@pytest.mark.parametrize("name", CASES)
def test_replicas_span_servers_only_over_a_stated_network(name):
    pool = pool_of(planned(scenario(name), n_samples=0))
    stated = {
        (offer.cloud, offer.instance): offer.shape.network_bytes_per_s for offer in read_offers()
    }
    is_spread = pool.layout.n_servers_per_replica > 1
    assert is_spread == ("over servers" in name)
    for line in pool.purchases:
        # Ranks that talk in every layer are in one server, or judged by the network between them.
        spread = pool.layout.spread
        group = spread.tp if spread.is_expert_parallel_over_servers else spread.n_joined
        assert line.n_accelerators_per_node % group == 0
        if is_spread:
            assert stated[line.cloud, line.offer] >= pool.layout.network_bytes_per_s


def test_data_parallel_attention_is_simulated_too(tmp_path):
    """Asked for by the user: DP8 EP8 in one server, as DeepSeek is served."""
    tree = scenario("latent attention", {"dp": 8, "ep": 8})
    pool = pool_of(planned(tree, n_samples=0))
    assert (pool.layout.tp, pool.layout.dp, pool.layout.ep) == (1, 8, 8)


def test_experts_are_dealt_over_servers_that_a_fabric_joins(tmp_path):
    """DP16 EP16 on two servers of eight H100, over the network that their offer states."""
    answer = planned(scenario("latent attention over servers", {"dp": 16, "ep": 16}), n_samples=0)
    pool = pool_of(answer)
    assert (pool.layout.dp, pool.layout.ep, pool.layout.n_servers_per_replica) == (16, 16, 2)
    stated = {
        (offer.cloud, offer.instance): offer.shape.network_bytes_per_s for offer in read_offers()
    }
    for line in pool.purchases:
        assert stated[line.cloud, line.offer] >= pool.layout.network_bytes_per_s
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer), encoding="utf-8")
    found = api.simulate_planned(path, duration_s=1800.0).statistics
    reached = {x.what: x.reached_s.value for x in answer.plan.slo.promises}
    assert found.ttft.p95_s == pytest.approx(reached["ttft p95"], rel=0.15)
    assert found.tpot.p95_s == pytest.approx(reached["tpot p95"], rel=0.1)


def test_without_a_stated_network_there_is_no_plan_and_a_reason():
    tree = scenario("latent attention over servers")
    tree["prices"] = {
        "offers": [
            {
                "name": "pair",
                "accelerator": "H100",
                "usd_per_node_h": 20,
                "accelerators_per_node": 8,
            }
        ]
    }
    answer = planned(tree, n_samples=0)
    assert answer.plan is None
    reasons = [r for r in answer.rejected if r.constraint == "island"]
    assert any("states a network" in r.reason for r in reasons)
    assert any("network_gbit_per_s" in r.relaxation for r in reasons)
    tree["prices"]["offers"][0]["network_gbit_per_s"] = 400
    pool = pool_of(planned(tree, n_samples=0))
    assert pool.layout.n_servers_per_replica == 2
    assert pool.layout.network_bytes_per_s == 50e9


@pytest.mark.parametrize(
    "others", [(), ("Qwen/Qwen3-1.7B",), ("Qwen/Qwen3-1.7B", "Qwen/Qwen3-0.6B")]
)
def test_nobody_has_a_fraction_of_an_accelerator_to_itself(others):
    """At the price of the whole card, the whole card is quicker."""
    models = ("Qwen/Qwen3-4B", *others)
    workloads = [
        {
            "name": f"service {at}",
            "kind": "online_inference",
            "model": model,
            "demand": {"requests_per_s": 0.2},
            "request": {"input_tokens": 600, "output_tokens": 300},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 80},
        }
        for at, model in enumerate(models)
    ]
    policy = {"accelerators": {"allowed": ["L4", "L40S", "A100"]}}
    tree = {"version": 1, "name": "small", "workloads": workloads, "policy": policy}
    answer = planned(tree)
    pools = answer.plan.pools
    for pool in pools:
        sharers = [each for each in pools if each.accelerator == pool.accelerator]
        assert not pool.layout.share or len([x for x in sharers if x.layout.share]) > 1
    for row in answer.decision.comparison:
        assert row.layout is None or not row.layout.share


def test_tensor_parallelism_goes_over_pcie_where_it_is_the_better_layout():
    """Without NVLink, every layer sends two sums over the bus: 48 x 2 x 5120 x 2 bytes a token.

    That is 1 GB for a prompt of 1,000 tokens, about 0.1 s over a GeForce's bus; a token of one
    sequence takes 29.5 GB / 2 / 1 TB/s = 15 ms and 96 short sums. Stages would take 29 ms for it.
    """
    workload = {
        "name": "service",
        "kind": "online_inference",
        "model": "Qwen/Qwen2.5-14B-Instruct",
        "demand": {"requests_per_s": 0.15},
        "request": {"input_tokens": 1000, "output_tokens": 200},
        "slo": {"ttft_p95_ms": 3000, "tpot_p95_ms": 50},
    }
    owned = [{"accelerator": "RTX 4090", "nodes": 1, "accelerators_per_node": 4}]
    policy = {"accelerators": {"allowed": ["RTX 4090"]}}
    tree = {"version": 1, "name": "pcie", "workloads": [workload], "policy": policy}
    answer = planned({**tree, "owned": owned})
    layout = pool_of(answer).layout
    assert (layout.tp, layout.pp) == (2, 1)
    reached = {x.what: x.reached_s.value for x in answer.plan.slo.promises}
    assert 0.015 < reached["tpot p95"] < 0.029
