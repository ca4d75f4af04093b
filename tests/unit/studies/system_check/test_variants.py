"""Systems as others would describe them, each with its arithmetic by hand."""

from math import sqrt

import pytest
import yaml

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.pipeline.check import check_scenario
from gpuplan.report.system.check import check_document
from gpuplan.units import GB, KW, KWH

CATALOG = read_catalog()


def checked(site: dict, *owned: tuple[str, int, int], work: dict | None = None, **more):
    n = sum(nodes * each for _, nodes, each in owned)
    plain = {"kind": "generic", "work": {"accelerators": n}}
    data = {
        "name": "x",
        "workloads": [{"name": "w", **(work or plain)}],
        "site": site,
        "owned": [
            {"accelerator": name, "nodes": nodes, "accelerators_per_node": each}
            for name, nodes, each in owned
        ],
        **more,
    }
    return check_scenario(read_scenario_text(yaml.safe_dump(data)), CATALOG)


def errors(result) -> dict[str, str]:
    return {f.rule: f.what for f in result.findings if f.severity == "error"}


def test_eight_on_one_phase_of_230_volts():
    """230 V × 32 A × 0.8 = 5.9 kW for 10.2 kW; no cap above the cliff makes up 4.3 kW."""
    circuit = {"volts": 230, "amps": 32, "phases": 1}
    result = checked({"racks": 1, "rack": {"units_u": 42, "circuit": circuit}}, ("H100", 1, 8))
    assert errors(result)["supply"] == "needs 10.2 kW, has 5.9: 4.3 short"
    assert result.around.facilities[0].fit.usable_w == pytest.approx(230 * 32 * 0.8)
    # 8 × (700 − 315) W are 3.1 kW: even the lowest cap that is promised does not do.
    assert not any("capped" in s.what for s in result.balanced)
    assert result.balanced


def test_feeds_back_each_other():
    """415 V, 32 A, three phases: 18.4 kW on one feed; two machines need 20.4, or a cap of 500 W
    (17.2 kW, 6.5 % free)."""
    circuit = {"volts": 415, "amps": 32, "phases": 3, "feeds": "A+B"}
    site = {"racks": 1, "rack": {"units_u": 48, "circuit": circuit}, "cooling": "rear_door"}
    result = checked(site, ("H100", 2, 8))
    assert result.around.facilities[0].fit.usable_w == pytest.approx(415 * 32 * sqrt(3) * 0.8)
    assert "rack-power" in errors(result)
    capped = next(s for s in result.balanced if "capped" in s.what)
    assert "517 W" in capped.what
    both = checked(
        {**site, "rack": {"units_u": 48, "circuit": circuit | {"circuits_per_feed": 2}}},
        ("H100", 2, 8),
    )
    assert both.is_ok


def test_groups_share_one_place():
    """2 × 10.2 kW and four machines of four L40S, with PUE 1.4, exceed 40 kW of the facility."""
    site = {
        "racks": 3,
        "power_kw": 40,
        "power_scope": "facility",
        "pue": 1.4,
        "cooling": "air",
        "rack": {"units_u": 42, "power_kw": 20},
    }
    result = checked(site, ("H100", 2, 8), ("L40S", 4, 4))
    small = result.around.facilities[1].node.max_w
    needed = (20.4 * KW + 4 * small) * 1.4
    assert errors(result)["supply"].startswith(f"needs {needed / KW:.1f} kW, has 40.0")
    alone = checked(site, ("H100", 2, 8))
    assert alone.is_ok
    # What is offered instead stands beside the other group.
    for system in result.balanced:
        assert "2 x 8 H100" not in system.what or "capped" in system.what
    assert any("capped" in system.what for system in result.balanced)


