"""Energy follows the load: quiet hours, idle spares, the user's own figures, unknown boards."""

from copy import deepcopy

import pytest

import gpuplan
from gpuplan.domain.columns import floats
from gpuplan.domain.plan.sizing import LoadPower
from gpuplan.domain.provenance import Estimate
from gpuplan.units import KWH, MONTH

TREE = {
    "name": "chat",
    "workloads": [
        {
            "name": "chat",
            "kind": "online_inference",
            "model": "Llama-3.1-8B",
            "demand": {"requests_per_s": 6},
            "request": {"input_tokens": 500, "output_tokens": 200},
            "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 60},
        }
    ],
    "policy": {"accelerators": {"allowed": ["L40S"]}},
}
OWNED = {
    "owned": [{"accelerator": "L40S", "nodes": 2, "accelerators_per_node": 4}],
    "site": {"electricity_usd_per_kwh": 0.10, "pue": 1.3, "carbon_g_per_kwh": 300},
}


PEAK = Estimate(value=300.0, low=280.0, high=320.0, tier="fitted")


def planned(**changes):
    tree = deepcopy(TREE) | deepcopy(changes)
    demand = tree.pop("demand", None)
    if demand:
        tree["workloads"][0]["demand"] = demand
    return gpuplan.plan(tree, n_samples=0).plan


@pytest.fixture(scope="module")
def flat():
    return planned()


def test_quiet_nights_draw_less_than_a_flat_day(flat):
    nights = [1.0] * 12 + [0.05] * 12
    night = planned(demand={"requests_per_s": 6, "hourly_profile": nights})
    assert night.pools[0].n_accelerators == flat.pools[0].n_accelerators
    assert night.energy_j_per_month < 0.95 * flat.energy_j_per_month


def test_a_nearly_idle_fleet_draws_little_more_than_idle(flat):
    light = planned(demand={"requests_per_s": 0.02})
    each_flat = flat.power_w.low / flat.pools[0].n_accelerators
    each_light = light.power_w.low / light.pools[0].n_accelerators
    assert each_light < 0.75 * each_flat


def test_mean_draw_lies_between_idle_and_the_limit_and_gives_the_energy(flat):
    assert 0.2 * flat.power_w.high < flat.power_w.low < flat.power_w.high
    assert flat.energy_j_per_month == pytest.approx(flat.power_w.low * MONTH, rel=1e-6)


def test_paid_energy_of_own_nodes_is_what_they_draw_times_the_tariff():
    plan = planned(**OWNED)
    assert plan.pools[0].source.startswith("existing")
    paid = plan.energy_j_per_month * 1.3 / KWH * 0.10
    assert plan.cost_usd_per_month.value == pytest.approx(paid, rel=2e-3)
    assert plan.carbon_kg_per_month == pytest.approx(paid / 0.10 * 0.3, rel=2e-3)


def test_the_users_own_utilization_wins():
    owned = deepcopy(OWNED)
    owned["owned"][0] |= {"node_max_kw": 2.0, "mean_utilization_frac": 0.4}
    plan = planned(**owned)
    n_nodes = plan.pools[0].purchases[0].n_nodes
    assert plan.energy_j_per_month == pytest.approx(0.4 * 2000 * n_nodes * MONTH, rel=1e-3)


def test_a_board_without_a_published_limit_has_an_unknown_draw():
    plan = planned(policy={"accelerators": {"allowed": ["inferentia2"]}})
    assert plan.power_w is None
    assert plan.energy_j_per_month is None
    assert plan.carbon_kg_per_month is None


def test_watts_lie_on_the_curve_and_stay_at_its_ends():
    curve = LoadPower(PEAK, (0.0, 0.5, 1.0), (100.0, 250.0, 300.0))
    assert curve.at(floats([0.0, 0.25, 1.0, 2.0])).tolist() == [100.0, 175.0, 300.0, 300.0]


def test_owned_nodes_that_would_be_nearly_idle_win_over_rent():
    """Eight boards of which one is busy draw far from their limit: cheaper than any rented card."""
    tree = deepcopy(TREE) | {
        "owned": [{"accelerator": "H100", "nodes": 2, "accelerators_per_node": 8}]
    }
    tree["policy"] = {}
    plan = gpuplan.plan(tree, n_samples=0).plan
    assert {line.purchase for pool in plan.pools for line in pool.purchases} == {"existing"}
