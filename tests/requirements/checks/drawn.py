"""The worked scenarios with drawn numbers: prices, loads, sizes and speeds nobody chose.

What is expected is worked out here from the drawn inputs alone.
"""

import itertools
import json
import math

import numpy as np
import pytest

from fakes.telemetry import Scene
from requirements.asking import Ask
from requirements.checks.production import weekly_peaks
from requirements.registry import check

N_DRAWS = 3
PAGEABLE, PINNED = 6e9, 50e9  # bytes/s from host memory to an H100: PCIe Gen5, 25e9 with Gen4


def _draws(name: str, n: int = N_DRAWS) -> list[np.random.Generator]:
    """One stream of draws for every case, by the scenario's name."""
    seed = [ord(letter) for letter in name]
    return [np.random.default_rng([*seed, k]) for k in range(n)]


@check("R26", "diagnose a1-drawn-0-queue.json --on H100")
def a1_drawn_levels_keep_their_three_causes(ask: Ask) -> None:
    causes = {"queue": "kv_thrash", "kernels": "small_kernels", "links": "network_bound"}
    for k, rng in enumerate(_draws("a1")):
        util = round(float(rng.uniform(0.95, 0.995)), 3)  # the same for all three
        levels = {
            "queue": {"sm": rng.uniform(0.75, 0.95), "tensor": rng.uniform(0.36, 0.5)},
            "kernels": {"sm": rng.uniform(0.2, 0.45), "tensor": rng.uniform(0.02, 0.1)},
            "links": {"sm": rng.uniform(0.82, 0.97), "tensor": rng.uniform(0.03, 0.15)},
        }
        watts = {"queue": rng.uniform(580, 690), "kernels": rng.uniform(230, 380)}
        per_s = float(rng.uniform(1.0, 4.0))  # requests that one replica answers
        growth = float(rng.uniform(0.5, 3.0)) * per_s
        for kind, cause in causes.items():
            scene = Scene(generation=k % 2)
            for gpu in range(4):
                link = {"link": rng.uniform(0.92, 0.99) * 450e9} if kind == "links" else {}
                power = watts.get(kind, watts["kernels"])
                scene.device(gpu, gpu_util=util, dram=0.3, power_w=power, **levels[kind], **link)
            if kind == "queue":
                labels = {"model_name": "m", "instance": "n1:8000"}
                grown = np.linspace(0.0, 239 * 5 * growth, 240)
                scene.exact("vllm:num_requests_waiting", grown, **labels)
                scene.exact("vllm:kv_cache_usage_perc", 0.99, **labels)
                scene.counter("vllm:num_preemptions_total", 0.3, **labels)
                scene.counter("vllm:request_success_total", per_s, **labels)
            name = ask.scene(f"a1-drawn-{k}-{kind}.json", scene)
            first = ask.document(f"diagnose {name} --on H100")["verdicts"][0]
            assert first["cause"] == cause, (k, kind)
            assert first["more_gpus_help"] is (kind == "queue")
            if kind == "queue":
                more = next(one for one in first["actions"] if one["n_replicas"])
                # As many as outrun what arrives, and not one more than a tenth of slack takes.
                assert more["n_replicas"] * per_s > growth
                assert more["n_replicas"] <= math.ceil(1.15 * growth / per_s)
                assert "cold start" in more["cost"]


@check("R7", "diagnose a13-drawn-0.json --on A100 --usd-per-h 1.5")
def a13_drawn_teams_idle_gpus_and_bills(ask: Ask) -> None:
    names = ["search", "speech", "vision", "ads", "research", "platform"]
    for k, rng in enumerate(_draws("a13")):
        usd, hours = round(float(rng.uniform(1, 4)), 2), 168
        scene, idle = Scene(n_samples=hours), {}
        scene.at_s = 1.75e9 + 3600.0 * np.arange(hours)
        n_gpus = {name: int(rng.integers(3, 9)) for name in names}
        place = 0
        for name, n in n_gpus.items():
            idle[name] = int(rng.integers(0, 3))
            for gpu in range(n):
                level = 0.0 if gpu < idle[name] else float(rng.uniform(0.6, 0.9))
                scene.device(
                    place % 8,
                    f"n{place // 8}",
                    gpu_util=level,
                    sm=level,
                    power_w=300.0,
                    held_bytes=50e9,
                    free_bytes=30e9,
                    namespace=name,
                    pod=f"{name}-{gpu}",
                )
                place += 1
        file = ask.scene(f"a13-drawn-{k}.json", scene)
        found = ask.document(f"diagnose {file} --on A100 --usd-per-h {usd}")
        rows = [(one["team"], one["usd_per_month"]) for one in found["reclaim"]]
        assert {team: sum(t == team for t, _ in rows) for team in names} == idle
        assert all(price == pytest.approx(usd * 730) for _, price in rows)
        for one in found["teams"]:
            n = n_gpus[one["team"]]
            assert one["usd"] == pytest.approx(n * (hours - 1) * usd, rel=0.01)
            assert one["busy_frac"] == pytest.approx(1 - idle[one["team"]] / n, abs=0.02)


