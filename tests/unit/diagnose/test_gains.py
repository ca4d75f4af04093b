"""Gains of actions, each against arithmetic on the scene's own levels."""

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.pipeline.diagnose import diagnose


def best(scene, cause, **asked):
    found = diagnose(scene.telemetry(), DiagnoseRequest(accelerator="H100", **asked))
    verdict = next(one for one in found.verdicts if one.cause == cause)
    return max(action.gain_high_frac for action in verdict.actions)


def four(**levels):
    scene = Scene()
    for gpu in range(4):
        scene.device(gpu, **levels)
    return scene


@pytest.mark.parametrize("tensor", [0.05, 0.1])
def test_spinning_gpus_gain_what_their_pipes_lack(tensor):
    scene = four(gpu_util=0.98, sm=0.9, tensor=tensor, dram=0.1, power_w=350.0, link=0.95 * 450e9)
    # A device at work shows tensor units at 35 %, or memory at 60 %.
    speed = max(tensor / 0.35, 0.1 / 0.60)
    assert best(scene, "network_bound") == pytest.approx(0.9 * (1 / speed - 1), rel=0.06)


def test_small_kernels_gain_no_more_than_the_processors_they_leave_empty():
    scene = four(gpu_util=0.98, sm=0.34, tensor=0.05, dram=0.10, power_w=294.0)
    assert best(scene, "small_kernels") == pytest.approx(0.8 * (0.98 / 0.34 - 1), rel=0.05)


def test_a_slow_clock_holds_up_its_whole_group():
    scene = Scene()
    for gpu in range(8):
        clock = 1.2e9 if gpu == 3 else 1.8e9
        levels = {"gpu_util": 0.97, "sm": 0.9, "tensor": 0.45, "dram": 0.4, "power_w": 500.0}
        scene.device(gpu, clock_hz=clock, **levels)
    assert best(scene, "straggler") == pytest.approx(1.8 / 1.2 - 1, rel=0.05)


def test_moving_work_out_of_peaks_gains_the_valleys():
    scene = Scene(n_samples=240)
    scene.at_s = 1.75e9 + 60.0 * np.arange(240)
    level = np.where(np.arange(240) % 24 < 4, 0.97, 0.3)
    scene.device(0, gpu_util=level)
    mean = float(level.mean())
    assert best(scene, "uneven_load") == pytest.approx(0.97 / mean - 1, rel=0.1)


def test_more_slots_gain_what_waits_and_the_cache_holds():
    scene = four(gpu_util=0.7, sm=0.5, tensor=0.2, dram=0.4, power_w=400.0)
    labels = {"model_name": "m", "instance": "n1:8000"}
    scene.exact("vllm:num_requests_waiting", 32.0, **labels)
    scene.exact("vllm:num_requests_running", 64.0, **labels)
    scene.exact("vllm:kv_cache_usage_perc", 0.3, **labels)
    assert best(scene, "slot_limited") == pytest.approx(32 / 64, rel=0.05)


def test_without_a_measure_no_gain_is_stated():
    scene = four(gpu_util=0.98, sm=0.86, tensor=0.4, dram=0.7, power_w=644.0)
    labels = {"model_name": "m", "instance": "n1:8000"}
    scene.exact("vllm:num_requests_waiting", np.linspace(0, 120, 240), **labels)
    scene.exact("vllm:kv_cache_usage_perc", 0.99, **labels)
    scene.counter("vllm:num_preemptions_total", 0.2, **labels)
    assert best(scene, "kv_thrash") == 0.0
    scene.counter("vllm:request_success_total", 2.0, **labels)
    assert best(scene, "kv_thrash") > 0.0
