"""Backlog and replicas, targets and their budget, energy per token."""

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.pipeline.diagnose import diagnose

ENGINE = {"instance": "n1:8000"}


def queue(growth_per_s, served_per_s):
    scene = Scene().device(0, gpu_util=0.97, sm=0.8, tensor=0.4, dram=0.6, power_w=600.0)
    scene.exact("vllm:num_requests_waiting", growth_per_s * 5 * np.arange(240), **ENGINE)
    scene.gauge("vllm:num_requests_running", 50.0, **ENGINE)
    scene.exact("vllm:kv_cache_usage_perc", 0.6, **ENGINE)
    scene.counter("vllm:request_success_total", served_per_s, **ENGINE)
    return diagnose(scene.telemetry(), DiagnoseRequest())


@pytest.mark.parametrize(("growth", "served"), [(0.5, 4.0), (4.0, 4.0), (9.0, 2.0)])
def test_replicas_drain_the_queue(growth, served):
    found = queue(growth, served)
    backlog = found.quality.service.backlog
    assert backlog.growth_requests_per_s == pytest.approx(growth, rel=0.05)
    assert backlog.deficit_frac == pytest.approx(growth / (growth + served), rel=0.05)
    assert backlog.n_replicas_more * served > growth
    assert (backlog.n_replicas_more - 1) * served <= 1.1 * growth * 1.01
    [action] = [one for one in found.verdicts[0].actions if one.n_replicas]
    assert action.gain_low_frac == pytest.approx(backlog.n_replicas_more)
    if abs(served - growth) > 0.1:
        assert (backlog.clear_s is None) == (served < growth)


def test_a_calm_queue_is_no_backlog():
    assert queue(0.0, 4.0).quality.service.backlog is None


def test_energy_is_shared_by_tokens():
    scene = Scene().device(0, gpu_util=0.9, power_w=500.0).device(1, gpu_util=0.9, power_w=300.0)
    scene.counter("vllm:generation_tokens_total", 1600.0, **ENGINE)
    scene.exact("vllm:num_requests_running", 20.0, **ENGINE)
    scene.exact("vllm:num_requests_waiting", 0.0, **ENGINE)
    work = diagnose(scene.telemetry(), DiagnoseRequest()).quality.service.work
    assert work.j_per_output_token == pytest.approx(800 / 1600, rel=0.03)
    assert work.mfu_frac is None
    asked = DiagnoseRequest(accelerator="H100", model="Llama-3.1-8B")
    named = diagnose(scene.telemetry(), asked).quality.service.work
    assert named.mfu_frac == pytest.approx(1600 * 2 * 7.0e9 / (2 * 989e12), rel=0.1)
    assert named.mbu_frac == pytest.approx(1600 / 20 * 16.06e9 / (2 * 3.35e12), rel=0.05)
