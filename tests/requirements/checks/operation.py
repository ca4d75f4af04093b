"""R83 to R94: real-world optimization."""

import json
import time

import numpy as np
import pytest

from fakes.http_server import running_server
from fakes.telemetry import Scene
from requirements.asking import Ask
from requirements.registry import check

LOAD = "--model Llama-3.1-8B --on H100 --input-tokens 800 --output-tokens 200"


@check("R83", f"simulate {LOAD} --rate 25 --duration 10m --burstiness 3")
def bursts_raise_the_tail(ask: Ask) -> None:
    calm = ask.document(f"simulate {LOAD} --rate 25 --duration 10m")
    wild = ask.document()
    assert wild["load"]["gap_cv"] == pytest.approx(3, rel=0.15)
    assert wild["ttft_s"]["p99"] > 1.2 * calm["ttft_s"]["p99"]
    rows = ["arrive,input,output"] + [f"{i * 0.1},500,50" for i in range(200)]
    name = ask.write("trace.csv", "\n".join(rows))
    columns = "--columns arrive=arrive,input=input,output=output"
    replayed = ask.document(f"simulate --model Llama-3.1-8B --on H100 --trace {name} {columns}")
    assert replayed["n_requests"] == 200
    assert replayed["load"]["requests_per_s"] == pytest.approx(10, rel=0.05)


@check("R84", "plan examples/chat.yaml --samples 0")
def precision_is_a_variable_of_the_plan(ask: Ask) -> None:
    found = ask.plan("chat")
    assert {one["precision"] for one in found["comparison"]} >= {"fp8", "int4"}
    assert found["plan"]["pools"][0]["engine"].startswith("vllm")


@check("R84", "plan examples/chat.yaml --samples 0 --engines vllm,sglang")
def engines_are_compared(ask: Ask) -> None:
    found = ask.document()
    usd: dict[str, float] = {}
    for name in ("vllm", "sglang"):
        alone = ask.plan("chat", f"site.software.framework={name}")
        usd[name] = alone["plan"]["cost_usd_per_month"]["value"]
        rows = [one for one in found["comparison"] if one["engine"].startswith(name)]
        costs = {one["usd_per_month"] for one in rows if one["usd_per_month"]}
        assert any(usd[name] == pytest.approx(one, abs=0.01) for one in costs)
    assert found["plan"]["cost_usd_per_month"]["value"] == pytest.approx(min(usd.values()))
    assert found["plan"]["pools"][0]["engine"].split()[0] == min(usd, key=lambda name: usd[name])
    assert "another engine" in {one["kind"] for one in found["alternatives"]}
    assert ask("plan examples/chat.yaml --engines vllm,vlm").code == 2


@check("R85", "plan examples/shared-cluster.yaml --samples 0")
def quotas_and_priorities_of_teams_hold(ask: Ask) -> None:
    limits = {one["name"]: one for one in ask.plan("shared-cluster")["plan"]["limits"]}
    assert limits["teams.search.quota_accelerators"]["used_frac"] == pytest.approx(20 / 24)
    answer = ask(
        "plan examples/shared-cluster.yaml --samples 0 --set teams[0].quota_accelerators=16"
    )
    assert answer.code in (3, 4)
    assert "quota" in answer.err + answer.out


@check("R86", "diagnose smi.csv")
def common_sources_give_the_same_figures(ask: Ask) -> None:
    smi = "timestamp, index, name, utilization.gpu [%], power.draw [W]\n" + "".join(
        f"2026/11/16 10:{i:02d}:00.000, 0, NVIDIA H100 80GB HBM3, 75 %, 500.00 W\n"
        for i in range(20)
    )
    ask.write("smi.csv", smi)
    text = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}",Hostname="n1",modelName="NVIDIA H100 80GB HBM3"}} 75\n'
        for gpu in range(2)
    )
    ask.write("exposition.txt", text)
    scene = Scene(generation=1).device(0, gpu_util=0.75)
    ask.scene("matrix.json", scene)
    for name in ("smi.csv", "exposition.txt", "matrix.json"):
        assert ask.document(f"diagnose {name}")["mean"] == pytest.approx(0.75, abs=0.01), name


@check("R87", "diagnose examples/data/telemetry.csv")
def twenty_causes_have_names_and_actions(ask: Ask) -> None:
    from gpuplan.diagnose.finding import CAUSES  # noqa: PLC0415  (the list is the product)

    assert len(CAUSES) >= 20
    assert all(cause.actions for cause in CAUSES.values())
    found = ask.document()
    assert found["verdicts"]
    assert all(one["evidence"] and one["actions"] for one in found["verdicts"])


