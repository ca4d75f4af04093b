"""A plan file is simulated as it is: its pool, layout, engine, load and SLOs."""

from pathlib import Path

import pytest
import yaml

from gpuplan import api
from gpuplan.domain.inference.performance import USUAL_ENGINE
from gpuplan.errors import InputError
from gpuplan.report.plan.document import plan_text

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "plan.yaml"
    path.write_text(plan_text(api.plan(EXAMPLES / "chat.yaml")))
    return path


def changed(plan, tmp_path, **keys):
    """The plan with other keys of its pool."""
    tree = yaml.safe_load(plan.read_text())
    tree["plan"]["pools"][0].update(keys)
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def test_the_fleet_is_the_plans_own_without_spares(plan):
    found = api.simulate_planned(plan)
    assert found.fleet.n_engines == 2  # of three replicas one is spare
    assert found.setup.layout.tp == 2
    assert (found.setup.engine.name, found.setup.engine.version) == ("vllm", USUAL_ENGINE.version)
    assert found.setup.storage.quantized.name == "fp8"
    assert found.load.mean_requests_per_s == pytest.approx(10 / 3, rel=0.05)
    assert found.slo.ttft_s == 2.0
    assert any(
        a.what == "replicas" and "1 of them spare" in a.value for a in found.outcome.assumptions
    )


def test_other_draws_say_the_same(plan):
    once, again = (api.simulate_planned(plan, seed=seed).statistics for seed in (1, 2))
    assert once.ttft.p95_s == pytest.approx(again.ttft.p95_s, rel=0.1)
    assert once != again


def test_fewer_replicas_are_felt(plan, tmp_path):
    found = api.simulate_planned(changed(plan, tmp_path, n_replicas=2))
    assert found.statistics.tpot.p95_s > api.simulate_planned(plan).statistics.tpot.p95_s


def test_a_share_that_the_accelerator_does_not_have_is_refused(plan, tmp_path):
    with pytest.raises(InputError, match="has no '1/3'"):
        api.simulate_planned(changed(plan, tmp_path, share="1/3", tp=1))


def test_a_workload_that_is_not_there_is_refused(plan):
    with pytest.raises(InputError, match="batch"):
        api.simulate_planned(plan, "batch")


def test_a_stretch_may_be_chosen(plan):
    found = api.simulate_planned(plan, duration_s=600.0)
    assert found.outcome.n_requests == pytest.approx(2000, rel=0.1)


def test_a_network_that_no_engine_serves_is_refused_by_name(plan, tmp_path):
    """A reranker is sized by its own batches: an LLM engine's schedule would say another thing."""
    with pytest.raises(InputError, match="sized by its own batches") as refused:
        api.simulate_planned(changed(plan, tmp_path, engine=""))
    assert "predict-network" in str(refused.value)


@pytest.mark.parametrize("demand", [{"requests_per_s": 10}, {"concurrent_requests": 24}])
def test_the_adapters_of_a_plan_are_simulated(tmp_path, demand):
    """Every step reads the adapters of its batch: a fleet without them would be a third quicker."""
    scenario, path = tmp_path / "adapters.yaml", tmp_path / "plan.yaml"
    tree = {
        "name": "adapters",
        "workloads": [
            {
                "name": "svc",
                "kind": "online_inference",
                "model": "meta-llama/Llama-3.1-8B-Instruct",
                "demand": demand,
                "request": {
                    "input_tokens": 800,
                    "output_tokens": 200,
                    "lora_adapters": 200,
                    "lora_rank": 32,
                },
                "slo": {"tpot_p95_ms": 40},
            }
        ],
        "policy": {"accelerators": {"allowed": ["H100"]}},
    }
    scenario.write_text(yaml.safe_dump(tree))
    answer = api.plan(scenario)
    path.write_text(plan_text(answer))
    found = api.simulate_planned(path)
    assert found.setup.settings.lora.n_slots == answer.plan.pools[0].steps.max_loras > 0
    planned = next(x for x in answer.plan.slo.promises if x.what.startswith("tpot"))
    assert found.statistics.tpot.p95_s == pytest.approx(planned.reached_s.value, rel=0.1)
