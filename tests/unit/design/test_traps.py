"""Traps that caught real tools: each test fails if the trap is fallen into.

The numbers are those of the table in docs/invariants.md.
"""

from dataclasses import replace
from math import sqrt

import pytest
import yaml

from fakes.machines import NODE
from fakes.scenarios import read_scenario_text
from gpuplan.calibration.links import link_of
from gpuplan.candidates.propose import shares_of
from gpuplan.catalog.load import read_catalog
from gpuplan.design.fabric import cable_runs, fabric_counts
from gpuplan.design.hosts import allocatable_bytes, allocatable_cores
from gpuplan.design.power import capped, supply_findings, swing_findings
from gpuplan.design.racks import fit_rack
from gpuplan.design.spares import maintenance_findings, spare_need
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.plan.packing import nodes_for
from gpuplan.domain.scenario.build import RoomRules, SpareRules
from gpuplan.domain.scenario.site import Circuit, Rack
from gpuplan.domain.scenario.workload import CheckpointPlan
from gpuplan.domain.training.time import CheckpointWrites, FailureRate
from gpuplan.performance.collectives import all_reduce_time_s
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import checkpoint_bytes
from gpuplan.pipeline.check import check_scenario
from gpuplan.studies.system_check.traffic import node_rate
from gpuplan.studies.training.interruptions import Interruptions
from gpuplan.units import DAY, GB, GIB, HOUR, KW, TB

CATALOG = read_catalog()
CIRCUIT = Circuit(
    line_v=208.0, breaker_a=60.0, n_phases=3, n_feeds=2, n_circuits_per_feed=1, derate_frac=0.8
)


# --- 5: links are quoted for both directions ----------------------------------------------------


@pytest.mark.parametrize(
    ("card", "quoted_gb"), [("h100-sxm", 900), ("a100-sxm-80gb", 600), ("b200-sxm", 1800)]
)
def test_trap_05_half_of_the_quoted_link_goes_each_way(card, quoted_gb):
    island = CATALOG.accelerators[AcceleratorId(card)].scale_up
    assert island.bytes_per_s == pytest.approx(quoted_gb / 2 * GB, rel=0.01)


def test_trap_05_an_all_reduce_reaches_less_than_the_line():
    """Ring bus bandwidth 70 to 100 % of 450 GB/s; double of it would be the quoted figure."""
    link = link_of(CATALOG.accelerators[AcceleratorId("h100-sxm")], n_ranks=8)
    plain = replace(link, switch=None, direct=None)
    message = 8 * GB
    bus = 2 * 7 / 8 * message / all_reduce_time_s(message, 8, plain)
    assert 0.7 * 450 * GB < bus < 450 * GB


# --- 6: bits and bytes, bus and algorithm bandwidth, oversubscription ---------------------------


def described(over: float = 1.0, nics: int = 2, gbit: float = 400):
    data = {
        "name": "x",
        "workloads": [{"name": "w", "kind": "generic", "work": {"accelerators": 8}}],
        "site": {
            "network": {
                "kind": "infiniband",
                "nics_per_node": nics,
                "nic_gbit_per_s": gbit,
                "oversubscription": over,
            }
        },
        "owned": [{"accelerator": "H100", "nodes": 2, "accelerators_per_node": 8}],
    }
    return read_scenario_text(yaml.safe_dump(data))


def test_trap_06_bits_are_an_eighth_of_bytes_and_oversubscription_divides():
    assert described().site.network.nic_bytes_per_s == 50 * GB
    assert node_rate(described().site.network) == 100 * GB
    assert node_rate(described(over=4.0).site.network) == 25 * GB


def test_trap_06_bus_bandwidth_is_not_algorithm_bandwidth():
    """A ring moves 2(n−1)/n of the message: at 450 GB/s 16 GB take 62 ms, not 36."""
    link = replace(
        link_of(CATALOG.accelerators[AcceleratorId("h100-sxm")], n_ranks=8),
        switch=None,
        direct=None,
    )
    message = 16 * GB
    assert all_reduce_time_s(message, 8, link) > 2 * 7 / 8 * message / (450 * GB)


def test_trap_06_accelerators_of_a_node_share_its_adapters():
    """One adapter for eight: what an accelerator gets is an eighth, so a step waits longer."""
    one = check_scenario(_training(nics=1), CATALOG).around.fabrics[0].efficiency_frac
    eight = check_scenario(_training(nics=8), CATALOG).around.fabrics[0].efficiency_frac
    assert one < eight / 3


def _training(nics: int):
    data = {
        "name": "x",
        "workloads": [
            {
                "name": "w",
                "kind": "pretraining",
                "model": {"params_b": 8},
                "training": {"tokens": 1e11, "mfu_frac": 0.4, "sequence_tokens": 4096},
            },
        ],
        "site": {"network": {"kind": "ethernet", "nics_per_node": nics, "nic_gbit_per_s": 50}},
        "owned": [{"accelerator": "H100", "nodes": 4, "accelerators_per_node": 8}],
    }
    return read_scenario_text(yaml.safe_dump(data))


# --- 42: circuits -------------------------------------------------------------------------------


def test_trap_42_feeds_are_not_added():
    alone = replace(CIRCUIT, n_feeds=1)
    assert CIRCUIT.usable_w == alone.usable_w
    assert CIRCUIT.usable_w == pytest.approx(208 * 60 * sqrt(3) * 0.8)
    assert fit_rack(NODE, Rack(circuit=CIRCUIT)).n_nodes == 1


