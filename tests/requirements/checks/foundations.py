"""R46 to R51: matching GPUs to tasks."""

import pytest

from fakes.telemetry import Scene
from requirements.asking import Ask
from requirements.registry import check

FIT = "fit Llama-3.3-70B --on 2xH100 --precision fp8 --concurrency 32"


@check("R46", "fit Llama-3.1-8B --on H100,L40S,L4 --rank")
def the_specification_that_decides_is_named(ask: Ask) -> None:
    rows = {one["accelerator"]: one for one in ask.document()["ranking"]}
    assert rows["h100-sxm"]["decides"] == "memory bandwidth"
    assert (
        rows["h100-sxm"]["tokens_per_s"] > rows["l40s"]["tokens_per_s"] > rows["l4"]["tokens_per_s"]
    )
    # One sequence: tokens a second follow bandwidth, 3350 against 300 GB/s.
    ratio = rows["h100-sxm"]["tokens_per_s"] / rows["l4"]["tokens_per_s"]
    assert ratio == pytest.approx(3350 / 300, rel=0.35)
    large = ask.document("fit Llama-3.3-70B --on H100,L4 --precision fp8 --rank")["ranking"]
    assert {one["accelerator"]: one["decides"] for one in large}["l4"] == "memory capacity"
    prompts = "fit Llama-3.1-8B --on H100,L4 --rank --context 20000 --concurrency 64"
    assert ask(prompts).code == 0


@check("R47", "plan examples/which-gpu.yaml --samples 0")
def performance_per_watt_and_dollar(ask: Ask) -> None:
    rows = {one["accelerator"]: one for one in ask.plan("which-gpu")["trade"]}
    assert rows["h100-sxm"]["n_work_per_usd"] == pytest.approx(0.7 * 9000 * 3600 / 2.95)
    assert rows["l4"]["n_work_per_usd"] == pytest.approx(0.7 * 900 * 3600 / 0.80)
    assert rows["l4"]["memory_bytes"] < rows["l40s"]["memory_bytes"]
    power = {one["accelerator"]: one["power_w"] for one in ask.plan("which-gpu")["comparison"]}
    for name, one in rows.items():
        assert one["unit"] == "output tokens"
        assert one["n_work_per_j"] == pytest.approx(4000 / power[name], rel=0.01)


@check("R48", "fit-training Llama-3-8B --on 8xH100 --task full --sharding fsdp")
def training_states_are_sharded(ask: Ask) -> None:
    whole = ask.document("fit-training Llama-3-8B --on 8xH100 --task full --sharding none")
    cut = ask.document()
    assert cut["fits"]
    assert not whole["fits"]
    for part in ("weights_bytes", "optimizer_bytes"):
        assert cut[part] == pytest.approx(whole[part] / 8)
    assert whole["states_bytes"] == pytest.approx(16 * 8.03e9, rel=0.001)
    parts = ("weights", "gradients", "master", "optimizer", "adapters")
    assert cut["states_bytes"] == sum(cut[f"{part}_bytes"] for part in parts)
    assert cut["peak_bytes"]["value"] > cut["states_bytes"]
    lora = ask.document("fit-training Llama-3-8B --on A10G --task qlora")
    assert lora["fits"]


@check("R48", "predict-training Llama-3.1-70B --on H100 --devices 256")
def a_speed_that_no_memory_allows_says_so_first(ask: Ask) -> None:
    """70 B parameters at 16 bytes and not sharded: 1.1 TB on a GPU of 80 GB."""
    assert ask().out.startswith("DOES NOT FIT")
    assert not ask.document()["fits"]
    assert ask("predict Qwen3-8B --on T4").out.startswith("DOES NOT FIT")  # 16.4 GB on 15
    assert not ask("predict Qwen3-4B --on T4").out.startswith("DOES NOT FIT")


@check("R49", "fit Llama-3.1-8B --on L4 --concurrency 8")
def a_smaller_gpu_is_tried_with_narrower_weights(ask: Ask) -> None:
    wide = ask.document("fit Llama-3.3-70B --on L40S --concurrency 4")
    assert not wide["fits"]
    assert any(
        "int4" in one["how"] or "--tp" in one["how"] or "x" in one["how"]
        for one in wide["suggestions"]
    )
    assert ask.document("fit Llama-3.1-8B --on L4 --precision fp8 --concurrency 4 --context 4096")[
        "fits"
    ]


@check("R50", FIT)
def the_largest_context_and_concurrency_are_computed(ask: Ask) -> None:
    found = ask.document()
    assert found["kv_bytes_per_token"] == 80 * 2 * 8 * 128 * 2
    room = found["kv_cache_bytes"] * 2 / found["kv_bytes_per_token"]
    assert found["kv_cache_tokens"] == pytest.approx(room, rel=0.01)
    assert found["max_concurrency"] == int(found["kv_cache_tokens"] // 8192)
    assert found["max_context_tokens"] == pytest.approx(found["kv_cache_tokens"] / 32, rel=0.01)


@check("R51", "diagnose oversized.json")
def over_specified_gpus_are_found(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        levels = {"gpu_util": 0.5, "sm": 0.10, "tensor": 0.03, "dram": 0.06, "power_w": 170.0}
        scene.device(gpu, held_bytes=6e9, free_bytes=74e9, **levels)
    ask.scene("oversized.json", scene)
    causes = {one["cause"] for one in ask.document("diagnose oversized.json --on H100")["verdicts"]}
    assert causes & {"over_specified", "share_candidate"}
