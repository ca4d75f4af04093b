"""`check`: the described systems of the examples, and the same with other numbers."""

from dataclasses import replace

import pytest
import yaml

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.errors import InputError, ViolationError
from gpuplan.pipeline.check import check, check_scenario
from gpuplan.report.system.check import check_document, check_sheet
from gpuplan.report.system.files import checklist_text, fabric_drawing, rack_drawing
from gpuplan.studies.system_check.judge import refuse_system
from gpuplan.units import DAY, GB, HOUR, KW
from shared_data import ROOT

CATALOG = read_catalog()


def tree(name: str) -> dict:
    return yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text())


def checked(data: dict):
    return check_scenario(read_scenario_text(yaml.safe_dump(data)), CATALOG)


def example(name: str):
    return check(ROOT / "examples" / f"{name}.yaml")


def busy(result) -> list[tuple[str, float]]:
    return [(b.stage.name, round(b.busy_frac, 2)) for b in result.works[0].bottlenecks]


def test_slow_disks_are_rejected_with_the_whole_chain():
    result = example("slow-disks")
    assert busy(result) == [
        ("storage network", 0.04),
        ("storage", 0.15),
        ("CPU decode", 0.52),
        ("copy to device", 0.77),
    ]
    assert not result.is_ok
    with pytest.raises(ViolationError) as caught:
        refuse_system(result)
    assert caught.value.exit_code == 4
    assert result.works[0].demand.bytes_per_s == pytest.approx(2.64 * GB)
    assert result.works[0].moved.there_s == pytest.approx(63.5 * HOUR, rel=0.001)
    assert dict(result.works[0].moved.faster)["100 Gbit/s"] == pytest.approx(6.35 * HOUR, rel=0.01)


def test_fixing_storage_alone_is_still_rejected():
    data = tree("slow-disks")
    path = data["workloads"][0]["data_path"]
    path["storage"] = {"kind": "local_nvme"}
    path["samples_per_file"] = 10000
    result = checked(data)
    assert busy(result)[0] == ("CPU decode", 0.52)
    assert not result.is_ok
    path["loader"]["gpu_decode"] = True
    path["copy_to_device"] |= {"pinned": True, "overlapped": True}
    assert checked(data).is_ok


def test_uint8_copied_beside_compute_is_hidden_and_pageable_memory_never_is():
    data = tree("slow-disks")
    path = data["workloads"][0]["data_path"]
    path |= {"storage": {"kind": "local_nvme"}, "samples_per_file": 1000}
    path["loader"] = {"gpu_decode": True}
    path["copy_to_device"]["overlapped"] = True  # from pageable memory: it cannot be
    assert [name for name, _ in busy(checked(data))] == ["copy to device"]
    path["copy_to_device"]["pinned"] = True
    assert not busy(checked(data))


@pytest.mark.parametrize(("gbit", "share"), [(10, 0.83), (25, 1.0), (2.5, 0.21)])
def test_links_with_other_numbers(gbit, share):
    data = tree("slow-disks")
    path = data["workloads"][0]["data_path"]
    path |= {"sample_kb": 55, "samples_per_file": 1000}
    path["storage"] = {"kind": "ssd_nfs", "network_gbit_per_s": gbit, "gb_per_s": 50}
    found = dict(busy(checked(data)))
    assert found.get("storage network", 1.0) == pytest.approx(share, abs=0.006)


def test_unknown_figures_are_told_not_guessed():
    data = tree("slow-disks")
    path = data["workloads"][0]["data_path"]
    del path["storage"]["network_gbit_per_s"], path["loader"]["samples_per_s_per_core"]
    told = [f.what for f in checked(data).findings if f.rule == "not-judged"]
    assert len(told) == 2
    assert any("link" in what for what in told)
    assert any("decoding speed" in what for what in told)


def test_balanced_alternative_costs_no_more_and_does_more():
    result = example("slow-disks")
    best = result.balanced[0]
    assert best.usd.mid <= result.budget_usd
    work = result.works[0]
    assert best.n_at_work > 5 * work.n_accelerators * work.busy_frac
    # The whole fleet, fed, is shown too, with what it costs.
    assert result.balanced[-1].n_accelerators == 8
    assert any("NVMe" in name for name, _ in best.parts)


