"""A1 with other numbers, other boards and other periods: three clusters, three answers."""

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.pipeline.diagnose import diagnose

# model, watts that the board is built for, link rate of one direction
BOARDS = {
    "H100": ("NVIDIA H100 80GB HBM3", 700.0, 450e9),
    "A100": ("NVIDIA A100-SXM4-80GB", 400.0, 300e9),
    "H200": ("NVIDIA H200", 700.0, 450e9),
}
LEVELS = {
    # use, then processors, tensor, memory and power for: starved kernels, and exchange
    "98 %": (0.98, (0.34, 0.05, 0.18, 0.42), (0.90, 0.08, 0.20, 0.50)),
    "96 %": (0.96, (0.25, 0.03, 0.10, 0.38), (0.80, 0.10, 0.25, 0.55)),
    "100 %": (1.00, (0.40, 0.08, 0.20, 0.48), (0.95, 0.05, 0.15, 0.45)),
}


def scene_of(board: str, use: float, levels, *, generation: int, link: float = 0.0) -> Scene:
    model, tdp_w, link_rate = BOARDS[board]
    sm, tensor, dram, power = levels
    scene = Scene(generation=generation)
    for gpu in range(4):
        scene.device(
            gpu, model=model, gpu_util=use, sm=sm, tensor=tensor, dram=dram,
            power_w=power * tdp_w, **({"link": link * link_rate} if link else {}),
        )  # fmt: skip
    return scene


def first(scene: Scene):
    return diagnose(scene.telemetry(), DiagnoseRequest()).verdicts[0]


@pytest.mark.parametrize("generation", [0, 1], ids=["percent", "ratio"])
@pytest.mark.parametrize("level", sorted(LEVELS))
@pytest.mark.parametrize("board", sorted(BOARDS))
def test_three_answers(board, level, generation):
    use, starved, exchange = LEVELS[level]
    full = scene_of(board, use, (0.86, 0.42, 0.5, 0.92), generation=generation)
    full.gauge("vllm:num_requests_waiting", np.linspace(0, 90, full.n_samples))
    full.gauge("vllm:num_requests_running", 150.0)
    full.exact("vllm:kv_cache_usage_perc", 0.985)
    full.counter("vllm:num_preemptions_total", 0.3)
    found = [
        first(full),
        first(scene_of(board, use, starved, generation=generation)),
        first(scene_of(board, use, exchange, generation=generation, link=0.93)),
    ]
    assert [one.cause for one in found] == ["kv_thrash", "small_kernels", "network_bound"]
    assert [one.more_devices_help for one in found] == [True, False, False]