@check("R69", "plan examples/which-gpu.yaml --samples 0 --set policy.survive=none")
def a2_the_priciest_wins_only_where_it_is_cheapest(ask: Ask) -> None:
    names = {"L4": "l4", "L40S": "l40s", "H100": "h100-sxm"}
    winners = set()
    for rng in _draws("a2", 6):
        prices = np.round(rng.uniform([0.5, 1.0, 2.0], [1.2, 2.2, 4.5]), 2)
        tokens = np.round(rng.uniform([500, 1500, 5000], [1300, 4000, 12000]), -1)
        load, spare = float(rng.integers(200, 30_000)), int(rng.integers(0, 2))
        capacity = [
            {"accelerator": one, "output_tokens_per_s": t}
            for one, t in zip(names, tokens, strict=True)
        ]
        found = ask.plan(
            "which-gpu",
            f"workloads[0].demand.output_tokens_per_s={load}",
            f"workloads[0].capacity={json.dumps(capacity)}",
            f"policy.survive={'gpu' if spare else 'none'}",
            *(f"prices.offers[{i}].usd_per_accelerator_h={p}" for i, p in enumerate(prices)),
        )
        counts = [math.ceil(load / (0.7 * t) - 1e-9) + spare for t in tokens]
        bills = [n * float(p) for n, p in zip(counts, prices, strict=True)]
        best = int(np.argmin(bills))
        pool = found["plan"]["pools"][0]
        winners.add(pool["accelerator"])
        assert (pool["accelerator"], pool["n_accelerators"]) == (
            [*names.values()][best],
            counts[best],
        )
        assert found["plan"]["cost_usd_per_month"]["value"] == pytest.approx(bills[best] * 730)
        # Every plan answers "why not the priciest", with what it would cost more.
        rows = {one["question"]: one for one in found["explanation"]["why_not"]}
        priciest = int(np.argmax(prices))
        extra = rows["the priciest accelerator, for assistant"]["extra_usd_per_month"]
        if best != priciest:
            assert extra == pytest.approx((bills[priciest] - bills[best]) * 730, rel=1e-3)
    assert len(winners) > 1


@check("R62", "check examples/slow-disks.yaml")
def a3_every_stage_of_the_chain_in_its_order(ask: Ask) -> None:
    for rng in _draws("a3"):
        samples, kb = int(rng.integers(500, 4000)), int(rng.integers(40, 400))
        cores, speed = int(rng.integers(24, 160)), int(rng.integers(60, 300))
        gbit, batch = int(rng.choice([1, 10, 25])), int(rng.choice([64, 128, 512]))
        path = "workloads[0].data_path."
        changes = {
            "samples_per_s_per_accelerator": samples,
            "sample_kb": kb,
            "loader.cores": cores,
            "loader.samples_per_s_per_core": speed,
            "storage.network_gbit_per_s": gbit,
            "copy_to_device.batch_samples": batch,
        }
        words = [f"--what-if {path}{key}={value}" for key, value in changes.items()]
        words.append(f"--what-if workloads[0].capacity[0].samples_per_s={samples}")
        found = ask.document(" ".join(["check examples/slow-disks.yaml", *words]))["after"]
        wanted = {
            "storage network": gbit * 0.88 * 125e6 / (8 * samples * kb * 1e3),
            "storage": 3600 / (8 * samples),
            "CPU decode": cores * speed / (8 * samples),
        }
        tensor_s = batch * 602_112 / PAGEABLE  # not overlapped: it adds to the step
        wanted["copy to device"] = (batch / samples) / (batch / samples + tensor_s)
        rows = found["bottlenecks"]
        assert [one["gpu_busy_frac"] for one in rows] == sorted(
            one["gpu_busy_frac"] for one in rows
        )
        met = {one["stage"]: one["gpu_busy_frac"] for one in rows}
        for stage, busy in wanted.items():
            if busy < 0.99:
                assert met[stage] == pytest.approx(busy, rel=0.03), stage
        for now, then in itertools.pairwise(rows):
            assert now["gpu_busy_after_frac"] == pytest.approx(then["gpu_busy_frac"])
        assert found["workloads"][0]["demand"]["opens_per_s"] == pytest.approx(8 * samples)


