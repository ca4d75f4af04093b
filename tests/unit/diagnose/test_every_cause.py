"""The list of causes as a contract: each is tested, each has ranked actions and "do nothing"."""

import json

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.diagnose.finding import CAUSES
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.observe.read import read_text
from gpuplan.pipeline.diagnose import diagnose
from unit.diagnose.test_causes import FULL, SCENES, causes

N = 240


def stragglers(scene: Scene) -> Scene:
    for gpu in range(8):
        scene.device(gpu, **FULL, clock_hz=1.2e9 if gpu == 5 else 1.9e9, heat_c=60.0)
    return scene


def outage(scene: Scene) -> Scene:
    level = np.where((np.arange(N) > 100) & (np.arange(N) < 160), 0.0, 0.9)
    for node in ("a", "b", "c"):
        scene.device(node=node, gpu_util=level, power_w=600.0)
    return scene


def missing(scene: Scene) -> Scene:
    for node, n in (("a", 8), ("b", 8), ("c", 7), ("d", 8)):
        for gpu in range(n):
            scene.device(gpu, node=node, **FULL)
    return scene


def imbalance(scene: Scene) -> Scene:
    for k, (running, waiting) in enumerate([(200.0, 50.0), (10.0, 0.0), (12.0, 0.0)]):
        labels = {"model_name": "m", "instance": f"r{k}"}
        scene.gauge("vllm:num_requests_running", running, **labels)
        scene.gauge("vllm:num_requests_waiting", waiting, **labels)
        scene.exact("vllm:kv_cache_usage_perc", 0.4, **labels)
    return scene


def interference(scene: Scene) -> Scene:
    """Most gaps between tokens are 20 ms; one in fifty waits for a long prompt."""
    for upper, per_s in (("0.025", 98.0), ("0.1", 98.0), ("0.5", 100.0), ("+Inf", 100.0)):
        scene.counter("vllm:time_per_output_token_seconds_bucket", per_s, le=upper)
    scene.counter("vllm:time_per_output_token_seconds_count", 100.0)
    scene.counter("vllm:time_per_output_token_seconds_sum", 2.6)
    return scene.exact("vllm:num_requests_waiting", 0.0)


