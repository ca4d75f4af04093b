"""LoRA adapters of a served model: slots in GPU memory, the rest in host memory."""

from consistency.plans import planned
from gpuplan.domain.inference.serving import MOST_SLOTS


def tree(**request):
    work = {
        "name": "chat",
        "kind": "online_inference",
        "model": "microsoft/phi-4",
        "request": {"input_tokens": 1000, "output_tokens": 200, **request},
        "demand": {"requests_per_s": 4},
        "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 50},
    }
    policy = {"accelerators": {"allowed": ["H100"]}}
    return {"version": 1, "name": "lora", "workloads": [work], "policy": policy}


def test_adapters_are_counted_and_said():
    answer = planned(tree(lora_adapters=500, lora_rank=16))
    [line] = [line for line in answer.explanation.why if "LoRA adapters" in line]
    # 102,400 rows and columns a layer of phi-4, 40 layers, rank 16, two bytes each.
    each_gib = 102_400 * 40 * 16 * 2 / 2**30
    assert f"{MOST_SLOTS} of 500" in line
    assert f"{MOST_SLOTS * each_gib:.1f} GiB of each accelerator" in line
    assert f"{500 * each_gib:.1f} GiB of host memory" in line


def test_adapters_make_steps_slower():
    bare, adapted = planned(tree()), planned(tree(lora_adapters=20))
    tpot = [
        next(row.reached_s.value for row in each.plan.slo.promises if row.what == "tpot p95")
        / each.plan.pools[0].n_replicas
        for each in (bare, adapted)
    ]
    n = [each.plan.pools[0].n_replicas for each in (bare, adapted)]
    assert n[1] > n[0] or tpot[1] > tpot[0] * 1.02
    assert bare.plan.cost_usd_per_month.value <= adapted.plan.cost_usd_per_month.value + 0.01