@check("R88", "fit Llama-3.3-70B --on 2xH100 --precision bf16 --concurrency 8")
def narrower_formats_save_memory_and_name_their_risk(ask: Ask) -> None:
    wide = ask.document()
    narrow = ask.document("fit Llama-3.3-70B --on 2xH100 --precision fp8 --concurrency 8")
    ratio = narrow["weights_bytes_per_accelerator"] / wide["weights_bytes_per_accelerator"]
    assert ratio == pytest.approx(0.515, abs=0.02)
    plan = ask.plan("chat")
    noted = [one for one in plan["comparison"] if one["precision"] == "int4"]
    assert "quality" in noted[0]["note"]


@check("R88", "predict Llama-3.1-8B --on H100 --precisions bf16,fp8,fp4")
def precisions_side_by_side(ask: Ask) -> None:
    rows = {one["precision"]: one for one in ask.document()["precisions"]}
    assert rows["bf16"]["speed_ratio"] == 1
    assert rows["fp8"]["speed_ratio"] > 1.2
    assert rows["fp8"]["weights_bytes"] / rows["bf16"]["weights_bytes"] == pytest.approx(
        0.56, abs=0.05
    )
    new = ask.document("predict Llama-3.1-8B --on B200 --precisions bf16,fp8,fp4")["precisions"]
    assert [one["precision"] for one in new] == ["bf16", "fp8", "fp4"]
    assert new[2]["weights_bytes"] < new[1]["weights_bytes"] < new[0]["weights_bytes"]
    assert rows["fp4"]["risk"].startswith("high")
    assert not rows["bf16"]["risk"]
    old = ask.document("predict Llama-3.1-8B --on A100 --precisions bf16,fp4")["precisions"]
    assert [one["runs"] for one in old] == [True, False]
    assert "A100" in old[1]["reason"]
    assert ask("predict Llama-3.1-8B --on A100 --precisions bf16,fp5").code == 2


@check("R89", "diagnose small.json --on A100")
def small_work_is_offered_slices(ask: Ask) -> None:
    ask.scene("small.json", _small_jobs())
    verdicts = {one["cause"]: one for one in ask.document()["verdicts"]}
    actions = " ".join(
        action["what"] + action["cost"] for action in verdicts["share_candidate"]["actions"]
    )
    assert "slice" in actions


def _small_jobs() -> Scene:
    scene = Scene()
    for gpu in range(4):
        levels = {"gpu_util": 0.25, "sm": 0.1, "tensor": 0.02, "dram": 0.05, "power_w": 110.0}
        scene.device(gpu, model="NVIDIA A100-SXM4-80GB", held_bytes=8e9, free_bytes=72e9, **levels)
    return scene


@check("R89", "diagnose small.json --on A100")
def profiles_and_packing_are_proposed(ask: Ask) -> None:
    ask.scene("small.json", _small_jobs())
    packing = ask.document()["packing"]
    assert packing["profile"] in ("1g.10gb", "1g.20gb")
    assert packing["n_before"] == 4
    assert packing["n_after"] == 1


@check("R90", "render chat.plan.yaml --to kubernetes")
def manifests_ask_for_the_gpus_of_the_plan(ask: Ask) -> None:
    import yaml  # noqa: PLC0415

    pool = ask.plan("chat")["plan"]["pools"][0]
    documents = [one for one in yaml.safe_load_all(ask().out) if one]
    server = next(one for one in documents if one["kind"] == "Deployment")
    assert server["spec"]["replicas"] == pool["n_replicas"]
    container = server["spec"]["template"]["spec"]["containers"][0]
    assert int(container["resources"]["limits"]["nvidia.com/gpu"]) == pool["tp"] * pool["pp"]
    for target in ("kubernetes-dra", "kueue", "keda"):
        made = [
            one
            for one in yaml.safe_load_all(ask(f"render chat.plan.yaml --to {target}").out)
            if one
        ]
        assert made, target


@check("R91", "plan examples/growth.yaml --samples 0")
def better_code_is_worth_money(ask: Ask) -> None:
    spend = " ".join(ask.plan("growth")["explanation"]["next_spend"])
    node = [one for one in ask.plan("growth")["plan"]["pools"][0]["purchases"] if one["n_nodes"]]
    month = node[0]["price_usd_per_node_h"]["value"] * 730  # one node less to rent
    told = float(spend.split("is worth $")[1].split("/month")[0].replace(",", ""))
    assert told == pytest.approx(month, abs=1)


@check("R93", "predict Llama-3.1-8B --on H100 --engine-version 0.6 --concurrency 32")
def another_version_of_the_engine_is_a_what_if(ask: Ask) -> None:
    old = ask.document()
    new = ask.document("predict Llama-3.1-8B --on H100 --engine-version 0.15 --concurrency 32")
    assert old["engine_version"] == "0.6"
    assert new["output_tokens_per_s"]["value"] > old["output_tokens_per_s"]["value"]


def _service(per_s: float, seed: int = 0) -> str:
    scene = _requests(Scene(n_samples=720, seed=seed), per_s)
    data = {"resultType": "matrix", "result": scene.result}
    return json.dumps({"status": "success", "data": data})


