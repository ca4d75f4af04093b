"""R95 to R105: internals, myths, experts, limits."""

import pytest
import yaml

from requirements.asking import Ask
from requirements.registry import check


@check("R95", "check examples/slow-disks.yaml")
def every_stage_of_the_path_is_there(ask: Ask) -> None:
    stages = [one["stage"] for one in ask.document()["bottlenecks"]]
    assert stages == ["storage network", "storage", "CPU decode", "copy to device"]


@check("R96", "predict-training Llama-3.1-8B --on H100 --devices 64")
def waiting_for_the_slowest_is_counted(ask: Ask) -> None:
    def share(n: int) -> float:
        found = ask.document(f"predict-training Llama-3.1-8B --on H100 --devices {n}")
        return found["parts_s"]["stragglers"] / found["step_s"]["value"]

    assert share(8) < share(16) < share(64) < 0.2
    assert share(64) > 0


@check("R97", "catalog list accelerators")
def other_makers_are_in_the_catalog(ask: Ask) -> None:
    ids = {one["id"] for one in ask.document()["rows"]}
    for name in ("mi300x", "tpu-v5p", "trainium2", "gaudi3"):
        assert any(one.startswith(name) for one in ids), name
    found = ask.document("fit Llama-3.1-8B --on MI300X --concurrency 32")
    assert found["fits"]
    assert ask("simulate --model Llama-3.1-8B --on TPU-v5p --rate 2 --engine trtllm").code in (2, 3)


@check("R98", "fit Llama-3.1-8B --on next-gpu --overlay next.yaml")
def the_catalog_is_extended_by_ones_own_facts(ask: Ask) -> None:
    ask.write("next.yaml", yaml.safe_dump(_overlay()))
    found = ask("catalog overlay next.yaml")
    assert found.code == 0, found.err
    here = ask.document("fit Llama-3.1-8B --on H100")
    there = ask.document()
    assert there["usable_bytes"] == pytest.approx(1.5 * here["usable_bytes"], rel=0.02)
    assert there["max_concurrency"] > here["max_concurrency"]


def _overlay() -> dict[str, object]:
    return {"accelerators": {"next-gpu": {"like": "h100-sxm", "memory_gib": 120}}}


@check("R98", "catalog list accelerators")
def announced_hardware_is_marked_and_never_planned_unasked(ask: Ask) -> None:
    rows = ask.document()["rows"]
    announced = [one for one in rows if one["status"] == "announced"]
    assert announced
    chosen = {pool["accelerator"] for pool in ask.plan("chat")["plan"]["pools"]}
    assert not chosen & {one["id"] for one in announced}


@check("R99", "plan examples/chat.yaml --samples 0")
def only_choices_that_touch_quality_are_warned_of(ask: Ask) -> None:
    rows = ask.plan("chat")["comparison"]
    assert all("quality" in one["note"] for one in rows if one["precision"] in ("fp8", "int4"))
    assert not any("quality" in one["note"] for one in rows if one["precision"] == "bf16")


@check("R99", "explain chat.plan.yaml")
def hardware_does_not_make_a_model_more_accurate(ask: Ask) -> None:
    ask.plan("chat")
    found = ask.document()
    assert any("accuracy" in text for text in found["quality"])


@check("R100", "roofline Llama-3.1-8B --on H100")
def each_phase_lies_under_the_roofline(ask: Ask) -> None:
    found = ask.document()
    assert found["ridge_flop_per_byte"] == pytest.approx(989.4e12 / 3.35e12, rel=0.01)
    for one in found["points"]:
        assert one["intensity_flop_per_byte"] == pytest.approx(one["flop"] / one["traffic_bytes"])
        above = one["intensity_flop_per_byte"] > found["ridge_flop_per_byte"]
        assert one["limit"] == ("compute" if above else "bandwidth")
        assert 0 < one["mfu_frac"] < 1
        assert one["step_s"] >= max(one["compute_s"], one["memory_s"])


@check("R101", "scale Llama-3-8B --on H100 --node-gbit 100")
def ten_percent_more_of_each_resource(ask: Ask) -> None:
    gains = {one["resource"]: one["step_gain_frac"] for one in ask.document()["sensitivity"]}
    assert set(gains) >= {"FLOPs", "HBM", "NVLink", "NIC", "storage"}
    assert gains["NIC"] > 0.05 > gains["FLOPs"]
    fast = ask.document("scale Llama-3-8B --on H100 --node-gbit 3200")
    fast_gains = {one["resource"]: one["step_gain_frac"] for one in fast["sensitivity"]}
    assert fast_gains["FLOPs"] > fast_gains["NIC"]


@check("R102", "plan examples/chat.yaml --samples 0")
def every_result_says_what_made_it(ask: Ask) -> None:
    made = ask.plan("chat")["provenance"]
    assert len(made["catalog_sha256"]) == 64
    assert len(made["scenario_sha256"]) == 64
    assert made["package_version"]


@check("R102", "diff run-a.csv run-b.csv")
def two_measured_runs_are_compared(ask: Ask) -> None:
    head = (
        "model,accelerator,engine,engine_version,driver,concurrency,measured_output_tokens_per_s\n"
    )
    ask.write("run-a.csv", head + "Llama-3.1-8B,H100,vllm,0.10,570,32,4000\n")
    ask.write("run-b.csv", head + "Llama-3.1-8B,H100,vllm,0.11,570,32,3600\n")
    answer = ask()
    assert answer.code == 4
    found = ask.document()
    assert found["rows"][0]["change_frac"] == pytest.approx(-0.1)
    assert found["fingerprint_changes"] == [
        {"what": "engine_version", "before": "0.10", "after": "0.11"}
    ]


@check("R103", "plan examples/cpu-is-enough.yaml --samples 0")
def no_gpu_is_a_valid_plan(ask: Ask) -> None:
    found = ask.plan("cpu-is-enough")
    assert found["plan"]["pools"][0]["n_accelerators"] == 0
    manifest = ask("render cpu-is-enough.plan.yaml --to kubernetes")
    assert "nvidia.com/gpu" not in manifest.out


@check("R105", "design chat.plan.yaml")
def renting_and_owning_have_a_break_even(ask: Ask) -> None:
    ask.plan("chat")
    way = ask.document()["ways"][0]
    names = (
        {one["way"] for one in way["ways"]}
        if "way" in way["ways"][0]
        else set(map(str, way["ways"]))
    )
    assert len(names) == 3
    assert way["best"]
    assert way["break_even"]
