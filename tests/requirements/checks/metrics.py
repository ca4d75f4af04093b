"""R1 to R29: metrics and their evaluation."""

import math
from itertools import pairwise

import numpy as np
import pytest

from fakes.telemetry import Scene
from requirements.asking import Ask
from requirements.registry import check

SEED = [20, 50, 90, 85, 95]
LOAD = "--model Llama-3.1-8B --on H100 --input-tokens 800 --output-tokens 200 --requests 2000"
SERVED = f"simulate {LOAD} --rate 12 --slo-ttft-ms 500"
SWEEP = f"simulate {LOAD} --rate 40 --slo-ttft-ms 500 --sweep-replicas 1..5"
SWEEP += " --cost-waste 2.5 --cost-delay 0.01"


@check("R1", SERVED)
def throughput_is_the_demand_and_goodput_what_meets_the_slo(ask: Ask) -> None:
    found = ask.document()
    assert found["output_tokens_per_s"] == pytest.approx(200 * found["requests_per_s"], rel=0.02)
    assert found["input_tokens_per_s"] == pytest.approx(800 * found["requests_per_s"], rel=0.02)
    assert found["requests_per_s"] == pytest.approx(12, rel=0.1)
    strict = ask.document(SERVED.replace("500", "60"))
    share = strict["goodput_requests_per_s"] / strict["requests_per_s"]
    assert share == pytest.approx(strict["recall"], abs=0.02)
    assert 0 < share < 0.8
    vision = ask.document("predict-network resnet50 --on A100 --batch 256")
    per_s = vision["samples_per_s"]["value"]
    assert per_s * vision["batch_s"]["value"] == pytest.approx(256)


@check("R2", SERVED)
def percentiles_rise_phases_add_up_and_each_is_defined(ask: Ask) -> None:
    found = ask.document()
    for phase in ("ttft_s", "tpot_s", "e2e_s", "wait_s"):
        values = [found[phase][name] for name in ("p50", "p90", "p95", "p99")]
        assert values == sorted(values)
        assert found["definitions"][phase.removesuffix("_s")]
    whole = found["ttft_s"]["mean"] + 199 * found["tpot_s"]["mean"]
    assert found["e2e_s"]["mean"] == pytest.approx(whole, rel=0.02)
    step = ask.document("predict-training Llama-3.1-8B --on H100 --devices 8")["step_s"]
    assert step["low"] < step["value"] < step["high"]


def serving_scene(n_gpus: int = 4, n_samples: int = 240, waiting: float = 0.0) -> Scene:
    """GPUs that serve tokens, half of whose time is in kernels that do little."""
    scene = Scene(n_samples=n_samples)
    for gpu in range(n_gpus):
        scene.device(gpu, gpu_util=0.9, sm=0.6, tensor=0.3, dram=0.5, power_w=400.0)
    labels = {"model_name": "meta-llama/Llama-3.1-8B-Instruct", "instance": "n1:8000"}
    scene.counter("vllm:generation_tokens_total", 8000.0, **labels)
    scene.counter("vllm:prompt_tokens_total", 32000.0, **labels)
    scene.exact("vllm:num_requests_running", 60.0, **labels)
    scene.exact("vllm:num_requests_waiting", waiting, **labels)
    return scene


@check("R3", "diagnose layers.json --on H100")
def layers_are_told_apart(ask: Ask) -> None:
    ask.scene("layers.json", serving_scene())
    found = {layer["metric"]: layer["mean"] for layer in ask.document()["layers"]}
    wanted = {"gpu_util_frac": 0.9, "sm_active_frac": 0.6, "tensor_active_frac": 0.3}
    for metric, level in {**wanted, "dram_active_frac": 0.5}.items():
        assert found[metric] == pytest.approx(level, rel=0.03)


