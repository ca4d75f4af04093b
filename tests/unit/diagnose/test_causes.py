"""Every cause on telemetry made from its physics, with noise, in both generations of names."""

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.diagnose.finding import CAUSES
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.pipeline.diagnose import diagnose

GENERATIONS = pytest.mark.parametrize("generation", [0, 1], ids=["percent", "ratio"])
FULL = {"gpu_util": 0.99, "sm": 0.88, "tensor": 0.58, "dram": 0.37, "power_w": 680.0}
EMPTY = {"gpu_util": 0.0, "sm": 0.0, "tensor": 0.0, "dram": 0.0, "power_w": 120.0}


def found(scene: Scene):
    return diagnose(scene.telemetry(), DiagnoseRequest())


def causes(scene: Scene) -> list[str]:
    return [verdict.cause for verdict in found(scene).verdicts]


def half(level, other, n: int = 240):
    return np.where(np.arange(n) < n // 2, level, other)


def a1_a(scene: Scene) -> Scene:
    n = scene.n_samples
    scene.device(gpu_util=0.98, sm=0.86, tensor=0.4, dram=0.6, power_w=644.0)
    scene.gauge("vllm:num_requests_waiting", np.linspace(0, 120, n))
    scene.gauge("vllm:num_requests_running", 200.0)
    scene.exact("vllm:kv_cache_usage_perc", 0.99)
    return scene.counter("vllm:num_preemptions_total", 0.5)


def a1_b(scene: Scene) -> Scene:
    return scene.device(gpu_util=0.98, sm=0.34, tensor=0.05, dram=0.18, power_w=294.0)


def a1_c(scene: Scene) -> Scene:
    return scene.device(
        gpu_util=0.98, sm=0.9, tensor=0.08, dram=0.2, power_w=350.0, link=0.95 * 450e9
    )


@GENERATIONS
def test_a1_three_clusters_at_98_percent_get_three_answers(generation):
    first = [found(make(Scene(generation=generation))).verdicts[0] for make in (a1_a, a1_b, a1_c)]
    assert [verdict.cause for verdict in first] == ["kv_thrash", "small_kernels", "network_bound"]
    assert [verdict.more_devices_help for verdict in first] == [True, False, False]
    assert all(verdict.evidence and verdict.actions for verdict in first)


def test_a1_is_the_same_in_both_generations():
    for make in (a1_a, a1_b, a1_c):
        old, new = (found(make(Scene(generation=g))) for g in (0, 1))
        assert [v.cause for v in old.verdicts] == [v.cause for v in new.verdicts]
        assert old.use.mean_frac == pytest.approx(new.use.mean_frac, abs=0.005)


def test_a1_dead_counter():
    scene = Scene().device(gpu_util=0.0, engine=0.0, sm=0.0, power_w=690.0)
    assert causes(scene)[0] == "dead_counter"


SCENES = {
    "compute_bound": lambda s: s.device(**FULL),
    "memory_bandwidth_bound": lambda s: s.device(
        gpu_util=0.95, sm=0.7, tensor=0.1, dram=0.8, power_w=450.0
    ),
    "small_kernels": a1_b,
    "network_bound": a1_c,
    "communication_heavy": lambda s: s.device(
        gpu_util=0.99, sm=0.45, tensor=0.11, dram=0.32, power_w=420.0, link=50e9
    ),
    "wrong_precision": lambda s: s.device(
        gpu_util=0.99, sm=0.9, tensor=0.0, fp32=0.6, dram=0.3, power_w=500.0
    ),
    "busy_in_name": lambda s: s.device(gpu_util=1.0, sm=0.01, tensor=0.0, power_w=130.0),
    "kernels_or_exchange": lambda s: s.device(gpu_util=0.98, power_w=300.0),
    "pcie_bound": lambda s: s.device(
        gpu_util=0.7, sm=0.3, tensor=0.1, dram=0.2, power_w=300.0, pcie=0.9 * 63e9
    ),
    "host_bound": lambda s: s.device(gpu_util=0.45, sm=0.3, tensor=0.1, power_w=300.0).gauge(
        "CPUUtilization", 96.0, node="n1"
    ),
    "storage_bound": lambda s: s.device(
        gpu_util=0.3, sm=0.2, tensor=0.1, power_w=250.0
    ).counter("node_disk_io_time_seconds_total", 0.99, instance="n1"),
    "input_bound": lambda s: s.device(
        gpu_util=np.where(np.arange(s.n_samples) % 4 < 2, 0.98, 0.08), power_w=350.0
    ),
    "thermal_throttling": lambda s: s.device(
        **FULL, heat_c=92.0, clock_hz=half(1.98e9, 1.2e9), throttle=float(0x40)
    ),
    "power_throttling": lambda s: s.device(
        **(FULL | {"power_w": 698.0}), clock_hz=half(1.98e9, 1.2e9), throttle=4.0, heat_c=60.0
    ),
    "device_faults": lambda s: s.device(**FULL, xid=79.0),
    "memory_errors": lambda s: s.device(**FULL, rows_lost=3.0),
    "link_errors": lambda s: s.device(**FULL).counter(
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", 3.0, gpu="0", UUID="GPU-n1-0",
        modelName="NVIDIA H100 80GB HBM3",
        **({"Hostname": "n1"} if s.generation == 0 else {"hostname": "n1"}),
    ),
    "idle_allocated": lambda s: s.device(**EMPTY, held_bytes=15e9, pod="notebook"),
    "idle_free": lambda s: s.device(**EMPTY, held_bytes=0.0),
    "share_candidate": lambda s: s.device(
        gpu_util=0.2, sm=0.1, tensor=0.02, dram=0.05, power_w=150.0, held_bytes=4e9,
        free_bytes=80e9,
    ),
    "over_specified": lambda s: s.device(
        gpu_util=0.4, sm=0.35, tensor=0.01, dram=0.05, power_w=180.0, held_bytes=40e9,
        free_bytes=40e9,
    ),
    "dead_counter": lambda s: s.device(gpu_util=0.98, sm=0.0, tensor=0.0, power_w=650.0),
    "uneven_load": lambda s: s.device(gpu_util=half(0.1, 0.97), power_w=300.0),
    "under_used": lambda s: s.device(gpu_util=0.15, power_w=150.0),
    "full_by_name": lambda s: s.device(gpu_util=0.99, power_w=640.0),
    "kv_thrash": a1_a,
    "overload": lambda s: s.gauge("vllm:num_requests_waiting", np.linspace(0, 200, 240))
    .gauge("vllm:num_requests_running", np.linspace(20, 60, 240))
    .exact("vllm:kv_cache_usage_perc", 0.5),
    "slot_limited": lambda s: s.gauge("vllm:num_requests_waiting", 50.0)
    .exact("vllm:num_requests_running", 256.0)
    .exact("vllm:kv_cache_usage_perc", 0.45),
    "start_burst": lambda s: s.exact(
        "vllm:num_requests_waiting", np.where(np.arange(240) < 4, 40.0, 0.0)
    )
    .gauge("vllm:num_requests_running", 60.0)
    .exact("vllm:kv_cache_usage_perc", 0.5),
    "prefix_cache_lost": lambda s: a1_a(s)
    .counter("vllm:prefix_cache_queries_total", 1000.0)
    .counter("vllm:prefix_cache_hits_total", half(850.0, 20.0)),
    "low_demand": lambda s: s.exact("vllm:num_requests_waiting", 0.0)
    .gauge("vllm:num_requests_running", 1.0)
    .exact("vllm:kv_cache_usage_perc", 0.02),
    "request_errors": lambda s: s.exact("num_requests_waiting", 0.0)
    .gauge("num_requests_running", 30.0)
    .exact("gpu_cache_usage_perc", 0.4)
    .counter("request_success_total", 9.0)
    .counter("request_failure_total", 1.0),
}  # fmt: skip


@GENERATIONS
@pytest.mark.parametrize("cause", sorted(SCENES))
def test_cause_is_named(cause, generation):
    assert cause in causes(SCENES[cause](Scene(generation=generation)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cause", sorted(SCENES))
def test_noise_does_not_move_the_verdict(cause, seed):
    assert cause in causes(SCENES[cause](Scene(seed=seed)))


def test_imbalance_among_replicas():
    scene = Scene()
    for k, (running, waiting) in enumerate([(200.0, 50.0), (10.0, 0.0), (12.0, 0.0)]):
        labels = {"model_name": "m", "instance": f"r{k}"}
        scene.gauge("vllm:num_requests_running", running, **labels)
        scene.gauge("vllm:num_requests_waiting", waiting, **labels)
        scene.exact("vllm:kv_cache_usage_perc", 0.4, **labels)
    assert "replica_imbalance" in causes(scene)


def test_straggler_by_its_clock():
    scene = Scene()
    for gpu in range(8):
        clock_hz = 1.2e9 if gpu == 5 else 1.9e9
        scene.device(gpu, **FULL, clock_hz=clock_hz, heat_c=60.0)
    verdict = next(v for v in found(scene).verdicts if v.cause == "straggler")
    assert verdict.subjects == ("n1 gpu 5",)


def test_outage_of_monitoring_is_no_idleness():
    scene, level = Scene(), np.where((np.arange(240) > 100) & (np.arange(240) < 160), 0.0, 0.9)
    for node in ("a", "b", "c"):
        scene.device(node=node, gpu_util=level, power_w=600.0)
    assert "telemetry_outage" in causes(scene)


def test_a_job_that_ends_is_no_outage():
    scene, level = Scene(), np.where(np.arange(240) < 200, 0.9, 0.0)
    for gpu in range(8):
        scene.device(gpu, gpu_util=level, power_w=600.0)
    assert "telemetry_outage" not in causes(scene)


def test_missing_device():
    scene = Scene(n_samples=5)
    for node, n in (("a", 8), ("b", 8), ("c", 7), ("d", 8)):
        for gpu in range(n):
            scene.device(gpu, node=node, **FULL)
    verdict = next(v for v in found(scene).verdicts if v.cause == "missing_devices")
    assert verdict.subjects == ("c",)


def test_every_cause_has_actions_and_a_title():
    assert len(CAUSES) >= 25
    for name, cause in CAUSES.items():
        assert cause.actions, name
        assert cause.title, name


def test_power_bit_alone_is_a_healthy_device():
    scene = Scene().device(**FULL, throttle=4.0, heat_c=60.0, clock_hz=1.98e9)
    assert causes(scene) == ["compute_bound"]