def test_given_budget_and_prices_rule():
    data = tree("slow-disks")
    data["budget"] = {"capex_usd": 1_000_000}
    data["prices"] = {"hardware": [{"accelerator": "H100", "usd_per_node": 300_000}]}
    result = checked(data)
    assert result.budget_usd == 1_000_000
    mine = next(s for s in result.balanced if "H100 SXM" in s.what)
    assert mine.n_accelerators == 8
    assert dict(mine.parts)["1 servers"].mid == 300_000
    # A dearer, faster machine that the larger budget pays for may lead.
    assert result.balanced[0].n_at_work >= mine.n_at_work


def test_four_nodes_on_small_circuits_stand_one_to_a_rack():
    result = example("power-shortfall")
    assert result.is_ok
    place = result.around.facilities[0]
    assert place.n_racks == 4
    assert place.level("machines").max_w == pytest.approx(40.8 * KW)
    assert place.level("facility").max_w == pytest.approx(57.1 * KW, rel=0.001)
    assert place.cooling.tons == pytest.approx(11.6, abs=0.05)


def test_energy_takes_the_average_and_breakers_the_highest():
    energy = check_document(example("power-shortfall"))["energy"]
    assert energy["kwh_per_year"] == pytest.approx(350e3, rel=0.002)
    assert energy["usd_per_year"]["value"] == pytest.approx(42_000, rel=0.002)


@pytest.mark.parametrize(
    ("sample_kb", "pinned", "milliseconds"),
    [(602.112, False, 25.7), (602.112, True, 6.2), (150.528, True, 1.5)],
)
def test_copies_of_a_batch(sample_kb, pinned, milliseconds):
    data = tree("slow-disks")
    data["owned"][0]["accelerator"] = "A100-80GB"  # on PCIe 4.0
    data["workloads"][0]["data_path"] |= {"cache_hit_frac": 1.0}
    data["workloads"][0]["data_path"]["loader"]["gpu_decode"] = False
    copy = {"batch_samples": 256, "tensor_kb_per_sample": sample_kb, "pinned": pinned}
    data["workloads"][0]["data_path"]["copy_to_device"] = copy
    found = checked(data).works[0].bottlenecks
    stage = next(b.stage for b in found if b.stage.name == "copy to device")
    assert stage.load_ratio * 256 / 3000 * 1e3 == pytest.approx(milliseconds, rel=0.03)
    # More than a tenth of the step that is not hidden deserves a warning.
    told = next(f for f in checked(data).findings if "copy to device" in f.where)
    assert (told.severity == "warning") == (milliseconds > 0.1 / 0.9 * 85.3)


def test_two_racks_are_too_few_unless_capped():
    data = tree("power-shortfall")
    data["site"]["racks"] = 2
    result = checked(data)
    assert not result.is_ok
    assert any("451 W" in system.what for system in result.balanced)
    assert not any("500 W" in system.what for system in result.balanced)
    data["owned"][0]["accelerator_cap_w"] = 450
    assert checked(data).is_ok
    data["owned"][0]["accelerator_cap_w"] = 500
    assert not checked(data).is_ok


def test_undersized_supply_is_rejected_with_shortfall_and_alternative():
    result = example("system-undersized-supply")
    assert not result.is_ok
    assert any("1.6 short" in finding.what for finding in result.findings)
    assert result.balanced[0].n_accelerators == 8
    assert "capped" in result.balanced[0].what
    assert 4 < result.balanced[0].n_at_work < 8
    data = tree("system-undersized-supply")
    data["site"]["rack"]["circuit"]["amps"] = 60
    assert checked(data).is_ok


def test_second_feed_adds_nothing():
    one, two = tree("system-undersized-supply"), tree("system-undersized-supply")
    one["site"]["rack"]["circuit"]["feeds"] = "A"
    fits = [checked(data).around.facilities[0].fit.usable_w for data in (one, two)]
    assert fits[0] == fits[1]


def test_slow_ethernet_makes_64_no_8_times_faster():
    result = example("scaling")
    found = result.works[0].bottlenecks[0]
    assert found.stage.name == "network between nodes"
    assert found.busy_frac == pytest.approx(0.31, abs=0.02)
    assert "before adding accelerators" in found.stage.fix
    enough = next(f for f in result.around.fabrics if "cheapest" in f.purpose)
    assert enough.efficiency_frac >= 0.9
    rate = enough.counts.n_ports_per_node * enough.port_bytes_per_s
    assert rate >= 3 * 12.5 * GB


