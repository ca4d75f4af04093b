"""Alternatives at equal money: sold, allowed, within the budget, and balanced by the same chain."""

import pytest
import yaml

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.pipeline.check import check_scenario
from gpuplan.studies.system_check.alternatives import boards, other_fleets
from gpuplan.studies.system_check.feeding import Fleet, fleet_with_data
from gpuplan.studies.system_check.placement import placement_of
from shared_data import ROOT

CATALOG = read_catalog()


def tree(name: str) -> dict:
    return yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text())


def read(data: dict):
    return read_scenario_text(yaml.safe_dump(data))


def offered(scenario, work, *, budget_usd):
    """Other fleets, and what was assumed of them."""
    here = placement_of(scenario, work, CATALOG)
    found = list(other_fleets(scenario, work, here, budget_usd=budget_usd))
    fleets = [one for one in found if isinstance(one, Fleet)]
    return fleets, [one for one in found if not isinstance(one, Fleet)]


@pytest.mark.parametrize(
    "name", ["slow-disks", "system-slow-disks-basic-switch", "system-undersized-supply"]
)
def test_alternatives_keep_the_budget_and_beat_what_was_rejected(name):
    result = check_scenario(read(tree(name)), CATALOG)
    work = result.works[0]
    within = [s for s in result.balanced if s.usd.mid <= result.budget_usd * (1 + 1e-9)]
    assert within
    assert any(s.speed_ratio != 1.0 for s in within), "no other accelerator was tried"
    for system in within:
        assert system.busy_frac >= 0.7  # what would be rejected is no alternative
        assert sum(usd.mid for _, usd in system.parts) == pytest.approx(system.usd.mid)
    if name != "system-undersized-supply":
        assert within[0].n_at_work > 3 * work.n_accelerators * work.busy_frac


def test_the_chain_itself_proves_an_alternative():
    """Described anew as a file of its own, the alternative passes the check that refused."""
    data = tree("system-slow-disks-basic-switch")
    result = check_scenario(read(data), CATALOG)
    best = next(s for s in result.balanced if s.speed_ratio == 1.0)
    n_nodes = best.n_accelerators // 8
    ports = next(name for name, _ in best.parts if name.startswith("network"))
    n_ports, gbit = ports.split(", ")[1].split(" Gbit")[0].split(" x ")
    data["owned"] = [
        {
            "accelerator": "H200",
            "nodes": n_nodes,
            "accelerators_per_node": 8,
            "nics": int(n_ports),
            "nic_gbit_per_s": float(gbit),
        }
    ]
    data["workloads"][0]["data_path"]["storage"] = {"kind": "local_nvme"}
    assert check_scenario(read(data), CATALOG).is_ok


def test_servers_are_sold_in_certain_sizes():
    sizes = {key: boards(CATALOG.accelerators[key]) for key in ("h100-sxm", "b200-sxm", "l4")}
    assert sizes == {"h100-sxm": (8, 4), "b200-sxm": (8,), "l4": (8, 4, 2, 1)}


def test_forbidden_accelerators_are_no_alternative():
    data = tree("slow-disks")
    data["policy"] = {"accelerators": {"allowed": ["H100"]}}
    result = check_scenario(read(data), CATALOG)
    assert {s.speed_ratio for s in result.balanced} == {1.0}


def test_a_model_that_does_not_fit_is_no_alternative():
    """80 GB cards cannot hold 16 bytes for each of 70 B parameters on eight of them."""
    data = tree("system-slow-disks-basic-switch")
    data["workloads"][0]["model"] = {"params_b": 70}
    data["owned"][0]["nodes"] = 2
    scenario = read(data)
    work = scenario.workloads[0]
    fleets, _ = offered(scenario, work, budget_usd=2e5)
    for fleet in fleets:
        memory = fleet.accelerator.memory.marketed_bytes * fleet.n_nodes * fleet.n_per_node
        assert 0.7 * memory >= 16 * 70e9


def test_speed_by_peak_where_utilization_is_given_and_by_capacity_where_known():
    data = tree("system-slow-disks-basic-switch")
    scenario = read(data)
    work = scenario.workloads[0]
    fleets, told = offered(scenario, work, budget_usd=1e6)
    b200 = next(f for f in fleets if f.accelerator.id == "b200-sxm")
    assert b200.speed_ratio == pytest.approx(2250 / 989.4)
    assert all(note.change for note in told)
    data = tree("slow-disks")
    data["workloads"][0]["capacity"] = [
        {"accelerator": "H100", "samples_per_s": 3000},
        {"accelerator": "H200", "samples_per_s": 3300},
    ]
    scenario = read(data)
    work = scenario.workloads[0]
    fleets, _ = offered(scenario, work, budget_usd=1e6)
    h200 = next(f for f in fleets if f.accelerator.id == "h200-sxm")
    assert h200.speed_ratio == pytest.approx(1.1)


def test_a_faster_fleet_asks_for_more_drives_and_cores():
    scenario = read(tree("slow-disks"))
    work = scenario.workloads[0]
    here = placement_of(scenario, work, CATALOG)
    card = here.accelerator
    plain, fast = (
        fleet_with_data(scenario, work, here, Fleet(card, 1, 8, speed), kind="ethernet")
        for speed in (1.0, 3.0)
    )
    cores = [
        next(int(name.split()[0]) for name, _ in found[0] if "cores" in name)
        for found in (plain, fast)
    ]
    # By hand: 8 × 3000 / 120 = 200 cores, 104 are there; three times as fast: 600.
    assert cores == [96, 496]
    assert plain[1] == pytest.approx(1.0, abs=0.06)