def test_trap_42_one_phase_has_no_root_of_three():
    """230 V and 32 A on one phase: 5.9 kW, a machine of 10.2 kW is 4.3 short."""
    single = Circuit(
        line_v=230.0, breaker_a=32.0, n_phases=1, n_feeds=1, n_circuits_per_feed=1, derate_frac=0.8
    )
    assert single.usable_w == pytest.approx(5_888.0)
    (found,) = supply_findings(10.2 * KW, single.usable_w, where="feed")
    assert "4.3 short" in found.what


def test_trap_42_more_than_the_feed_needs_enforced_caps():
    (found,) = supply_findings(20.4 * KW, CIRCUIT.usable_w, where="feed", typical_w=14 * KW)
    assert found.severity == "error"
    assert "enforce power caps" in found.fix


def test_trap_42_caps_leave_room_for_transients():
    """At 500 W two machines leave 0.5 % of the feed: refused; without the reserve they passed."""
    rack = Rack(circuit=CIRCUIT)
    assert fit_rack(capped(NODE, 500.0), rack).n_nodes == 1
    assert fit_rack(capped(NODE, 500.0), rack, room=RoomRules(cap_reserve_frac=0.0)).n_nodes == 2
    assert any(f.rule == "transients" for f in swing_findings(NODE, 4, is_training=True))


# --- 43: reach ----------------------------------------------------------------------------------


def test_trap_43_copper_ends_after_three_metres():
    counts = fabric_counts(16, 8, n_switch_ports=64)
    links = list(CATALOG.network.links.values())
    runs = cable_runs(counts, 4, bytes_per_s=50 * GB, links=links)
    assert all(run.medium == "optic" for run in runs)
    near = cable_runs(fabric_counts(2, 8, n_switch_ports=64), 1, bytes_per_s=50 * GB, links=links)
    assert [run.medium for run in near] == ["copper"]


# --- 44: failure domains ------------------------------------------------------------------------


def test_trap_44_spares_are_counted_in_machines_and_updates_need_room():
    """An accelerator that fails takes its machine along: a node of eight fails eight times as
    often, and spares follow the machines in repair."""
    one = spare_need(32, node_mtbf_s=50_000 * HOUR, rules=SpareRules(repair_s=30 * DAY))
    eight = spare_need(32, node_mtbf_s=50_000 / 8 * HOUR, rules=SpareRules(repair_s=30 * DAY))
    assert eight.n_spares > one.n_spares
    assert maintenance_findings(4, "none")
    assert not maintenance_findings(4, "node")


# --- 45: goodput --------------------------------------------------------------------------------


def test_trap_45_failures_grow_with_the_job():
    """419 stops in 54 days of 16,384: 49.5 h at 1,024 and 3.1 h at 16,384."""
    stops = Interruptions(CheckpointPlan(restart_s=600.0), 1e9, 54 * DAY / 419 * 16_384)
    at = {n: 600.0 / stops.goodput(n).restart_frac / HOUR for n in (1_024, 16_384)}
    assert at[1_024] == pytest.approx(49.5, abs=0.1)
    assert at[16_384] == pytest.approx(at[1_024] / 16)


def test_trap_45_goodput_is_what_is_left_and_unknown_without_a_rate():
    writes = CheckpointWrites(size_bytes=1.4 * TB, write_bytes_per_s=20 * GB)
    known = goodput(FailureRate(mtbf_s=49.5 * HOUR, restart_s=600.0), writes)
    parts = known.checkpoint_frac + known.lost_work_frac + known.restart_frac
    assert known.goodput_frac == pytest.approx(1 - parts, abs=0.005)
    assert known.goodput_frac < 1
    unknown = goodput(FailureRate(mtbf_s=None, restart_s=600.0), writes)
    assert unknown.goodput_frac is None
    assert unknown.why_unknown


def test_trap_45_a_checkpoint_is_12_to_16_bytes_a_parameter():
    assert 12 <= checkpoint_bytes(100e9) / 100e9 <= 16


# --- 46: fragments ------------------------------------------------------------------------------


def test_trap_46_eight_free_accelerators_on_eight_machines_are_no_place_for_one_job():
    job = Candidate(
        workload="w",
        accelerator=AcceleratorId("h100-sxm"),
        precision="fp8",
        layout=ServingLayout(tp=8),
    )
    assert nodes_for(job, 1, 1) is None  # eight machines with one each
    assert nodes_for(job, 1, 8) == 1


def test_trap_46_mig_is_cut_in_fixed_profiles_and_turns_are_equal():
    card = CATALOG.accelerators[AcceleratorId("h100-sxm")]
    profiles = CATALOG.mig_profiles_of(card.id)
    cut = list(shares_of(card, profiles, 15 * GB))
    assert cut
    assert all(share.name in {p.name for p in profiles} for share in cut)
    assert all(share.memory_bytes >= 15 * GB for share in cut)
    turns = list(shares_of(card, (), 1 * GB))
    assert all(share.compute_frac == 1 / share.n_per_accelerator for share in turns)
    # Turns share one memory: each may hold its part only.
    assert all(
        share.memory_bytes * share.n_per_accelerator <= card.memory.visible_bytes for share in turns
    )


# --- 47: what Kubernetes leaves -----------------------------------------------------------------


def test_trap_47_allocatable_is_less_than_advertised():
    """p5.48xlarge: 190.9 of 192 cores, 1,891 of 2,048 GiB."""
    assert allocatable_cores(192) == pytest.approx(190.9, abs=0.1)
    assert allocatable_bytes(2048 * GIB) == pytest.approx(1891 * GIB)
    lines = {line.part: line for line in check_scenario(described(), CATALOG).around.hosts[0][1]}
    server = next(s for s in CATALOG.servers.values() if s.name == "DGX H100")
    assert lines["memory"].n_given < server.host.ram_bytes / GIB
    assert lines["CPU"].n_given < server.host.n_cores