def storm(scene: Scene) -> Scene:
    """Replicas go up and down every four minutes."""
    level = np.where(np.arange(N) // 24 % 2 == 0, 2.0, 6.0)
    return scene.exact("kube_deployment_status_replicas_available", level, deployment="chat")


def network(scene: Scene, *, share: float, lost: float) -> Scene:
    """A node behind 100 Gbit/s: so much of its line rate, so many segments sent again."""
    scene.device(gpu_util=0.7, sm=0.5, tensor=0.2, dram=0.3, power_w=400.0)
    labels = {"instance": "n1:9100", "device": "eth0"}
    scene.exact("node_network_speed_bytes", 12.5e9, **labels)
    scene.counter("node_network_transmit_bytes_total", share * 12.5e9, **labels)
    scene.counter("node_netstat_Tcp_OutSegs", 30000.0, instance="n1:9100")
    return scene.counter("node_netstat_Tcp_RetransSegs", lost * 30000.0, instance="n1:9100")


def test_a_quiet_network_is_no_finding():
    assert not {"nic_bound", "packet_loss"} & set(causes(network(Scene(), share=0.5, lost=0.001)))


WHOLE = SCENES | {
    "straggler": stragglers, "telemetry_outage": outage, "missing_devices": missing,
    "replica_imbalance": imbalance, "prefill_interference": interference,
    "cold_start_storm": storm,
    "nic_bound": lambda scene: network(scene, share=0.95, lost=0.0),
    "packet_loss": lambda scene: network(scene, share=0.3, lost=0.04),
}  # fmt: skip
LEVELS = {
    "hot": [94] * 30, "flapping": [94, 96] * 30, "not_enough_to_judge": [80] * 30,
}  # fmt: skip
ELSEWHERE = {
    "fragmented",
    "pool_quota",
    "healthy",
    "demand_unknown",
    *LEVELS,
}  # lists and tables, below


@pytest.mark.parametrize("generation", [0, 1], ids=["percent", "ratio"])
@pytest.mark.parametrize("cause", sorted(set(WHOLE) - set(SCENES)))
def test_cause_is_named(cause, generation):
    assert cause in causes(WHOLE[cause](Scene(generation=generation)))


@pytest.mark.parametrize("generation", [0, 1], ids=["percent", "ratio"])
@pytest.mark.parametrize("cause", sorted(WHOLE))
@pytest.mark.parametrize("seed", [21, 22])
def test_cause_is_named_under_other_noise(cause, generation, seed):
    assert cause in causes(WHOLE[cause](Scene(generation=generation, seed=seed)))


@pytest.mark.parametrize("cause", sorted(LEVELS))
def test_a_table_of_percent_is_named_by_its_level(cause):
    rows = "".join(f"{minute},{value}\n" for minute, value in enumerate(LEVELS[cause]))
    found = diagnose(
        read_text("minute,GPU utilization (%)\n" + rows, source="t"), DiagnoseRequest()
    )
    assert cause in [verdict.cause for verdict in found.verdicts]
    assert found.verdicts[0].severity != "fine"


def test_free_devices_on_many_nodes_do_not_make_a_whole_one():
    nodes = "".join(f"n{k}|gpu:h100:8(S:0-1)|gpu:h100:6(IDX:0-5)|up|x|idle\n" for k in range(4))
    found = diagnose(read_text(nodes, source="sinfo"), DiagnoseRequest())
    assert "fragmented" in [verdict.cause for verdict in found.verdicts]


def test_pools_at_their_limit_while_all_have_room():
    at_s = np.arange(0, 6 * 3600, 60)
    rows = [
        {"timestamp": float(at), "team": f"p{k}",
         "allocated_frac": 1.0 if (at // 3600) % 3 == k else 0.3}
        for k in range(3) for at in at_s
    ]  # fmt: skip
    found = diagnose(read_text(json.dumps(rows), source="pools"), DiagnoseRequest())
    assert "pool_quota" in [verdict.cause for verdict in found.verdicts]


def test_green_takes_demand_or_latency_beside_counters():
    quiet = {"sm": 0.64, "tensor": 0.19, "dram": 0.32, "power_w": 546.0, "link": 9e9}
    assert causes(Scene().device(gpu_util=0.85, **quiet)) == ["demand_unknown"]
    assert causes(Scene().device(gpu_util=0.5, **quiet)) == ["under_used"]
    served = Scene().device(gpu_util=0.85, **quiet).exact("vllm:num_requests_waiting", 0.0)
    assert causes(served) == ["healthy"]


@pytest.mark.parametrize(("tensor", "cause"), [(0.55, "overload"), (0.1, "slot_limited")])
def test_a_queue_before_full_tensor_units_is_overload_and_not_short_of_slots(tensor, cause):
    scene = Scene().exact("vllm:num_requests_running", 128.0)
    scene.exact("vllm:num_requests_waiting", np.linspace(0, 900, N))
    scene.device(gpu_util=0.97, sm=0.9, tensor=tensor, dram=0.5, power_w=600.0)
    found = causes(scene)
    assert cause in found
    assert len({"overload", "slot_limited"} & set(found)) == 1


def test_a_bus_at_what_pinned_copies_reach_is_full():
    """24 of the 31.5 GB/s of PCIe Gen4 x16: no copy gets more than about 25."""
    board = {"model": "NVIDIA A100 80GB PCIe", "gpu_util": 0.5, "sm": 0.3, "power_w": 200.0}
    assert "pcie_bound" in causes(Scene().device(pcie=24e9, **board))
    assert "pcie_bound" not in causes(Scene().device(pcie=12e9, **board))


def test_stretches_of_overload_and_waits_without_end_are_told():
    def warnings(levels):
        rows = "".join(f"{minute},{value}\n" for minute, value in enumerate(levels))
        read = read_text("minute,GPU utilization (%)\n" + rows, source="t")
        return " ".join(diagnose(read, DiagnoseRequest()).use.warnings)

    assert "overload 1 time, longest from minute 20 to 30" in warnings(
        [85] * 20 + [98] * 10 + [85] * 9
    )
    assert "more than" in warnings([100] * 30)
    assert "times as long" not in warnings([80] * 30)


def test_every_cause_is_tested():
    assert set(WHOLE) | ELSEWHERE == set(CAUSES)


@pytest.mark.parametrize("name", sorted(CAUSES))
def test_every_cause_has_ranked_actions_with_effect_and_cost(name):
    actions = CAUSES[name].actions
    assert all(action.what and action.effect and action.cost for action in actions)
    assert [action.what for action in actions].count("do nothing") == 1
    assert all(0.0 <= action.gain_low_frac <= action.gain_high_frac for action in actions)
    nothing = next(action for action in actions if action.what == "do nothing")
    assert nothing.gain_high_frac == 0.0
    if CAUSES[name].severity in ("fault", "slow", "waste"):
        assert actions[0] is not nothing


def test_gaps_of_a_device_that_answers_requests_are_no_slow_input():
    swings = np.where(np.arange(N) % 4 < 2, 0.98, 0.08)
    rows = [
        {"timestamp": 1.7e9 + 5.0 * k, "gpu": "0", "gpu_util_frac": float(level), "power_w": 350.0}
        for k, level in enumerate(swings)
    ]
    plain = diagnose(read_text(json.dumps(rows), source="training"), DiagnoseRequest())
    asked = [row | {"e2e_mean_s": 2.0} for row in rows]
    served = diagnose(read_text(json.dumps(asked), source="serving"), DiagnoseRequest())
    assert "input_bound" in [verdict.cause for verdict in plain.verdicts]
    assert "input_bound" not in [verdict.cause for verdict in served.verdicts]