@check("R74", "check examples/power-shortfall.yaml")
def a4_circuits_heat_and_energy(ask: Ask) -> None:
    for rng in _draws("a4"):
        amps, node_kw = int(rng.choice([30, 50, 60, 80])), round(float(rng.uniform(5, 11)), 1)
        pue, nodes = round(float(rng.uniform(1.1, 1.8)), 2), int(rng.integers(2, 9))
        changes = {
            "site.rack.circuit.amps": amps,
            "owned[0].node_max_kw": node_kw,
            "owned[0].nodes": nodes,
            "site.pue": pue,
            "workloads[0].work.accelerators": 8 * nodes,
        }
        words = [f"--what-if {key}={value}" for key, value in changes.items()]
        found = ask.document(" ".join(["check examples/power-shortfall.yaml", *words]))["after"]
        room, heat = found["facilities"][0], nodes * node_kw * 1e3
        usable = 208 * amps * math.sqrt(3) * 0.8  # one feed: the other is there for its failure
        assert room["rack_usable_w"] == pytest.approx(usable, rel=1e-3)
        assert room["n_machines_per_rack"] == int(usable // (node_kw * 1e3))
        assert room["cooling"]["heat_w"] == pytest.approx(heat)
        assert room["cooling"]["btu_per_h"] == pytest.approx(3.412 * heat, rel=1e-3)
        assert room["cooling"]["tons"] == pytest.approx(3.412 * heat / 12_000, rel=1e-3)
        energy = found["energy"]["kwh_per_year"]
        assert energy == pytest.approx(nodes * node_kw * 0.7 * 8760 * pue, rel=0.01)


@check("R53", "scale Llama-3-8B --on H100 --mfu 0.45 --node-gbit 100")
def a5_efficiency_is_compute_over_the_longer_of_both(ask: Ask) -> None:
    for rng in _draws("a5"):
        gbit, mfu = int(rng.choice([50, 100, 200, 400])), round(float(rng.uniform(0.35, 0.5)), 2)
        found = ask.document(f"scale Llama-3-8B --on H100 --mfu {mfu} --node-gbit {gbit}")
        compute_s = 8 * 8.03e9 * 8192 / (989.4e12 * mfu)  # forward, backward, recomputed forward
        for point in found["points"]:
            nodes = point["n_accelerators"] // 8
            if nodes < 2:
                continue
            bytes_ = 3 * 2 * 8.03e9 * (nodes - 1) / nodes  # gathered twice, reduced once, BF16
            comm_s = bytes_ / (gbit / 8 * 1e9 * 0.9)
            wanted = compute_s / max(compute_s, comm_s)
            assert point["efficiency_frac"] == pytest.approx(wanted, abs=0.12), (gbit, nodes)
            speedup = point["efficiency_frac"] * nodes
            assert point["speedup"] == pytest.approx(speedup, rel=0.02)


@check("R41", "plan examples/cpu-is-enough.yaml --samples 0")
def a6_cpu_nodes_until_one_gpu_is_cheaper(ask: Ask) -> None:
    kinds = set()
    for rng in _draws("a6"):
        cpu, gpu = round(float(rng.uniform(0.2, 0.6)), 2), round(float(rng.uniform(0.7, 1.5)), 2)
        rate, per_day = int(rng.integers(30, 90)), int(rng.integers(50_000, 600_000))
        peak = int(rng.integers(3, 12))
        found = ask.plan(
            "cpu-is-enough",
            f"workloads[0].demand.requests_per_day={per_day}",
            f"workloads[0].demand.peak_to_mean={peak}",
            f"workloads[0].capacity[0].requests_per_s={rate}",
            f"prices.offers[0].usd_per_node_h={cpu}",
            f"prices.offers[1].usd_per_accelerator_h={gpu}",
        )
        n = math.ceil(per_day / 86400 * peak / (0.7 * rate) - 1e-9)
        pool, bill = found["plan"]["pools"][0], found["plan"]["cost_usd_per_month"]["value"]
        kinds.add(pool["n_accelerators"] > 0)
        if n * cpu < gpu:
            assert (pool["n_accelerators"], pool["n_replicas"]) == (0, n)
            assert bill == pytest.approx(n * cpu * 730)
        else:
            assert bill <= n * cpu * 730 + 1e-6


@check("R65", "plan examples/large-training.yaml --samples 0")
def a7_checkpoints_by_young_and_goodput(ask: Ask) -> None:
    for rng in _draws("a7"):
        mtbf_h = int(rng.integers(20_000, 90_000))
        size_tb, gb_per_s = round(float(rng.uniform(0.5, 3)), 2), int(rng.choice([2, 5, 20, 80]))
        training = "workloads[0].training."
        found = ask.plan(
            "large-training",
            f"{training}accelerator_mtbf_h={mtbf_h}",
            f"{training}checkpoint.size_tb={size_tb}",
            f"{training}checkpoint.write_gb_per_s={gb_per_s}",
        )
        chosen = next(one for one in found["comparison"] if one["is_chosen"])
        write_s, mtbf_s = size_tb * 1e3 / gb_per_s, mtbf_h * 3600 / chosen["n_accelerators"]
        interval_s = math.sqrt(2 * write_s * mtbf_s)
        why = " ".join(found["explanation"]["why"])
        assert f"a checkpoint every {interval_s / 60:.0f} minutes of {write_s:.0f} s" in why, why
        goodput = float(why.split("goodput ")[1].split("%")[0]) / 100
        lost = write_s / interval_s + interval_s / 2 / mtbf_s
        assert 1 - lost - 0.01 <= goodput <= 1 - lost + 0.002  # restarts come on top


@check("R105", "plan examples/burst-to-cloud.yaml --samples 0")
def a8_as_many_owned_as_brute_force_says(ask: Ask) -> None:
    for rng in _draws("a8"):
        sizes = np.cumsum(rng.integers(4, 25, 4))
        hours = [168, *sorted((int(h) for h in rng.integers(5, 160, 3)), reverse=True)]
        own, cloud = round(float(rng.uniform(0.6, 2.4)), 2), round(float(rng.uniform(2.5, 5)), 2)
        steps = [
            {"accelerators": int(n), "hours_per_week": h} for n, h in zip(sizes, hours, strict=True)
        ]
        found = ask.plan(
            "burst-to-cloud",
            f"workloads[0].work.load_duration={json.dumps(steps)}",
            f"prices.offers[0].usd_per_accelerator_h={own}",
            f"prices.offers[1].usd_per_accelerator_h={cloud}",
        )
        needed = [
            max(h for n, h in zip(sizes, hours, strict=True) if k < n) for k in range(sizes[-1])
        ]
        bills = [k * own * 168 + sum(needed[k:]) * cloud for k in range(len(needed) + 1)]
        bought = {one["purchase"]: one["n_nodes"] for one in found["plan"]["pools"][0]["purchases"]}
        assert bills[bought.get("owned", 0)] == pytest.approx(min(bills), rel=1e-6)
        bill = found["plan"]["cost_usd_per_month"]["value"]
        assert bill == pytest.approx(min(bills) * 730 / 168, rel=1e-3)


@check("R113", "plan examples/growth.yaml --samples 0")
def a9_order_dates_from_growth_and_lead_time(ask: Ask) -> None:
    for rng in _draws("a9"):
        growth, lead = round(float(rng.uniform(0.02, 0.15)), 2), int(rng.integers(4, 40))
        peak, trigger = (
            round(float(rng.uniform(0.4, 0.75)), 2),
            round(float(rng.uniform(0.8, 0.95)), 2),
        )
        nodes = int(rng.integers(2, 12))
        found = ask.plan(
            "growth",
            f"growth.per_month_frac={growth}",
            f"growth.lead_time_weeks={lead}",
            f"growth.trigger_utilization_frac={trigger}",
            f"owned[0].nodes={nodes}",
            f"owned[0].peak_utilization_frac={peak}",
            f"workloads[0].work.accelerators={8 * nodes * peak}",
        )
        weeks = math.log(trigger / peak) / math.log(1 + growth) * 52 / 12
        rows = found["explanation"]["crossovers"]
        row = next(one for one in rows if f"{growth:.0%}" in one["what"])
        assert float(row["at"].split()[0]) == pytest.approx(weeks, rel=0.02)
        need = math.ceil(8 * nodes * peak * (1 + growth) ** 12 / 0.80 - 1e-6)
        assert f"{need} accelerators" in row["then"]
        assert ("order now" in row["then"]) == (weeks < lead)


@check("R23", "check examples/slow-disks.yaml")
def a10_copies_pageable_pinned_and_as_bytes(ask: Ask) -> None:
    for rng in _draws("a10"):
        batch, side = int(rng.choice([32, 128, 256])), int(rng.choice([224, 384, 512]))
        step_s = batch / 400  # 400 samples/s of a GPU: copies show in the step
        for is_pinned, bytes_, is_overlapped in itertools.product(
            (False, True), (4, 1), (False, True)
        ):
            tensor_kb = side * side * 3 * bytes_ / 1e3
            changes = {
                "data_path.samples_per_s_per_accelerator": 400,
                "capacity[0].samples_per_s": 400,
                "data_path.copy_to_device.batch_samples": batch,
                "data_path.copy_to_device.tensor_kb_per_sample": tensor_kb,
                "data_path.copy_to_device.pinned": str(is_pinned).lower(),
                "data_path.copy_to_device.overlapped": str(is_overlapped).lower(),
            }
            words = [f"--what-if workloads[0].{key}={value}" for key, value in changes.items()]
            found = ask.document(" ".join(["check examples/slow-disks.yaml", *words]))["after"]
            copy_s = batch * tensor_kb * 1e3 / (PINNED if is_pinned else PAGEABLE)
            # Overlapped, the longer of both counts, which needs pinned memory; else both.
            rows = {one["stage"]: one["gpu_busy_frac"] for one in found["bottlenecks"]}
            wanted = step_s / (
                max(copy_s, step_s) if is_overlapped and is_pinned else step_s + copy_s
            )
            assert "copy to device" in rows or wanted > 0.9
            assert rows.get("copy to device", wanted) == pytest.approx(wanted, rel=0.02)


@check("R50", "fit Llama-3.3-70B --on 2xH100 --precision fp8")
def a11_kv_cache_by_heads_layers_and_dimension(ask: Ask) -> None:
    shapes = {  # layers, KV heads, head dimension of the published configurations
        "Llama-3.1-8B": (32, 8, 128),
        "Qwen2.5-72B": (80, 8, 128),
        "Qwen3-32B": (64, 8, 128),
        "Mistral-7B-Instruct-v0.3": (32, 8, 128),
        "Qwen2.5-7B": (28, 4, 128),
    }
    for model, (layers, heads, size) in shapes.items():
        for name, width in (("auto", 2), ("fp8", 1)):
            words = f"fit {model} --on 4xH100" + ("" if name == "auto" else " --kv-precision fp8")
            assert ask.document(words)["kv_bytes_per_token"] == 2 * layers * heads * size * width


@check(
    "R83",
    "plan --model Qwen3-32B --on H100 --rate 3 --input-tokens 24000 --output-tokens 250 "
    "--prefix-cache-hit-rate 0.9 --ttft-p95-ms 4000 --tpot-p95-ms 50 --samples 0",
)
def a12_hits_discount_prefill_alone(ask: Ask) -> None:
    for rng in _draws("a12")[:2]:
        rate, inputs = int(rng.integers(2, 6)), int(rng.integers(8, 30)) * 1000
        words = f"plan --model Qwen3-32B --on H100 --rate {rate} --input-tokens {inputs} "
        words += "--output-tokens 250 --prefix-cache-hit-rate 0.9 --ttft-p95-ms 4000 "
        found = ask.document(words + "--tpot-p95-ms 50 --samples 0")
        rows = [one for one in found["explanation"]["crossovers"] if "prefix cache" in one["what"]]
        assert len(rows) >= 3
        for row in rows:
            hit = float(row["at"].split("%")[0]) / 100
            left = float(row["then"].split()[0].replace(",", ""))
            assert left == pytest.approx(rate * inputs * (1 - hit), rel=0.02)
        load = found["load"][0]
        # Whole contexts stay in memory, hit or not: Little's law over all tokens.
        held = load["n_in_flight"] * (inputs + 250 / 2)
        assert load["n_in_flight"] == pytest.approx(rate * load["residence_s"], rel=0.02)
        assert held > 0


@check("R91", "plan examples/which-gpu.yaml --samples 0 --set policy.survive=none")
def better_code_is_worth_the_gpus_that_it_saves(ask: Ask) -> None:
    capacity = json.dumps([{"accelerator": "H100", "output_tokens_per_s": 9000}])
    for rng in _draws("r91"):
        load, usd = float(rng.integers(20_000, 90_000)), round(float(rng.uniform(1.5, 5)), 2)
        found = ask.plan(
            "which-gpu",
            f"workloads[0].demand.output_tokens_per_s={load}",
            f"workloads[0].capacity={capacity}",
            "policy.survive=none",
            "policy.accelerators.allowed=[H100]",
            f"prices.offers={json.dumps([{'accelerator': 'H100', 'usd_per_accelerator_h': usd}])}",
        )
        now = math.ceil(load / 6300 - 1e-9)
        saved = now - math.ceil(load / (1.1 * 6300) - 1e-9)  # the same load, better code
        bought = math.ceil(1.1 * load / 6300 - 1e-9) - now  # a tenth more load, more GPUs
        spend = " ".join(found["explanation"]["next_spend"])
        worth = max(saved, bought) * usd * 730
        wanted = f"code with 10% more throughput per replica is worth ${worth:,.0f}/month"
        assert wanted in spend if worth else "code with" not in spend, spend


@check(
    "R106",
    "simulate --model Llama-3.1-8B --on H100 --rate 40 --input-tokens 600 --output-tokens 200"
    " --duration 20m --fleet examples/fleets/autoscaled-and-spot.yaml",
)
def more_load_starts_more_replicas_after_their_cold_start(ask: Ask) -> None:
    def fleet(rate: int, boot_s: int) -> dict:
        text = "router: {rule: least_outstanding}\npools:\n  - name: p\n    replicas: 1\n"
        text += "    min_replicas: 1\n    max_replicas: 8\n    autoscaling: "
        text += "{target_requests: 20, interval_s: 15, down_window_s: 300}\n    start: "
        text += f"{{boot_s: {boot_s}, image_s: 7, load_s: 11, compile_s: 13, warmup_s: 3}}\n"
        name = ask.write(f"fleet-{boot_s}.yaml", text)
        return ask.document(
            f"simulate --model Llama-3.1-8B --on H100 --rate {rate} --input-tokens 600"
            f" --output-tokens 200 --duration 15m --fleet {name}"
        )

    low, high, slow = fleet(10, 20), fleet(90, 20), fleet(90, 300)
    pools = [one["fleet"]["pools"][0] for one in (low, high, slow)]
    assert pools[1]["cold_start_s"]["total"] == pytest.approx(20 + 7 + 11 + 13 + 3)
    assert pools[2]["cold_start_s"]["total"] == pytest.approx(300 + 7 + 11 + 13 + 3)
    assert pools[1]["n_starts"] > pools[0]["n_starts"]
    assert pools[1]["paid_replica_hours"] > pools[0]["paid_replica_hours"]
    # What scales out five minutes later makes the first requests of the load wait longer.
    assert slow["ttft_s"]["p99"] > high["ttft_s"]["p99"]


@check("R113", "forecast weeks.csv --devices 48 --lead-weeks 16 --lead-weeks-high 30 --growth 0.08")
def the_order_follows_from_peak_growth_and_lead_time(ask: Ask) -> None:
    for rng in _draws("r113"):
        level, growth = (
            round(float(rng.uniform(0.45, 0.7)), 2),
            round(float(rng.uniform(0.03, 0.1)), 2),
        )
        lead, late, n = (
            int(rng.integers(4, 24)),
            int(rng.integers(25, 40)),
            int(rng.integers(16, 90)),
        )
        name = ask.write(f"weeks-{level}.csv", weekly_peaks(level, growth, days=56))
        found = ask.document(
            f"forecast {name} --devices {n} --lead-weeks {lead} --lead-weeks-high {late}"
            f" --growth {growth}"
        )
        order = next(one for one in found["orders"] if one["growth_per_month"] == growth)
        weeks = order["trigger_in_s"] / 604_800
        by_hand = math.log(0.85 / found["peak_use"]) / math.log(1 + growth) * 52 / 12
        assert weeks == pytest.approx(by_hand, rel=0.02)
        assert order["bridge_weeks"] == pytest.approx(max(0.0, lead - weeks), abs=0.01)
        assert order["late_delivery"]["bridge_weeks"] == pytest.approx(
            max(0.0, late - weeks), abs=0.01
        )
        assert order["order_in_s"] / 604_800 == pytest.approx(max(0.0, weeks - lead), abs=0.01)
        arrival = found["peak_use"] * (1 + growth) ** (lead * 12 / 52)
        assert order["use_at_arrival"] == pytest.approx(arrival, rel=0.02)
        need = n * found["peak_use"] * (1 + growth) ** 12 / 0.8
        assert order["n_needed_in_a_year"] == pytest.approx(need, abs=1.5)
        assert order["safety_stock"] > 0