def test_four_ports_are_enough_and_oversubscription_takes_them_back():
    data = tree("scaling")
    data["owned"][0]["nics"] = data["site"]["network"]["nics_per_node"] = 4
    assert checked(data).is_ok
    data["site"]["network"]["oversubscription"] = 4
    assert checked(data).works[0].busy_frac == pytest.approx(0.31, abs=0.02)


def test_top_accelerators_slow_disks_basic_switch():
    result = example("system-slow-disks-basic-switch")
    assert not result.is_ok
    names = [b.stage.name for b in result.works[0].bottlenecks]
    assert names == ["network between nodes", "storage", "storage network"]
    best = result.balanced[0]
    work = result.works[0]
    assert best.usd.mid <= result.budget_usd
    assert best.n_at_work > 5 * work.n_accelerators * work.busy_frac


def test_checkpoints_without_failure_rate_are_unknown():
    data = tree("scaling")
    data["workloads"][0]["training"]["checkpoint"] = {"size_tb": 1.4, "write_gb_per_s": 2}
    result = checked(data)
    assert any(f.rule == "goodput-unknown" for f in result.findings)
    assert not result.works[0].checkpoints
    data["workloads"][0]["training"]["accelerator_mtbf_h"] = 3000
    result = checked(data)
    assert result.works[0].checkpoints
    assert any(f.rule == "checkpoint-rate" for f in result.findings)


def test_spares_follow_the_given_failure_rate():
    data = tree("scaling")
    data["workloads"][0]["training"]["accelerator_mtbf_h"] = 2000
    result = checked(data)
    assert result.around.spares[0].node_mtbf_s == 250 * HOUR
    assert result.around.spares[0].repair_s == 3 * DAY
    assert result.around.spares[0].n_spares > example("scaling").around.spares[0].n_spares


def test_software_that_does_not_run_there_is_rejected():
    data = tree("power-shortfall")
    data["owned"][0]["accelerator"] = "B200"
    del data["owned"][0]["node_max_kw"]
    data["site"] |= {
        "cooling": "direct_liquid",
        "software": {"driver": "535.104.05", "cuda": "12.1"},
    }
    found = [f for f in checked(data).findings if f.severity == "error"]
    assert any("cuda" in (f.what + f.fix).lower() or "driver" in f.what.lower() for f in found)
    data["site"]["software"] = {"driver": "580.65.06", "cuda": "12.8"}
    assert not [f for f in checked(data).findings if f.rule.startswith(("driver", "toolkit"))]


def test_fp8_on_ampere_is_told():
    data = tree("scaling")
    data["workloads"][0]["precision"] = "fp8"
    data["owned"][0]["accelerator"] = "A100-80GB"
    data["site"]["software"] = {"driver": "580.65.06", "cuda": "12.8", "torch": "2.8.0"}
    assert any("fp8" in f.what for f in checked(data).findings)


def test_no_machines_is_an_input_error():
    data = tree("slow-disks")
    del data["owned"]
    with pytest.raises(InputError):
        checked(data)


def test_document_keeps_the_contract():
    document = check_document(example("slow-disks"))
    assert document["ok"] is False
    assert document["schema_version"]
    for row in document["bottlenecks"]:
        assert row.keys() >= {"stage", "gpu_busy_frac", "demand", "supply", "fix"}
    for row in document["findings"]:
        assert row.keys() >= {"severity", "where", "what", "fix"}
    assert document["workloads"][0]["demand"]["reads_per_s"] == 24_000
    severities = [row["severity"] for row in document["findings"]]
    assert severities == sorted(severities, key=("error", "warning", "note").index)


def test_sheet_has_the_chain_first():
    sheet = check_sheet(example("slow-disks"))
    assert "error" in sheet.head
    assert [row[1] for row in sheet.tables[0].rows][:3] == [
        "storage network",
        "storage",
        "CPU decode",
    ]


def test_files_of_a_check():
    place = example("power-shortfall")
    assert checklist_text(place).count("- [ ]") >= 10
    drawn = rack_drawing(place)
    assert drawn.count("DGX H100 ") >= 4
    assert "10.2 of 17.3 kW" in drawn
    net = fabric_drawing(example("scaling"))
    assert "8 cables" in net
    assert net.count("<rect") == 1 + 1 + 8  # paper, leaf, nodes
    bare = replace(place, around=replace(place.around, checklist=(), facilities=(), fabrics=()))
    for make in (checklist_text, rack_drawing, fabric_drawing):
        with pytest.raises(InputError):
            make(bare)


