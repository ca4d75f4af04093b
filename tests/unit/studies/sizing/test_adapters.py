"""LoRA adapters of a served model: enough slots in GPU memory, the rest in host memory."""

import numpy as np
import pytest

from consistency.plans import planned
from gpuplan import api
from gpuplan.domain.inference.serving import LoraUse
from gpuplan.report.plan.document import plan_text
from gpuplan.studies.sizing.adapters import SURE_DEVIATIONS, n_unhindered


def tree(demand=None, engine="vllm", **request):
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "microsoft/phi-4",
        "request": {"input_tokens": 1000, "output_tokens": 200, **request},
        "demand": demand or {"requests_per_s": 4},
        "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
    }
    policy = {"accelerators": {"allowed": ["H100"]}}
    software = {"software": {"framework": engine}}
    return {"version": 1, "name": "lora", "site": software, "workloads": [work], "policy": policy}


@pytest.fixture(scope="module")
def few_slots():
    return planned(tree(lora_adapters=500, lora_rank=64))


def test_adapters_are_counted_and_said(few_slots):
    [line] = [line for line in few_slots.explanation.why if "LoRA adapters" in line]
    [pool] = few_slots.plan.pools
    # 102,400 rows and columns a layer of phi-4, 40 layers, rank 64, two bytes each.
    each_gib = 102_400 * 40 * 64 * 2 / 2**30
    assert 1 < pool.steps.max_loras < 500
    assert f"{pool.steps.max_loras} of 500" in line
    assert f"{pool.steps.max_loras * each_gib:.1f} GiB of each accelerator" in line
    assert f"{500 * each_gib:.1f} GiB of host memory" in line


@pytest.mark.parametrize("demand", [{"requests_per_s": 30}, {"concurrent_requests": 100}])
def test_the_plan_waits_for_slots_as_its_own_simulation_does(tmp_path, demand):
    """What `plan` states, what `simulate` says of the same fleet, and a fleet short of slots."""
    answer = planned(tree(demand, lora_adapters=200, lora_rank=32))
    path = tmp_path / "plan.yaml"
    path.write_text(plan_text(answer))
    stated = {row.what: row.reached_s for row in answer.plan.slo.promises}
    ttft_s = api.simulate_planned(path).statistics.ttft.p95_s
    assert ttft_s == pytest.approx(stated["ttft p95"].value, rel=0.1)
    assert not api.verify(path).failed
    short = tmp_path / "short.yaml"
    short.write_text(
        path.read_text().replace(
            f"max_loras: {answer.plan.pools[0].steps.max_loras}", "max_loras: 4"
        )
    )
    assert api.simulate_planned(short).statistics.ttft.p95_s > 3 * ttft_s
    assert any("ttft" in check.name for check in api.verify(short).failed)


@pytest.mark.parametrize("n_slots", [8, 32, 64])
def test_so_many_sequences_ask_for_no_more_adapters_than_there_are_slots(n_slots):
    """Against draws: the load's own chance, then which adapters they ask for."""
    use, rng = LoraUse(rank=16, n_adapters=100, request_frac=0.8), np.random.default_rng(1)
    n = n_unhindered(use, n_slots, 1024)
    assert n < 1024
    asked = rng.random((4000, 1024)) < use.request_frac
    drawn = rng.integers(0, use.n_adapters, (4000, 1024))
    running = rng.poisson(n, 4000)
    wanted = np.array(
        [
            len(np.unique(row[:k][is_in[:k]]))
            for row, is_in, k in zip(drawn, asked, running, strict=True)
        ]
    )
    assert np.mean(wanted > n_slots) < 0.01
    more = n + SURE_DEVIATIONS * 4 * np.sqrt(n) + 4
    running = rng.poisson(more, 400)
    wanted = [
        len(np.unique(row[:k][is_in[:k]]))
        for row, is_in, k in zip(drawn, asked, running, strict=False)
    ]
    assert np.mean(np.array(wanted) > n_slots) > 0.2  # nor are they far fewer than could be


def test_a_scheduler_whose_waits_are_not_known_holds_all():
    [pool] = planned(tree(engine="sglang", lora_adapters=40, lora_rank=16)).plan.pools
    assert pool.steps.max_loras == 40


def test_adapters_make_steps_slower():
    bare, adapted = planned(tree()), planned(tree(lora_adapters=20))
    assert (bare.plan.pools[0].steps.max_loras, adapted.plan.pools[0].steps.max_loras) == (0, 20)
    tpot = [
        next(row.reached_s.value for row in each.plan.slo.promises if row.what == "tpot p95")
        / each.plan.pools[0].n_replicas
        for each in (bare, adapted)
    ]
    n = [each.plan.pools[0].n_replicas for each in (bare, adapted)]
    assert n[1] > n[0] or tpot[1] > tpot[0] * 1.02
    assert bare.plan.cost_usd_per_month.value <= adapted.plan.cost_usd_per_month.value + 0.01
