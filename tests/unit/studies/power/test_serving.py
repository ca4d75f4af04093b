"""Power of serving: shares by hand, and what the range is made of."""

from dataclasses import replace

import pytest

from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.provenance import Estimate
from gpuplan.studies.measured.inference import serving_setup
from gpuplan.studies.power.serving import (
    one_accelerator_w,
    power_at_rate,
    serving_utilization,
    serving_work,
    touched_params,
)

ROW = {
    "id": "x", "source": "x", "accelerator": "H100 SXM", "n_accelerators": "4",
    "model": "Llama-3.1-70B", "precision": "bfloat16", "engine": "vLLM", "engine_version": "0.11.1",
    "tp": "4", "pp": "", "layout_note": "", "regime": "fixed_max_batch", "batch": "64",
    "request_rate_per_s": "", "input_tokens": "140", "output_tokens": "360", "grade": "A",
    "flag": "",
}  # fmt: skip


def setup(**changed: str) -> ServingSetup:
    return serving_setup({**ROW, **changed})


def rate(value: float, spread: float = 1.1) -> Estimate:
    return Estimate(value=value, low=value / spread, high=value * spread, tier="fitted")


def test_shares_by_hand() -> None:
    """70 billion parameters read 64 tokens at a time, on four boards."""
    use = serving_utilization(setup(), 2000.0, 64.0)
    params = setup().model.n_params - setup().model.n_embedding_params
    assert use.weight_memory_frac == pytest.approx(2000 / 64 * 2 * params / (4 * 3.35e12), rel=0.01)
    assert use.compute_frac == pytest.approx(2 * params * 2000 * (500 / 360) / 4 / 989e12, rel=0.02)
    assert use.weight_bytes_per_param == 2.0


def test_experts_that_nobody_chose_are_not_read() -> None:
    model = setup(model="Qwen3-30B-A3B-Instruct-2507", n_accelerators="1", tp="1").model
    few, many = touched_params(model, 1.0), touched_params(model, 1000.0)
    assert few == pytest.approx(model.n_active_params, rel=0.25)
    assert many == pytest.approx(model.n_params - model.n_embedding_params, rel=0.01)


def test_all_boards_of_all_replicas_draw() -> None:
    one = power_at_rate(setup(), rate(2000.0), 64.0)
    two = power_at_rate(replace(setup(), n_replicas=2.0), rate(4000.0), 64.0)
    assert two["power_w"].value == pytest.approx(2 * one["power_w"].value)
    per_token = one["energy_j_per_output_token"].value
    assert per_token == pytest.approx(one["power_w"].value / 2000)
    assert two["energy_j_per_output_token"].value == pytest.approx(per_token)


def test_published_draw() -> None:
    """ML.ENERGY v3: 383 running, 5,319 tokens a second, 2,344 W on four H100."""
    found = power_at_rate(setup(batch="383"), rate(5319.0), 383.0)["power_w"]
    assert found.low < 2344 < found.high


def test_an_unsure_rate_widens_energy_more_than_power() -> None:
    sure, unsure = (power_at_rate(setup(), rate(2000.0, s), 64.0) for s in (1.01, 2.0))
    for metric in ("power_w", "energy_j_per_output_token"):
        assert unsure[metric].high > sure[metric].high
        assert unsure[metric].low < sure[metric].low
    power, energy = (unsure[m] for m in ("power_w", "energy_j_per_output_token"))
    assert energy.high / energy.value > power.high / power.value


def test_pictures_and_old_engines_wait() -> None:
    assert serving_work(setup(), "EP1 task=video-chat") == "video-chat"
    assert serving_work(setup(engine_version="0.5.4")) == "host-bound"
    assert serving_work(setup()) == "text"
    old = one_accelerator_w(setup(), 2000.0, 64.0, work="host-bound")
    assert old < one_accelerator_w(setup(), 2000.0, 64.0, work="text")


def test_no_limit_no_power() -> None:
    bare = setup()
    bare = replace(
        bare, accelerator=replace(
            bare.accelerator, power=replace(bare.accelerator.power, limit_w=None)
        )
    )  # fmt: skip
    assert power_at_rate(bare, rate(2000.0), 64.0) == {}
