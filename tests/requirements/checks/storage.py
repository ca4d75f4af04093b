"""R61 to R68: storage and network."""

from itertools import pairwise

import pytest

from fakes.telemetry import Scene
from requirements.asking import Ask
from requirements.registry import check

SLOW = "check examples/slow-disks.yaml"
BASIC = "check examples/system-slow-disks-basic-switch.yaml"


def _changed(ask: Ask, *changes: str) -> dict:
    found = ask.document(" ".join([SLOW, *(f"--what-if {one}" for one in changes)]))
    return found["after"]


@check("R61", SLOW)
def demand_on_storage_is_samples_times_bytes(ask: Ask) -> None:
    for samples, kb in ((3000, 110), (1500, 110), (3000, 220)):
        path = "workloads[0].data_path."
        found = _changed(
            ask, f"{path}samples_per_s_per_accelerator={samples}", f"{path}sample_kb={kb}"
        )
        demand = found["workloads"][0]["demand"]
        assert demand["samples_per_s"] == 8 * samples
        assert demand["bytes_per_s"] == pytest.approx(8 * samples * kb * 1e3)
        assert demand["reads_per_s"] >= 8 * samples
        assert demand["opens_per_s"] == 8 * samples


@check("R62", SLOW)
def the_chain_of_bottlenecks_says_how_long_gpus_wait(ask: Ask) -> None:
    chain = ask.document()["bottlenecks"]
    busy = [one["gpu_busy_frac"] for one in chain]
    assert busy == sorted(busy)
    for one, after in pairwise(chain):
        assert one["gpu_busy_after_frac"] == pytest.approx(after["gpu_busy_frac"])
    assert chain[0]["gpu_busy_frac"] == pytest.approx(0.11 / 2.64, rel=0.02)


@check("R63", SLOW)
def tiers_of_storage_are_priced(ask: Ask) -> None:
    tiers = ask.document()["workloads"][0]["storage"]
    assert len(tiers) >= 2
    for one in tiers:
        assert one["usd"]["low"] <= one["usd"]["value"] <= one["usd"]["high"]
    drives = next(one for one in tiers if "NVMe" in one["tier"])
    assert drives["n_units"] >= 200 / 7.68


@check("R64", SLOW)
def decoding_needs_cores(ask: Ask) -> None:
    stage = {one["stage"]: one for one in ask.document()["bottlenecks"]}["CPU decode"]
    assert stage["demand"] == pytest.approx(24000 / 120)
    assert stage["supply"] == 104


@check("R64", SLOW)
def the_loader_has_workers_and_a_prefetch_depth(ask: Ask) -> None:
    loader = ask.document()["workloads"][0]["loader"]
    assert loader["workers_per_accelerator"] == pytest.approx(200 / 8, abs=1)
    assert loader["prefetch_batches"] >= 2
    assert loader["pinned_bytes"] == pytest.approx(
        loader["prefetch_batches"] * 8 * 256 * 602_112, rel=0.05
    )


@check("R65", SLOW)
def staging_and_checkpoints_take_time(ask: Ask) -> None:
    staging = ask.document()["workloads"][0]["staging"]
    assert staging["there_s"] == pytest.approx(200e12 * 8 / (10e9 * 0.7), rel=0.01)
    why = " ".join(ask.plan("large-training")["explanation"]["why"])
    n = ask.plan("large-training")["plan"]["pools"][0]["n_accelerators"]
    stop_s = 16_384 * 54 * 86_400 / 419 / n  # stops of a published run
    lost = {}
    for rate in (2, 20, 100):
        write_s = 1400 / rate
        lost[rate] = float(why.split(f"{rate} GB/s lose ")[1].split("%")[0]) / 100
        young = (2 * write_s / stop_s) ** 0.5 + 900 / stop_s  # with 15 minutes to restart
        assert lost[rate] == pytest.approx(young, rel=0.05, abs=0.0006)
    assert lost[2] > lost[20] > lost[100]