def _requests(scene: Scene, per_s: float) -> Scene:
    """So many requests a second, as an engine counts them."""
    labels = {"model_name": "m", "instance": "n1:8000"}
    scene.counter("vllm:request_success_total", per_s, **labels)
    scene.counter("vllm:prompt_tokens_total", per_s * 2200, **labels)
    return scene.counter("vllm:generation_tokens_total", per_s * 350, **labels)


@check("R94", "replan chat.plan.yaml service.json")
def drift_is_noticed_and_planned_again(ask: Ask) -> None:
    ask.plan("chat")
    ask.write("same.json", _service(3.3))
    ask.write("service.json", _service(9.0))
    calm, moved = ask("replan chat.plan.yaml same.json"), ask()
    assert calm.code == 0
    assert moved.code == 6
    found = ask("replan chat.plan.yaml service.json --json").document
    rate = next(one for one in found["drift"] if "request" in one["what"])
    assert rate["ratio"] == pytest.approx(9.0 / (10 / 3), rel=0.05)
    assert rate["beyond"]


@check("R94", "replan chat.plan.yaml http://127.0.0.1:1")
def replan_reads_a_server(ask: Ask) -> None:
    ask.plan("chat")
    answer = ask()
    assert answer.code == 5  # the server does not answer: data, not input
    assert ask("forecast http://127.0.0.1:1").code == 5
    scene = Scene(n_samples=720)
    begin_s = time.time() - scene.n_samples * 60.0
    scene.at_s = begin_s + 60.0 * np.arange(scene.n_samples)
    _requests(scene, 9.0)
    ask.scene("live.json", scene)
    with running_server() as server:
        server.serve_prometheus(scene.result)
        options = "--history-h 12 --step-s 60 --json"
        live = ask(f"replan chat.plan.yaml {server.url} {options}")
        ahead = ask.document(f"forecast {server.url} --metric requests_per_s --history-h 12")
    assert live.code == 6
    assert server.requested
    file = ask("replan chat.plan.yaml live.json --json").document
    for one, other in zip(live.document["drift"], file["drift"], strict=True):
        assert one["what"] == other["what"]
        assert one["ratio"] == pytest.approx(other["ratio"], rel=0.02)
    # Counters of a scene rise as if its samples were five seconds apart; here they are sixty.
    assert max(ahead["expected"]) == pytest.approx(9.0 * 5 / 60, rel=0.1)


@check("R92", "forecast weeks.csv --devices 48 --lead-weeks 16")
def order_when_the_peak_reaches_the_trigger(ask: Ask) -> None:
    ask.write("weeks.csv", weekly_peaks(0.70, 0.08, days=56))
    found = ask.document(ask.command + " --growth 0.08")
    assert found["peak_use"] == pytest.approx(0.70, abs=0.03)
    order = next(one for one in found["orders"] if one["growth_per_month"] == pytest.approx(0.08))
    weeks = np.log(0.85 / found["peak_use"]) / np.log(1.08) * 730 / 168
    assert order["trigger_in_s"] / 604800 == pytest.approx(weeks, rel=0.02)
    assert order["bridge_s"] / 604800 == pytest.approx(16 - weeks, abs=0.2)


@check("R92", "forecast months-18.csv --devices 90 --lead-weeks 10")
def a_table_of_months_is_enough_to_order_by(ask: Ask) -> None:
    for n, last, per_month in ((18, 60.0, 0.05), (15, 41.0, 0.09)):
        rows = [
            f"{2024 + k // 12}-{k % 12 + 1:02d},{last / (1 + per_month) ** (n - 1 - k):.3f}"
            for k in range(n)
        ]
        ask.write(f"months-{n}.csv", "\n".join(["month,GPUs in use", *rows]))
        found = ask.document(f"forecast months-{n}.csv --devices 90 --lead-weeks 10")
        assert found["peak_use"] == pytest.approx(last / 90)
        row = found["orders"][1]
        assert row["growth_per_month"] == pytest.approx(per_month, rel=0.02)
        weeks = np.log(0.85 / (last / 90)) / np.log(1 + per_month) * 730 / 168
        assert row["trigger_in_s"] / 604800 == pytest.approx(weeks, rel=0.03)
        assert row["order_in_s"] / 604800 == pytest.approx(max(0, weeks - 10), abs=0.5)


def weekly_peaks(last_peak: float, per_month: float, *, days: int) -> str:
    """Hourly utilization over days that grows to this weekly peak at the end."""
    rows = ["timestamp,gpu_util"]
    for hour in range(days * 24):
        months_left = (days * 24 - hour) / 730
        shape = 0.55 + 0.45 * np.sin((hour % 24 - 8) / 24 * 2 * np.pi)
        shape *= 1.0 if (hour // 24) % 7 < 5 else 0.7
        value = last_peak / (1 + per_month) ** months_left * shape
        rows.append(f"{1.75e9 + hour * 3600:.0f},{100 * value:.2f}")
    return "\n".join(rows) + "\n"