@check("R3", "diagnose layers.json --on H100 --model Llama-3.1-8B")
def the_model_level_is_computed_from_tokens(ask: Ask) -> None:
    ask.scene("layers.json", serving_scene())
    found = {layer["metric"]: layer["mean"] for layer in ask.document()["layers"]}
    mfu = 40000 * 2 * 7.5e9 / (4 * 989e12)
    assert found["mfu_frac"] == pytest.approx(mfu, rel=0.15)
    # Each iteration of 60 sequences writes 60 tokens and reads 16 GB of weights.
    mbu = 8000 / 60 * 8.03e9 * 2 / (4 * 3.35e12)
    assert found["mbu_frac"] == pytest.approx(mbu, rel=0.05)


@check("R7", "diagnose idle.json --on H100 --usd-per-h 3")
def waste_has_gpu_hours_dollars_and_energy_by_cause(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(2):
        held = 60e9 if gpu == 0 else 0.0
        scene.device(gpu, gpu_util=0.0, sm=0.0, power_w=100.0, held_bytes=held, free_bytes=20e9)
    scene.device(2, gpu_util=0.9, sm=0.8, tensor=0.5, power_w=600.0, held_bytes=60e9)
    ask.scene("idle.json", scene)
    waste = {one["cause"]: one for one in ask.document()["waste"]}
    assert len(waste) >= 2
    hours = 239 * 5 / 3600
    for one in waste.values():
        assert one["usd"] == pytest.approx(3 * one["accelerator_h"])
    idle = [one for one in waste.values() if one["accelerator_h"] == pytest.approx(hours, rel=0.05)]
    assert len(idle) == 2
    assert all(one["energy_j"] == pytest.approx(100 * hours * 3600, rel=0.1) for one in idle)


@check("R7", "diagnose inefficient.json --on H100 --usd-per-h 3")
def inefficient_time_is_priced_too(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        scene.device(gpu, gpu_util=0.98, sm=0.34, tensor=0.05, dram=0.18, power_w=294.0)
    ask.scene("inefficient.json", scene)
    waste = {one["cause"]: one for one in ask.document()["waste"]}
    lost = 4 * 239 * 5 / 3600 * (0.98 - 0.34)
    assert waste["inefficient"]["accelerator_h"] == pytest.approx(lost, rel=0.05)
    assert waste["inefficient"]["usd"] == pytest.approx(3 * lost, rel=0.05)


@check("R8", "diagnose shift.json --chart shift.svg")
def a_heat_map_is_coloured_by_band(ask: Ask) -> None:
    scene = Scene()
    half = np.where(np.arange(240) < 120, 0.1, 0.8)
    other = np.where(np.arange(240) < 120, 0.5, 0.1)
    scene.device(0, gpu_util=half).device(1, gpu_util=other)
    ask.scene("shift.json", scene)
    answer = ask()
    assert answer.code == 0
    picture = ask.read("shift.svg")
    rows = [line for line in picture.splitlines() if "data-band" in line]
    assert sum('data-band="waste"' in row for row in rows) == pytest.approx(len(rows) / 2, rel=0.1)
    assert sum('data-band="good"' in row for row in rows) == pytest.approx(len(rows) / 4, rel=0.2)
    assert "n1 gpu 0" in picture
    assert "n1 gpu 1" in picture
    # The same for a mail, in the terminal, and by teams and nodes with bands of one's own.
    assert ask("diagnose shift.json --chart shift.png").code == 0
    assert (ask.place.folder / "shift.png").read_bytes().startswith(b"\x89PNG")
    two = Scene()
    for gpu, team in enumerate(("ads", "vision", "ads", "vision")):
        level = {"ads": 0.2, "vision": 0.8}[team]
        two.device(gpu % 2, f"n{gpu // 2}", gpu_util=level, namespace=team, pod=f"p{gpu}")
    ask.scene("teams.json", two)
    for options, ads in (("", "·"), (" --bands 5,10,40,90", "▒")):
        lines = ask(f"diagnose teams.json --chart -{options}").out.splitlines()
        row = next(line for line in lines if line.strip().startswith("team ads"))
        assert row.count(ads) >= 90, options
        assert any(line.strip().startswith("n0, all GPUs") for line in lines)


@check("R9", "diagnose flow.json --chart flow.html")
def demand_is_throughput_and_what_waits(ask: Ask) -> None:
    """8,000 tokens/s of 60 sequences; 30 that wait ask for half as much again."""
    ask.scene("flow.json", serving_scene(waiting=30.0))
    ask()
    lines = {
        part.split('data-name="')[1].split('"')[0]: part.split('points="')[1].split('"')[0]
        for part in ask.read("flow.html").split("<polyline")[1:]
    }
    height = {
        name: np.mean([float(point.split(",")[1]) for point in points.split()])
        for name, points in lines.items()
    }
    ground = max(height.values()) + (height["throughput"] - height["capacity"]) * 9
    above = {name: ground - y for name, y in height.items()}
    # GPUs are busy 90 % of the time: capacity is a ninth above throughput.
    assert above["demand"] / above["throughput"] == pytest.approx(1.5, rel=0.1)


@check("R9", "diagnose growing.json --chart growing.html")
def throughput_is_drawn_against_demand_and_capacity(ask: Ask) -> None:
    scene = serving_scene()
    scene.exact("vllm:num_requests_waiting", np.linspace(0, 300, 240), instance="n2:8000")
    ask.scene("growing.json", scene)
    ask()
    picture = ask.read("growing.html")
    lines = [part for part in picture.split("<polyline")[1:] if 'data-name="' in part]
    names = {part.split('data-name="')[1].split('"')[0] for part in lines}
    assert {"throughput", "demand", "capacity"} <= names


@check("R10", "diagnose table.txt")
def the_documents_table_is_read(ask: Ask) -> None:
    ask.table("table.txt", SEED)
    found = ask.document()
    assert found["mean"] == pytest.approx(sum(SEED) / 500)
    assert found["peak"] == pytest.approx(0.95)
    assert found["bands"] == pytest.approx(
        {"waste": 0.2, "under-used": 0.2, "good": 0.4, "hot": 0.2, "overload": 0}
    )
    clock = ask.write("clock.txt", "when,busy\n10:00,20\n10:01,50\n10:02,90\n10:03,85\n10:04,95\n")
    assert ask.document(f"diagnose {clock}")["mean"] == pytest.approx(0.68)
    rows = "".join(f"{9 + k // 60:02d}:{k % 60:02d},{20 + k}%\n" for k in range(75))
    ask.write("any.txt", "Time,GPU\n" + rows)
    assert ask.document("diagnose any.txt")["mean"] == pytest.approx(0.20 + 0.37)
    ask("diagnose any.txt --chart any.svg")
    assert ask.read("any.svg").count("data-band") == 75  # a minute each, and no gap between


@check("R10", "diagnose table.txt")
def each_minute_has_its_band(ask: Ask) -> None:
    ask.table("table.txt", SEED)
    minutes = ask.document()["minutes"]
    assert [one["band"] for one in minutes] == ["waste", "under-used", "good", "good", "hot"]
    assert [one["utilization"] for one in minutes] == pytest.approx([x / 100 for x in SEED])


@check("R11", "diagnose level.txt")
def levels_are_named_and_flapping_is_not_an_alarm_each_minute(ask: Ask) -> None:
    wanted = {45: "under_used", 94: "hot", 12: "under_used"}
    for level, cause in wanted.items():
        ask.table("level.txt", [level] * 30)
        found = ask.document(f"diagnose {ask.table(f'level-{level}.txt', [level] * 30)}")
        assert found["verdicts"][0]["cause"] == cause, level
    flapping = ask.table("flapping.txt", [94, 96] * 30)
    found = ask.document(f"diagnose {flapping}")
    causes = [one["cause"] for one in found["verdicts"]]
    assert "flapping" in causes
    assert len(found["episodes"]) == 1  # hysteresis: one hot stretch, not sixty
    short = ask.table("short.txt", [80] * 30 + [97] + [80] * 30)
    assert not [
        one for one in ask.document(f"diagnose {short}")["episodes"] if one["band"] == "overload"
    ]


@check("R12", SERVED)
def precision_counts_time_spent_on_requests_within_the_slo(ask: Ask) -> None:
    half = f"simulate {LOAD} --rate 12 --slo-ttft-ms 60"
    found = ask.document(half)
    assert found["precision"] <= found["recall"] + 0.1
    curve = ask.document(SWEEP)["points"]
    one = ask.document(f"simulate {LOAD} --rate 40 --slo-ttft-ms 500 --replicas 2 --warmup 0")
    assert curve[1]["recall"] == pytest.approx(one["recall"], abs=0.02)


@check("R12", "diagnose spin.json --on H100")
def spin_waiting_is_no_useful_work(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        levels = {"gpu_util": 0.98, "sm": 0.9, "tensor": 0.08, "dram": 0.2, "power_w": 350.0}
        scene.device(gpu, link=0.95 * 450e9, **levels)
    ask.scene("spin.json", scene)
    assert ask.document()["precision"] < 0.35


@check("R13", SERVED)
def recall_is_the_share_of_demand_within_the_slo(ask: Ask) -> None:
    found = ask.document(f"simulate {LOAD} --rate 40 --slo-ttft-ms 500 --out run.csv --warmup 0")
    rows = [line.split(",") for line in ask.read("run.csv").splitlines()]
    column = rows[0].index("ttft_s")
    met = [float(row[column]) <= 0.5 for row in rows[1:]]
    assert found["recall"] == pytest.approx(sum(met) / 2000, abs=0.01)


@check("R14", SWEEP)
def the_curve_of_precision_and_recall_has_its_best_f_beta(ask: Ask) -> None:
    found = ask.document()
    points, beta = found["points"], found["beta"]
    assert all(a["recall"] <= b["recall"] + 0.01 for a, b in pairwise(points))
    late = [one["precision"] for one in points if one["recall"] > 0.99]
    assert late == sorted(late, reverse=True)
    for one in points:
        p, r = one["precision"], one["recall"]
        assert one["f"] == pytest.approx((1 + beta**2) * p * r / (beta**2 * p + r), rel=1e-6)
    assert found["best_replicas"] == max(points, key=lambda one: one["f"])["replicas"]
    useful = found["useful_gpu_s_per_request"] / 3600
    assert beta == pytest.approx(math.sqrt(0.01 / (2.5 * useful)), rel=0.05)


@check("R15", SWEEP)
def one_more_and_one_less_have_a_price(ask: Ask) -> None:
    found = ask.document()
    points = {one["replicas"]: one for one in found["points"]}
    best = found["cheapest_replicas"]
    more = points[best + 1]["cost_usd"] - points[best]["cost_usd"]
    less = points[best - 1]["cost_usd"] - points[best]["cost_usd"]
    assert found["marginal"]["one_more_usd"] == pytest.approx(more)
    assert found["marginal"]["one_less_usd"] == pytest.approx(less)
    assert min(more, less) >= 0


@check("R16", "diagnose good.txt")
def a_percentage_alone_is_not_enough_to_judge(ask: Ask) -> None:
    ask.table("good.txt", [80] * 30)
    found = ask.document()
    assert found["verdicts"][0]["cause"] == "not_enough_to_judge"
    assert found["verdicts"][0]["severity"] != "fine"
    wanted = " ".join(action["what"] for action in found["verdicts"][0]["actions"])
    assert "latency" in wanted
    assert "throughput" in wanted


@check("R16", "diagnose whole.json --on H100 --slo-ttft-ms 500")
def utilization_demand_and_latency_together_may_be_green(ask: Ask) -> None:
    scene = serving_scene(8)
    _ttft(scene, mean_s=0.1)
    ask.scene("whole.json", scene)
    found = ask.document()
    assert found["recall"] > 0.95
    assert not [one for one in found["verdicts"] if one["severity"] in ("slow", "fault")]


def _ttft(scene: Scene, *, mean_s: float, per_s: float = 10.0) -> None:
    """A histogram of TTFT: requests arrive steadily, exponential with this mean."""
    for bound in (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0):
        share = 1.0 - math.exp(-bound / mean_s)
        labels = {"le": str(bound), "instance": "n1:8000"}
        scene.counter("vllm:time_to_first_token_seconds_bucket", per_s * share, **labels)
    labels = {"instance": "n1:8000"}
    name = "vllm:time_to_first_token_seconds"
    scene.counter(f"{name}_bucket", per_s, le="+Inf", **labels)
    scene.counter(f"{name}_count", per_s, **labels)
    scene.counter(f"{name}_sum", per_s * mean_s, **labels)


@check("R17", "diagnose low.txt --devices 8 --usd-per-h 3")
def low_utilization_costs_money_each_month(ask: Ask) -> None:
    ask.table("low.txt", [10] * 60)
    found = ask.document()
    lost = sum(one["usd_per_month"] for one in found["waste"])
    assert lost == pytest.approx(0.9 * 8 * 3 * 730, rel=0.02)
    actions = [a["what"] for one in found["verdicts"] for a in one["actions"]]
    for word in ("MIG", "spot", "CPU"):
        assert any(word in action for action in actions), word


@check("R18", "diagnose full.txt --devices 16")
def the_tail_above_95_percent_is_predicted_for_this_pool(ask: Ask) -> None:
    def wait_ratio(n: int, rho: float) -> float:
        """Mean wait over service time in M/M/n."""
        load, block = n * rho, 1.0
        for k in range(1, n + 1):
            block = load * block / (k + load * block)
        chance = block / (1 - rho * (1 - block))
        return chance / (n * (1 - rho))

    for devices in (4, 16, 64):
        name = ask.table(f"full-{devices}.txt", [97] * 60)
        found = ask.document(f"diagnose {name} --devices {devices}")
        grown = wait_ratio(devices, 0.97) / wait_ratio(devices, 0.8)
        assert found["tail"]["wait_growth"] == pytest.approx(grown, rel=0.05)


@check("R19", "diagnose edges.txt")
def the_edges_of_the_bands_are_exact(ask: Ask) -> None:
    ask.table("edges.txt", [29.9, 30, 69.9, 70, 90, 90.1, 95, 95.1, 30, 90])
    bands = ask.document()["bands"]
    wanted = {"waste": 1, "under-used": 3, "good": 3, "hot": 2, "overload": 1}
    assert bands == pytest.approx({name: n / 10 for name, n in wanted.items()})


@check("R19", "diagnose table.txt --bands 20,50,80,90")
def bands_of_ones_own_and_a_suggestion_for_this_pool(ask: Ask) -> None:
    ask.table("table.txt", SEED)
    found = ask.document()
    wanted = {"waste": 0, "under-used": 0.2, "good": 0.2, "hot": 0.4, "overload": 0.2}
    assert found["bands"] == pytest.approx(wanted)
    few = ask.document("diagnose table.txt --devices 4")["suggested_band"]
    many = ask.document("diagnose table.txt --devices 400")["suggested_band"]
    assert few["high"] < many["high"] <= 1
    assert ask("diagnose table.txt --bands 50,20,80,90").code == 2


@check("R20", "diagnose backlog.json --on H100")
def a_backlog_has_a_deficit_and_a_time_to_clear(ask: Ask) -> None:
    scene = serving_scene()
    labels = {"instance": "n1:8001"}
    scene.exact("vllm:num_requests_waiting", np.linspace(0, 239 * 5 * 0.5, 240), **labels)
    scene.exact("vllm:num_requests_running", 60.0, **labels)
    scene.counter("vllm:request_success_total", 4.0, **labels)
    ask.scene("backlog.json", scene)
    backlog = ask.document()["backlog"]
    assert backlog["growth_requests_per_s"] == pytest.approx(0.5, rel=0.05)
    assert backlog["deficit_frac"] == pytest.approx(0.5 / 4.5, rel=0.1)
    assert backlog["waiting_requests"] == pytest.approx(597, rel=0.05)
    assert backlog["clear_s_with_one_more_replica"] == pytest.approx(597 / (4 - 0.5), rel=0.15)


@check("R20", f"simulate {LOAD} --rate 60 --slo-ttft-ms 500")
def a_simulated_overload_grows_its_backlog(ask: Ask) -> None:
    found = ask.document()
    assert found["backlog_growth_requests_per_s"] > 5
    assert found["verdict"] != "within limits"


@check("R21", "diagnose late.json --on H100 --slo-ttft-ms 500")
def a_violated_slo_has_attainment_burn_rate_and_phase(ask: Ask) -> None:
    scene = serving_scene()
    _ttft(scene, mean_s=0.4)
    ask.scene("late.json", scene)
    slo = ask.document()["slo"]
    attained = 1 - math.exp(-0.5 / 0.4)
    assert slo["attainment_frac"] == pytest.approx(attained, abs=0.03)
    assert slo["burn_rate"] == pytest.approx((1 - attained) / 0.01, rel=0.15)
    assert slo["binding_phase"] == "prefill"  # nobody waits
    queued = serving_scene(waiting=40.0)
    _ttft(queued, mean_s=0.4)
    ask.scene("queued.json", queued)
    assert (
        ask.document("diagnose queued.json --on H100 --slo-ttft-ms 500")["slo"]["binding_phase"]
        == "queue"
    )


@check("R22", "diagnose peaks.txt")
def the_mean_does_not_hide_the_peak(ask: Ask) -> None:
    ask.table("peaks.txt", [20] * 55 + [97] * 5)
    found = ask.document()
    assert found["peak"] == pytest.approx(0.97)
    assert found["layers"][0]["p99_minute"] == pytest.approx(0.97, abs=0.005)
    assert any("97%" in text and "26%" in text for text in found["warnings"])
    assert found["verdicts"][0]["cause"] == "uneven_load"


@check("R23", "check examples/slow-disks.yaml")
def copies_to_the_device_are_modelled(ask: Ask) -> None:
    stage = {one["stage"]: one for one in ask.document()["bottlenecks"]}["copy to device"]
    batch_bytes = 256 * 602_112
    assert stage["demand"] == pytest.approx(3000 * 602_112, rel=0.01)
    assert batch_bytes / stage["supply"] == pytest.approx(0.0257 + 256 / 3000, rel=0.05)
    pinned = "workloads[0].data_path.copy_to_device.pinned=true"
    better = ask.document(f"check examples/slow-disks.yaml --what-if {pinned}")["after"]
    left = [one for one in better["bottlenecks"] if one["stage"] == "copy to device"]
    assert not left or left[0]["gpu_busy_frac"] > stage["gpu_busy_frac"]


@check("R23", "diagnose pcie.json --on H100")
def a_full_pcie_link_is_detected(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        scene.device(gpu, gpu_util=0.6, sm=0.3, tensor=0.1, dram=0.2, power_w=300.0, pcie=55e9)
    ask.scene("pcie.json", scene)
    first = ask.document()["verdicts"][0]
    assert first["cause"] == "pcie_bound"
    assert first["more_gpus_help"] is not True


@check("R24", "plan examples/growth.yaml --samples 0")
def growth_scenarios_and_regret_are_shown(ask: Ask) -> None:
    rows = ask.plan("growth")["explanation"]["growth"]
    ratio = {one["name"]: one["load_ratio"] for one in rows}
    assert ratio["high"] > ratio["mid"] > ratio["low"] > 1
    sampled = ask.document("plan examples/which-gpu.yaml --samples 60")["uncertainty"]
    assert sampled["rows"][0]["p95_regret_usd_per_month"] >= 0
    assert sampled["least_regret"]


@check("R25", "diagnose busy.json --on H100")
def busy_and_slow_is_called_inefficient_code(ask: Ask) -> None:
    scene = Scene()
    for gpu in range(4):
        scene.device(gpu, gpu_util=0.98, sm=0.34, tensor=0.05, dram=0.18, power_w=294.0)
    ask.scene("busy.json", scene)
    first = ask.document()["verdicts"][0]
    assert first["cause"] == "small_kernels"
    assert first["more_gpus_help"] is False


@check("R25", "diagnose layers.json --on H100")
def energy_per_unit_of_work_is_measured(ask: Ask) -> None:
    ask.scene("layers.json", serving_scene())
    found = ask.document()
    assert found["work"]["output_tokens_per_s"] == pytest.approx(8000, rel=0.02)
    assert found["work"]["j_per_output_token"] == pytest.approx(4 * 400 / 8000, rel=0.05)


@check("R27", "diagnose queue.json --on H100 --slo-ttft-ms 500")
def the_number_of_replicas_that_restores_the_slo_is_computed(ask: Ask) -> None:
    for waiting, wanted in ((0.5, 1), (4.0, 2)):
        scene = Scene()
        scene.device(0, gpu_util=0.98, sm=0.86, tensor=0.4, dram=0.7, power_w=644.0)
        labels = {"instance": "n1:8000"}
        scene.exact("vllm:num_requests_waiting", np.linspace(0, 1195 * waiting, 240), **labels)
        scene.gauge("vllm:num_requests_running", 64.0, **labels)
        scene.exact("vllm:kv_cache_usage_perc", 0.7, **labels)
        scene.counter("vllm:request_success_total", 4.0, **labels)
        name = ask.scene(f"queue-{waiting}.json", scene)
        found = ask.document(f"diagnose {name} --on H100 --slo-ttft-ms 500")
        more = next(a for a in found["verdicts"][0]["actions"] if "replica" in a["what"])
        assert more["n_replicas"] >= wanted
        carried = 4.0 * (1 + more["n_replicas"])
        assert carried > 4.0 + waiting
        assert more["gain_low"] == pytest.approx(more["gain_high"], rel=0.5)


@check("R27", "diagnose starved-0.35.json --on H100")
def gains_follow_from_this_fleets_own_figures(ask: Ask) -> None:
    """Feeding GPUs that compute a share u of the time brings at most 1/u - 1, and not a table's."""
    highest = {}
    for level in (0.2, 0.35, 0.5):
        scene = Scene()
        for gpu in range(4):
            scene.device(gpu, gpu_util=level, sm=level / 2, tensor=0.1, dram=0.1, power_w=250.0)
        labels = {"instance": "n1:9100", "device": "nvme0n1"}
        scene.counter("node_disk_io_time_seconds_total", 0.99, **labels)
        scene.counter("node_cpu_seconds_total", 20.0, instance="n1:9100", cpu="0", mode="iowait")
        scene.counter("node_cpu_seconds_total", 44.0, instance="n1:9100", cpu="0", mode="idle")
        name = ask.scene(f"starved-{level}.json", scene)
        found = ask.document(f"diagnose {name} --on H100")["verdicts"][0]
        assert found["cause"] == "storage_bound"
        highest[level] = max(one["gain_high"] for one in found["actions"])
        assert highest[level] == pytest.approx(1 / level - 1, rel=0.05)
        assert found["actions"][0]["gain_low"] < highest[level]
    # Four idle GPUs of sixteen are a quarter of the bill, two an eighth.
    for n_idle in (2, 4):
        scene = Scene()
        for gpu in range(16):
            is_idle = gpu < n_idle
            levels = {"gpu_util": 0.0, "sm": 0.0} if is_idle else {"gpu_util": 0.9, "sm": 0.7}
            scene.device(gpu % 8, f"n{gpu // 8}", power_w=300.0, held_bytes=40e9, **levels)
        name = ask.scene(f"held-{n_idle}.json", scene)
        verdicts = {one["cause"]: one for one in ask.document(f"diagnose {name}")["verdicts"]}
        best = max(one["gain_high"] for one in verdicts["idle_allocated"]["actions"])
        assert best == pytest.approx(n_idle / 16)


@check("R28", "score table.txt --min-precision 0.7")
def a_gate_ends_with_4(ask: Ask) -> None:
    ask.table("table.txt", SEED)
    assert ask("score table.txt --min-precision 0.6").code == 0
    assert ask().code == 4
    assert ask("score table.txt --max-peak-utilization 0.94").code == 4
    assert ask("score table.txt --max-peak-utilization 0.96 --min-mean-utilization 0.6").code == 0


@check("R29", "learn table.txt")
def it_teaches_from_the_users_own_numbers(ask: Ask) -> None:
    for values in (SEED, [98] * 5):
        name = ask.table(f"learn-{values[0]}.txt", values)
        found = ask.document(f"learn {name}")
        assert len(found["lessons"]) >= 3
        mean = f"{sum(values) / len(values):.0f}"
        assert any(mean in one["why"] for one in found["lessons"])
        assert all(one["question"].endswith("?") and one["answer"] for one in found["questions"])