@check("R65", SLOW)
def capacity_grows_over_the_horizon(ask: Ask) -> None:
    growth = ask.document()["workloads"][0]["growth"]
    sizes = [one["bytes"] for one in growth]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 200e12
    assert {"dataset", "checkpoints", "artifacts", "logs"} == set(growth[-1]["parts"])
    path = "workloads[0].data_path."
    after = _changed(
        ask,
        f"{path}staging.dataset_tb=50",
        f"{path}retention.dataset_growth_frac=0.04",
        f"{path}retention.log_gb_per_day=2",
        f"{path}retention.artifacts_tb_per_month=3",
    )
    for one in after["workloads"][0]["growth"]:
        months, parts = one["months"], one["parts"]
        assert parts["dataset"] == pytest.approx(50e12 * 1.04**months)
        assert parts["logs"] == pytest.approx(8 * 2e9 * months * 365 / 12)
        assert parts["artifacts"] == pytest.approx(3e12 * months)
        assert one["bytes"] == pytest.approx(sum(parts.values()))
    assert after["workloads"][0]["growth"][-1]["months"] == pytest.approx(36)


@check("R66", "diagnose disks.json --on H100")
def waiting_for_disks_is_detected(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        scene.device(gpu, gpu_util=0.35, sm=0.25, tensor=0.1, dram=0.15, power_w=250.0)
    labels = {"instance": "n1:9100", "device": "nvme0n1"}
    scene.counter("node_disk_io_time_seconds_total", 0.99, **labels)
    scene.counter("node_disk_read_bytes_total", 1e9, **labels)
    scene.counter("node_cpu_seconds_total", 20.0, instance="n1:9100", cpu="0", mode="iowait")
    scene.counter("node_cpu_seconds_total", 44.0, instance="n1:9100", cpu="0", mode="idle")
    ask.scene("disks.json", scene)
    causes = [one["cause"] for one in ask.document()["verdicts"]]
    assert "storage_bound" in causes


@check("R66", "diagnose nic.json --on H100")
def a_full_nic_and_retransmits_are_detected(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        scene.device(gpu, gpu_util=0.6, sm=0.4, tensor=0.1, dram=0.15, power_w=300.0)
    labels = {"instance": "n1:9100", "device": "eth0"}
    scene.exact("node_network_speed_bytes", 12.5e9, **labels)
    scene.counter("node_network_receive_bytes_total", 12.2e9, **labels)
    scene.counter("node_netstat_Tcp_RetransSegs", 900.0, instance="n1:9100")
    scene.counter("node_netstat_Tcp_OutSegs", 30000.0, instance="n1:9100")
    ask.scene("nic.json", scene)
    verdicts = {one["cause"]: one for one in ask.document()["verdicts"]}
    rows = " ".join(f"{row['what']} {row['found']}" for row in verdicts["nic_bound"]["evidence"])
    assert "98%" in rows
    assert "3.0%" in rows


@check("R67", BASIC)
def top_gpus_behind_disks_and_basic_switches_are_rejected(ask: Ask) -> None:
    assert ask().code == 4
    found = ask.document()
    assert not found["ok"]
    where = " ".join(
        one["where"] + one["what"] for one in found["findings"] if one["severity"] == "error"
    )
    assert "storage" in where
    assert "network" in where.lower()


@check("R68", BASIC)
def a_balanced_system_at_the_same_budget(ask: Ask) -> None:
    found = ask.document()
    within = [one for one in found["balanced"] if one["within_budget"]]
    assert within
    busy = found["workloads"][0]["gpu_busy_frac"] * found["workloads"][0]["n_accelerators"]
    best = max(within, key=lambda one: one["accelerators_at_work"])
    assert best["accelerators_at_work"] > busy
    assert best["usd"]["value"] <= found["budget_usd"]
    assert sum(p["usd"]["value"] for p in best["parts"]) == pytest.approx(
        best["usd"]["value"], rel=0.01
    )
