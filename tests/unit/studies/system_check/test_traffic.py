"""Traffic between nodes: by hand where a hand can, and never at odds with the NICs of a node."""

import pytest
import yaml

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.design.fabric import fabric_options, node_bytes_per_s
from gpuplan.pipeline.check import check_scenario
from gpuplan.studies.system_check.placement import findings_in, placement_of
from gpuplan.studies.system_check.traffic import least_rate, traffic_between_nodes
from gpuplan.units import GBIT

CATALOG = read_catalog()


def scenario(work: dict, *, nodes: int = 4, nics: int = 1, gbit: float = 25, over: float = 1.0):
    data = {
        "name": "any",
        "workloads": [{"name": "w", **work}],
        "site": {
            "network": {
                "kind": "ethernet",
                "nics_per_node": nics,
                "nic_gbit_per_s": gbit,
                "oversubscription": over,
            }
        },
        "owned": [{"accelerator": "H100", "nodes": nodes, "accelerators_per_node": 8}],
    }
    return read_scenario_text(yaml.safe_dump(data))


def traffic(made):
    work = made.workloads[0]
    return traffic_between_nodes(made, work, placement_of(made, work, CATALOG))


SIZED = {
    "kind": "pretraining",
    "model": {"params_b": 8.03},
    "training": {
        "tokens": 1e11,
        "sequence_tokens": 8192,
        "tokens_per_accelerator_per_step": 8192,
        "mfu_frac": 0.45,
    },
    "layout": {"sharding": "fsdp", "recompute": "full"},
}
PICTURES = {
    "kind": "generic",
    "model": {"params_b": 0.0256},
    "work": {"accelerators": 32, "training": True},
    "data_path": {
        "samples_per_s_per_accelerator": 3000,
        "copy_to_device": {"batch_samples": 256, "tensor_kb_per_sample": 150},
    },
}


def test_size_alone_is_judged_like_the_named_model():
    """Three times 16 GB cross 25 Gbit/s of a node: the published arithmetic needs no name."""
    named = SIZED | {"model": "meta-llama/Meta-Llama-3-8B"}
    by_size, by_name = traffic(scenario(SIZED)), traffic(scenario(named))
    share = by_size.efficiency(4, 25 * GBIT)
    assert share == pytest.approx(by_name.efficiency(4, 25 * GBIT), rel=0.02)
    # By hand: compute 8 × 8.03e9 × 8192 / (0.45 × 989.4e12) = 1.18 s; a ring over 32 ranks on a
    # share of 25 Gbit/s × 0.9: 3 × 16.06 GB × 31/32 / (25/8 × 0.9) = 16.6 s.
    compute_s, traffic_s = 1.182, 3 * 16.06 * (1 - 1 / 4) / (25 / 8 * 0.9)
    assert share == pytest.approx(compute_s / traffic_s, rel=0.05)


def test_pictures_exchange_gradients_beside_their_own_computation():
    """25.6 M parameters: 51 MB around a ring each 85 ms; 25 Gbit/s do, 0.5 Gbit/s do not."""
    made = scenario(PICTURES)
    found = traffic(made)
    assert found.efficiency(4, 25 * GBIT) > 0.95
    assert found.efficiency(4, 0.5 * GBIT) < 0.5
    assert not findings_in(found.remarks)
    slow = check_scenario(scenario(PICTURES, gbit=0.5), CATALOG)
    assert any(b.stage.name == "network between nodes" for b in slow.works[0].bottlenecks)
    assert not slow.is_ok


def test_without_a_size_the_exchange_is_said_not_to_be_judged():
    plain = {key: value for key, value in PICTURES.items() if key != "model"}
    found = traffic(scenario(plain))
    assert [f.rule for f in findings_in(found.remarks)] == ["not-judged"]
    assert "params_b" in findings_in(found.remarks)[0].fix


def test_serving_that_spans_nodes_is_judged():
    work = {
        "kind": "online_inference",
        "model": "meta-llama/Llama-3.1-405B-Instruct",
        "demand": {"requests_per_s": 1},
        "request": {"input_tokens": 500, "output_tokens": 200},
        "slo": {"ttft_p99_ms": 5000},
        "layout": {"tp": 16},
    }
    across = traffic(scenario(work, nodes=2, gbit=100))
    inside = traffic(scenario(work | {"layout": {"tp": 8}}, nodes=2, gbit=100))
    assert not inside.stages  # nothing leaves the node
    assert across.stages[0].load_ratio > 0
    assert across.efficiency(2, 100 * GBIT) < across.efficiency(2, 3200 * GBIT) <= 1.0
    assert "pipeline stages between" in across.stages[0].fix


@pytest.mark.parametrize("gbit", [10, 100, 200, 400])
@pytest.mark.parametrize("nodes", [2, 3])
def test_nics_are_short_exactly_where_speed_is(gbit, nodes):
    """The NICs of a node are never short beside a speed that is called enough."""
    result = check_scenario(scenario(SIZED, nodes=nodes, gbit=gbit), CATALOG)
    lines = {line.part: line for line in result.around.hosts[0][1]}
    described = next(f for f in result.around.fabrics if f.purpose == "compute")
    assert lines["NICs"].is_short == (described.efficiency_frac < 0.9 - 1e-9)


def test_least_rate_is_the_least():
    found = traffic(scenario(SIZED))
    rate = least_rate(found.efficiency, 4, 0.9)
    assert found.efficiency(4, rate) >= 0.9
    assert found.efficiency(4, rate * 0.99) < 0.9
    assert least_rate(lambda n, r: 0.5, 4, 0.9) is None


@pytest.mark.parametrize("over", [1.0, 2.0, 4.0])
def test_oversubscription_divides_what_a_node_gets(over):
    plain = traffic(scenario(SIZED, nics=2, gbit=100))
    made = check_scenario(scenario(SIZED, nics=2, gbit=100, over=over), CATALOG)
    described = next(f for f in made.around.fabrics if f.purpose == "compute")
    assert described.efficiency_frac == pytest.approx(plain.efficiency(4, 200 * GBIT / over))


@pytest.mark.parametrize("nodes", [2, 5, 40])
@pytest.mark.parametrize("work", [SIZED, PICTURES], ids=["tokens", "pictures"])
def test_cheapest_sufficient_network_equals_brute_force(work, nodes):
    """Every option priced and judged one by one: none that is enough costs less."""
    asked = (
        work if work is SIZED else work | {"work": {"accelerators": 8 * nodes, "training": True}}
    )
    made = scenario(asked, nodes=nodes)
    ask = traffic(made).efficiency
    result = check_scenario(made, CATALOG)
    chosen = [f for f in result.around.fabrics if f.purpose == "compute, cheapest sufficient"]
    options = fabric_options(
        nodes,
        n_accelerators_per_node=8,
        n_racks=-(-nodes // 4),
        kind="ethernet",
        parts=CATALOG.network,
    )
    enough = [o.usd.mid for o in options if ask(nodes, node_bytes_per_s(o)) >= 0.9]
    assert [f.usd.mid for f in chosen] == [min(enough)]
    assert chosen[0].efficiency_frac >= 0.9