def test_a_rack_scale_machine_needs_liquid_and_no_room_for_switches():
    site = {"racks": 1, "rack": {"units_u": 48, "power_kw": 140}, "pue": 1.2}
    air = checked({**site, "cooling": "air"}, ("GB200", 1, 72))
    assert set(errors(air)) == {"liquid-needed"}
    liquid = checked({**site, "cooling": "direct_liquid"}, ("GB200", 1, 72))
    assert not {"liquid-needed", "rack-height", "rack-power"} & set(errors(liquid))
    heat = liquid.around.facilities[0].cooling
    assert heat.liquid_w == pytest.approx(0.8 * heat.heat_w)
    given = checked(
        {**site, "cooling": "direct_liquid"}, ("GB200", 1, 72), build={"room": {"liquid_frac": 0.9}}
    )
    assert given.around.facilities[0].cooling.liquid_w == pytest.approx(0.9 * heat.heat_w)


def test_heat_limits_before_power_does():
    site = {"racks": 2, "rack": {"units_u": 42, "power_kw": 45, "cooling_kw": 15}, "cooling": "air"}
    result = checked(site, ("H100", 4, 8))
    assert "4 servers need 4 racks at 1 each" in errors(result)["rack-cooling"]


def test_height_limits_before_power_does():
    """18 U less 4 hold one machine of 8 U; with nothing reserved two."""
    site = {"racks": 2, "rack": {"units_u": 18, "power_kw": 45}, "cooling": "rear_door"}
    assert "rack-height" in errors(checked(site, ("H100", 4, 8)))
    free = checked(site, ("H100", 4, 8), build={"room": {"reserved_u": 0}})
    assert "rack-height" not in errors(free)


@pytest.mark.parametrize(("scope", "is_ok"), [("it", True), ("facility", False)])
def test_pue_lies_on_power_and_energy(scope, is_ok):
    """40.8 kW of machines are 57.1 kW with PUE 1.4; a year at 70 %: 350 MWh, 35,026 USD."""
    site = {"power_kw": 55, "power_scope": scope, "pue": 1.4, "electricity_usd_per_kwh": 0.10}
    result = checked(site, ("H100", 4, 8))
    assert result.is_ok == is_ok
    energy = check_document(result)["energy"]
    kwh = 4 * 10.2 * 0.7 * 1.4 * 8760
    assert energy["kwh_per_year"] == pytest.approx(kwh)
    assert energy["usd_per_year"]["value"] == pytest.approx(0.10 * kwh)
    if not is_ok:
        # 2.1 kW of 57.1 are short: 650 W save 32 × 50 W × 1.4 = 2.2 kW.
        assert any("capped at 650 W" in system.what for system in result.balanced)


def test_ups_by_hand():
    """40.8 kW for five minutes at 95 %: 3.58 kWh, 42.9 kVA, one module of 50 kW and one spare."""
    site = {"power_kw": 500, "pue": 1.4, "rack": {"units_u": 42, "power_kw": 45}}
    ups = checked(site, ("H100", 4, 8)).around.facilities[0].ups
    assert ups.energy_j / KWH == pytest.approx(40.8 * 5 / 60 / 0.95)
    assert ups.load_va == pytest.approx(40.8 * KW / 0.95)
    assert ups.n_modules == 2
    longer = checked(site, ("H100", 4, 8), build={"room": {"ups_minutes": 15, "ups_module_kw": 20}})
    assert longer.around.facilities[0].ups.energy_j == pytest.approx(3 * ups.energy_j)
    assert longer.around.facilities[0].ups.n_modules == 4


