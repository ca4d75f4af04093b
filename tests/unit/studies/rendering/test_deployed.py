"""What files are written from: the engine's settings are those of the simulation."""

from dataclasses import replace
from datetime import date

import pytest

from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.errors import InputError
from gpuplan.pipeline.plan import plan
from gpuplan.studies.planning.inputs import plan_inputs
from gpuplan.studies.rendering.deployed import (
    _label,
    _least,
    _names,
    _repository,
    _role_node,
    deployed_of,
)

SCENARIO = {
    "version": 1,
    "name": "Shop 24/7",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "team": "web",
            "demand": {"requests_per_s": 4},
            "request": {"input_tokens": 500, "output_tokens": 100},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 60},
        },
    ],
    "policy": {"accelerators": {"allowed": ["L40S"]}},
    "teams": [{"name": "web"}],
}


@pytest.fixture(scope="module")
def found():
    request = PlanRequest(target="shop", tree=SCENARIO, today=date(2026, 9, 1), n_samples=0, seed=0)
    answer = plan(request)
    return answer, deployed_of(plan_inputs(request), answer)


def test_without_a_plan_there_is_nothing_to_deploy(found):
    answer, _ = found
    request = PlanRequest(target="shop", tree=SCENARIO, today=date(2026, 9, 1))
    with pytest.raises(InputError, match="gpuplan explain"):
        deployed_of(plan_inputs(request), replace(answer, plan=None))


@pytest.mark.parametrize(
    ("written", "started"),
    [
        ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Qwen/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("FLUX.1-dev", "black-forest-labs/FLUX.1-dev"),
        ("models/own/config.json", "models/own"),
        ("known-by-its-speed-alone", "known-by-its-speed-alone"),
    ],
)
def test_an_engine_is_told_where_the_model_is_published(written, started):
    request = PlanRequest(target="shop", tree=SCENARIO, today=date(2026, 9, 1))
    (workload,) = plan_inputs(request).scenario.workloads
    named = replace(workload, model=replace(workload.model, name=written))
    assert _repository(named, None) == started


def test_every_pool_is_there(found):
    answer, whole = found
    assert [one.pool for one in whole.pools] == list(answer.plan.pools)
    assert whole.name == "shop-24-7"
    assert answer.provenance.catalog_sha256[:12] in whole.origin


def test_the_engine_is_the_one_that_was_simulated(found):
    answer, whole = found
    served = whole.pools[0].served
    assert f"{served.engine.name} {served.engine.version}" == answer.plan.pools[0].engine
    assert served.is_published_precision is (answer.plan.pools[0].precision == "bf16")
    assert served.startup_s > 10


def test_the_context_is_no_longer_than_the_cache(found):
    served = found[1].pools[0].served
    assert 600 < served.max_context_tokens <= 131072


def test_the_machine_is_the_one_that_is_paid_for(found):
    answer, whole = found
    line, node = answer.plan.pools[0].purchases[0], whole.pools[0].node
    assert (node.name, node.cloud, node.n_nodes) == (line.offer, line.cloud, line.n_nodes)


def test_requests_in_flight_are_dealt_out_over_serving_replicas(found):
    answer, whole = found
    pool = answer.plan.pools[0]
    serving = pool.n_replicas - pool.n_spare_replicas
    assert whole.pools[0].served.n_running == pytest.approx(answer.load[0].n_in_flight / serving)


def test_engines_that_decode_stand_on_the_nodes_that_prefill_pays_for(found):
    plan = found[0].plan
    paid = replace(plan.pools[0], layout=replace(plan.pools[0].layout, role="prefill"))
    decode = replace(paid, layout=replace(paid.layout, role="decode"), purchases=())
    both = replace(plan, pools=(paid, decode))
    assert _role_node(both, paid, {}).n_nodes == paid.purchases[0].n_nodes
    assert _role_node(both, decode, {}).n_nodes == 0
    assert _role_node(both, decode, {}).name == paid.purchases[0].offer


def test_a_role_shrinks_with_its_groups_and_keeps_its_spares(found):
    plan = found[0].plan
    quiet = replace(plan.replays[0], n_replicas_least=2, n_replicas_most=4)
    role = replace(plan.pools[0].layout, role="decode")
    pool = replace(plan.pools[0], layout=role, n_replicas=13, n_spare_replicas=1)
    assert _least(pool, quiet) == 7  # half of twelve, and the spare
    assert _least(replace(pool, layout=plan.pools[0].layout), quiet) == 3


@pytest.mark.parametrize(
    ("text", "label"),
    [("Chat for 6,000 users", "chat-for-6-000-users"), ("24/7", "pool-24-7"), ("ü!", "pool"),
     ("x" * 90, "x" * 40)],
)  # fmt: skip
def test_names_are_dns_labels(text, label):
    assert _label(text) == label


def test_pools_of_one_workload_are_numbered():
    assert _names(["chat", "chat", "docs"]) == ["chat-1", "chat-2", "docs"]