SERVING = {
    "name": "a service on own machines",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "meta-llama/Llama-3.3-70B-Instruct",
            "precision": "fp8",
            "demand": {"requests_per_s": 3},
            "request": {"input_tokens": 1000, "output_tokens": 200},
            "slo": {"ttft_p95_ms": 2000},
            "data_path": {"storage": {"kind": "ssd_nfs", "network_gbit_per_s": 10}},
        }
    ],
    "owned": [{"accelerator": "H100", "nodes": 4, "accelerators_per_node": 8}],
}


def test_weights_must_arrive_before_a_scale_out_is_of_use():
    result = checked(SERVING)
    lines = {line.part: line for line in result.around.hosts[0][1]}
    assert lines["model load"].n_needed == pytest.approx(70.6 / 60, rel=0.02)
    assert lines["model load"].n_given == pytest.approx(1.1)
    assert any(f.rule == "host-load" for f in result.findings)
    # Requests are no samples: nobody asks how many of them an accelerator reads.
    assert not any(f.rule == "not-judged" for f in result.findings)


def test_networks_for_storage_and_management_are_planned_too():
    purposes = [plan.purpose for plan in example("scaling").around.fabrics]
    assert purposes == ["compute", "compute, cheapest sufficient", "storage", "management"]


def test_all_work_together_must_find_room():
    data = tree("power-shortfall")
    data["workloads"].append(
        {"name": "more", "kind": "generic", "work": {"accelerators": 8, "training": True}}
    )
    assert any(f.rule == "too-few" and "40" in f.what for f in checked(data).findings)


def test_groups_of_machines_share_one_place():
    data = tree("power-shortfall")
    data["owned"].append({**data["owned"][0], "name": "second"})
    data["site"] |= {"racks": 8, "power_kw": 60}
    result = checked(data)
    # Each group fits alone; together they do not.
    assert any(f.rule == "supply" and "81.6" in f.what for f in result.findings)
    data["site"] |= {"racks": 6, "power_kw": 100}
    assert any(f.rule == "racks-sum" for f in checked(data).findings)
    data["site"]["racks"] = 8
    assert checked(data).is_ok


def test_facility_power_counts_cooling():
    data = tree("power-shortfall")
    data["site"]["power_kw"] = 50
    assert checked(data).is_ok
    data["site"]["power_scope"] = "facility"  # 57 kW at PUE 1.4
    assert not checked(data).is_ok


def test_a_cache_cannot_hold_more_than_memory():
    data = tree("slow-disks")
    data["workloads"][0]["data_path"]["cache_hit_frac"] = 0.5
    told = [f for f in checked(data).findings if f.rule == "cache-size"]
    assert "1%" in told[0].fix
    data["workloads"][0]["data_path"]["staging"]["dataset_tb"] = 1
    assert not [f for f in checked(data).findings if f.rule == "cache-size"]


def test_a_whole_cache_needs_no_link():
    data = tree("slow-disks")
    data["workloads"][0]["data_path"]["cache_hit_frac"] = 1.0
    assert busy(checked(data))[0] == ("CPU decode", 0.52)


def test_processors_alone_can_be_checked():
    data = tree("power-shortfall")
    data["owned"] = [{"accelerator": "cpu", "nodes": 2, "accelerators_per_node": 2}]
    names = [str(name) for name, one in CATALOG.accelerators.items() if one.is_cpu]
    data["owned"][0]["accelerator"] = names[0]
    data["workloads"][0]["work"]["accelerators"] = 4
    assert checked(data).around.facilities[0].n_nodes == 2


def test_without_a_price_alternatives_are_shown_without_a_sum():
    data = tree("slow-disks")
    data["owned"][0]["accelerator"] = data["workloads"][0]["capacity"][0]["accelerator"] = (
        "A100-40GB"
    )
    result = checked(data)
    assert result.budget_usd is None
    assert result.balanced[0].usd is None
    assert any("NVMe" in name for name, _ in result.balanced[0].parts)
    assert any(f.rule == "price-unknown" for f in result.findings)


def test_a_cap_alone_does_not_feed():
    data = tree("system-undersized-supply")
    data["workloads"][0]["data_path"] = tree("slow-disks")["workloads"][0]["data_path"]
    capped = next(s for s in checked(data).balanced if "capped" in s.what)
    assert any("NVMe" in name for name, _ in capped.parts)
    assert any("cores" in name for name, _ in capped.parts)