def test_top_accelerators_slow_disks_basic_switch_with_other_numbers():
    """64 × 1,500 × 500 kB = 48 GB/s, 96,000 reads: 24 disks give 3,600, 25 GbE 2.75 GB/s; 12,000
    pictures a node need 133 of 112 cores; 0.3 B parameters cross 20 Gbit/s of a node."""
    work = {
        "kind": "generic",
        "model": {"params_b": 0.3},
        "work": {"accelerators": 64, "training": True},
        "data_path": {
            "sample_kb": 500,
            "samples_per_s_per_accelerator": 1500,
            "storage": {"kind": "hdd_nfs", "network_gbit_per_s": 25},
            "loader": {"cores": 112, "samples_per_s_per_core": 90},
            "copy_to_device": {"batch_samples": 128, "tensor_kb_per_sample": 602},
        },
    }
    network = {"kind": "ethernet", "nics_per_node": 2, "nic_gbit_per_s": 10}
    result = checked({"network": network}, ("B200", 8, 8), work=work)
    found = {b.stage.name: b for b in result.works[0].bottlenecks}
    assert list(found)[:3] == ["storage", "storage network", "network between nodes"]
    assert result.works[0].demand.bytes_per_s == pytest.approx(48 * GB)
    assert found["storage"].busy_frac == pytest.approx(3_600 / 96_000, rel=0.01)
    assert found["storage network"].busy_frac == pytest.approx(2.75 / 48, rel=0.01)
    assert found["CPU decode"].stage.n_wanted == pytest.approx(12_000 / 90)
    # 2 × 7/8 × 0.6 GB at 90 % of 2.5 GB/s beside 128/1500 s, most of the backward pass hidden.
    exchange_s, step_s = 2 * 7 / 8 * 0.6 / (0.9 * 2.5), 128 / 1500
    alone = step_s / (0.25 * step_s + exchange_s)
    assert 1 / (1 + found["network between nodes"].stage.load_ratio) == pytest.approx(
        alone, rel=0.1
    )
    assert not result.is_ok
    best = result.balanced[0]
    assert best.usd.mid <= result.budget_usd
    assert best.n_at_work > 10 * 64 * result.works[0].busy_frac


def test_software_alone_is_mended_by_software():
    software = {"driver": "535.104.05", "cuda": "13.0"}
    result = checked({"software": software}, ("H100", 1, 8))
    assert not result.is_ok
    assert not result.balanced
    newer = checked({"software": {"driver": "580.65.06", "cuda": "13.0"}}, ("H100", 1, 8))
    assert newer.is_ok


def test_rules_that_the_user_sets_are_told_no_more():
    site = {"network": {"kind": "ethernet", "nics_per_node": 1, "nic_gbit_per_s": 100}}
    usual = checked(site, ("H100", 4, 8))
    keys = [note.change for note in usual.assumptions]
    for key in (
        "hosts.cores_per_accelerator",
        "hosts.memory_ratio",
        "spares.kept_frac",
        "spares.repair_days",
        "room.nodes_per_rack",
        "room.cable_ends_m",
    ):
        assert f"build.{key}" in keys
    build = {
        "hosts": {"cores_per_accelerator": 12, "memory_ratio": 1.5},
        "spares": {"kept_frac": 0.9999, "repair_days": 14},
        "room": {"nodes_per_rack": 1},
    }
    given = checked(site, ("H100", 4, 8), build=build)
    told = [note.change for note in given.assumptions]
    assert not any(f"build.{part}.{name}" in told for part in build for name in build[part])
    cores = next(line for line in given.around.hosts[0][1] if line.part == "CPU")
    assert cores.n_needed == 8 * 12 + 4
    assert given.around.spares[0].n_spares > usual.around.spares[0].n_spares


def test_a_machine_as_its_maker_ships_it_is_no_warning():
    """A DGX B200 has 2 TB beside 1.4 TB of accelerators' memory: told, not warned of."""
    shipped = checked({}, ("B200", 1, 8))
    told = [f.severity for f in shipped.findings if f.rule == "host-memory"]
    assert told == ["note"]
    data = {
        "name": "x",
        "workloads": [{"name": "w", "kind": "generic", "work": {"accelerators": 8}}],
        "owned": [
            {"accelerator": "B200", "nodes": 1, "accelerators_per_node": 8, "host_memory_gib": 512}
        ],
    }
    given = check_scenario(read_scenario_text(yaml.safe_dump(data)), CATALOG)
    assert [f.severity for f in given.findings if f.rule == "host-memory"] == ["warning"]
