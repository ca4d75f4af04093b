"""From human units to base units, once; checked on the published acceptance figures."""

import json
from math import exp, isclose, log
from pathlib import Path

import pytest

from fakes.scenarios import read_scenario_text
from gpuplan.domain.ranges import Range, exactly
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Batch, Generic, Serving, Training
from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import read_scenario
from unit.inputs.scenarios import CHAT, changed

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def example(name: str) -> Scenario:
    return read_scenario(EXAMPLES / f"{name}.yaml")


def of(changes: dict[str, object]) -> Scenario:
    return read_scenario_text(json.dumps(changed(changes)))


SCENARIOS = sorted(path for path in EXAMPLES.glob("*.yaml") if path.stem != "questions")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.workloads
    assert all(note.change and note.why for note in scenario.assumptions)


def test_chat_rate_is_three_and_a_third() -> None:
    work = example("chat").workloads[0].work
    assert isinstance(work, Serving)
    assert work.arrivals.peak_requests_per_s == pytest.approx(3.3333, rel=1e-4)
    assert work.slo.limit_s("ttft", "p95") == pytest.approx(2.0)
    assert work.slo.limit_s("tpot", "p95") == pytest.approx(0.040)
    assert work.slo.limit_s("itl", "p95") is None
    assert work.request.input == TokenLengths(shape="near", mean_tokens=2200)


def test_offered_output_tokens_become_requests() -> None:
    scenario = example("which-gpu")
    work = scenario.workloads[0].work
    assert isinstance(work, Serving)
    assert work.arrivals.peak_requests_per_s == pytest.approx(4000 / 300)
    rates = {c.accelerator: c.rate_per_s for c in scenario.workloads[0].capacities}
    assert rates == {"L4": exactly(900), "L40S": exactly(2600), "H100": exactly(9000)}
    assert [o.price_usd_per_h.mid for o in scenario.prices.offers] == [0.80, 1.60, 2.95]
    assert scenario.policy.resilience.survive == "gpu"
    assert scenario.policy.resilience.max_utilization_frac == 0.7


def test_data_path_demand_of_slow_disks() -> None:
    path = example("slow-disks").workloads[0].data_path
    assert path is not None
    assert path.sample_bytes is not None
    assert path.samples_per_s_per_accelerator is not None
    demand = 8 * path.samples_per_s_per_accelerator * path.sample_bytes
    assert demand == pytest.approx(2.64e9)
    assert path.storage is not None
    assert path.storage.network_bytes_per_s == pytest.approx(125e6)
    assert path.copy is not None
    assert path.copy.n_batch_samples * path.copy.sample_bytes == pytest.approx(154.1e6, rel=1e-3)
    assert path.staging is not None
    rate = path.staging.link_bytes_per_s * path.staging.efficiency_frac
    assert path.staging.dataset_bytes / rate / 3600 == pytest.approx(63.5, abs=0.05)


def test_a_and_b_feeds_are_not_added() -> None:
    site = example("power-shortfall").site
    assert site is not None
    assert site.rack is not None
    assert site.rack.circuit is not None
    assert site.rack.circuit.n_feeds == 2
    assert site.rack.usable_w == pytest.approx(17.3e3, rel=2e-3)
    assert site.electricity_usd_per_j is not None
    assert site.electricity_usd_per_j.mid * 3.6e6 == pytest.approx(0.12)


def test_network_of_the_scaling_question() -> None:
    scenario = example("scaling")
    assert scenario.site is not None
    assert scenario.site.network is not None
    assert scenario.site.network.nic_bytes_per_s == pytest.approx(12.5e9)
    work = scenario.workloads[0].work
    assert isinstance(work, Training)
    assert work.method == "full"
    assert work.accelerator_batch_tokens == 8192
    assert scenario.workloads[0].layout is not None
    assert scenario.workloads[0].layout.sharding == "fsdp"


def test_documents_of_a_day_have_a_mean_and_a_peak() -> None:
    scenario = example("cpu-is-enough")
    work = scenario.workloads[0].work
    assert isinstance(work, Serving)
    assert work.arrivals.mean_requests_per_s == pytest.approx(2.3, abs=0.02)
    assert work.arrivals.peak_requests_per_s == pytest.approx(23.1, abs=0.1)
    assert scenario.workloads[0].capacities[0].is_per_node
    assert scenario.prices.offers[0].name == "cpu-16"
    assert scenario.prices.offers[0].host.n_vcpus == 16


def test_large_training() -> None:
    workload = example("large-training").workloads[0]
    work = workload.work
    assert isinstance(work, Training)
    assert workload.model is not None
    assert workload.model.n_params == pytest.approx(100e9)
    assert work.n_tokens == pytest.approx(2e12)
    assert 6 * workload.model.n_params * work.n_tokens == pytest.approx(1.2e24)
    assert work.deadline_s == pytest.approx(45 * 86400)
    assert work.accelerator_mtbf_s is not None
    assert work.accelerator_mtbf_s / 1024 / 3600 == pytest.approx(49.5, abs=0.05)
    assert work.checkpoint is not None
    assert work.checkpoint.state_bytes == pytest.approx(1.4e12)
    assert work.checkpoint.write_bytes_per_s == Range(low=2e9, mid=20e9, high=100e9)
    mfu = {c.accelerator: c.mfu_frac.mid for c in workload.capacities if c.mfu_frac}
    assert mfu == {"H100": 0.40, "tpu-v5p": 0.50, "B200": 0.38}


def test_load_duration_steps() -> None:
    scenario = example("burst-to-cloud")
    work = scenario.workloads[0].work
    assert isinstance(work, Generic)
    held = [(step.n_accelerators, step.held_s / 3600) for step in work.steps]
    assert held == [(16, 168), (40, 50), (60, 20)]
    assert {o.name: o.purchase for o in scenario.prices.offers} == {
        "own": "owned",
        "cloud": "on_demand",
    }
    assert scenario.prices.offers[1].cold_start_s == Range(low=240, mid=360, high=480)


def test_growth_and_lead_time() -> None:
    scenario = example("growth")
    assert scenario.growth.per_month_frac == Range(low=0.04, mid=0.08, high=0.12)
    assert scenario.growth.lead_time_s == exactly(16 * 7 * 86400)
    assert scenario.owned[0].n_accelerators == 48
    assert scenario.budget.horizon_s == pytest.approx(365 * 86400)


def test_prefix_hits_are_a_range() -> None:
    work = example("coding-agents").workloads[0].work
    assert isinstance(work, Serving)
    assert work.request.prefix_hit_frac == Range(low=0.8, mid=0.95, high=0.98)
    assert work.arrivals.peak_requests_per_s == 24
    raw = 24 * work.request.input.mean_tokens
    assert raw * (1 - work.request.prefix_hit_frac.mid) == pytest.approx(72e3)


def test_batch_stream() -> None:
    work = of({}).workloads[2].work
    assert isinstance(work, Batch)
    assert work.docs_per_s == pytest.approx(1.0)
    assert work.deadline_s == 86400


def test_curve_of_requests_gives_peak_and_mean() -> None:
    steps = [
        {"hours_per_week": 168, "requests_per_s": 10},
        {"hours_per_week": 42, "requests_per_s": 30},
    ]
    work = of({"workloads.0.demand": {"load_duration": steps}}).workloads[0].work
    assert isinstance(work, Serving)
    assert work.arrivals.peak_requests_per_s == 30
    assert work.arrivals.mean_requests_per_s == pytest.approx(10 + 20 * 42 / 168)


def test_mean_of_percentiles_is_that_of_the_lognormal() -> None:
    work = of({"workloads.0.request.input_tokens": {"p50": 1000, "p95": 4000}}).workloads[0].work
    assert isinstance(work, Serving)
    sigma = log(4) / 1.6448536
    assert work.request.input.shape == "lognormal"
    assert isclose(work.request.input.mean_tokens, 1000 * exp(sigma**2 / 2), rel_tol=1e-5)


def test_profile_sets_the_mean() -> None:
    work = of({"workloads.0.demand.hourly_profile": [1] * 12 + [3] * 12}).workloads[0].work
    assert isinstance(work, Serving)
    assert work.arrivals.peak_requests_per_s is not None
    assert work.arrivals.mean_requests_per_s == pytest.approx(
        work.arrivals.peak_requests_per_s * 2 / 3
    )


def test_precisions_get_their_own_names() -> None:
    scenario = of({"workloads.0.precision": ["bfloat16", "BF16", "awq"]})
    assert scenario.workloads[0].precisions == ("bf16", "int4")


def test_price_of_accelerators_becomes_that_of_the_node() -> None:
    offer = {"accelerator": "H100", "usd_per_accelerator_h": 2, "accelerators_per_node": 8}
    assert of({"prices.offers": [offer]}).prices.offers[0].price_usd_per_h == exactly(16)


def test_rates_in_the_terms() -> None:
    scenario = of(
        {
            "prices.egress_usd_per_gb": 0.09,
            "prices.carbon_usd_per_t": 100,
            "prices.token_services": [
                {"name": "x", "usd_per_m_input_tokens": 1, "usd_per_m_output_tokens": 2}
            ],
            "policy.max_co2_t_per_year": 3,
            "site.carbon_g_per_kwh": 360,
            "site.demand_charge_usd_per_kw_month": 12,
        }
    )
    assert scenario.prices.egress_usd_per_byte == pytest.approx(0.09e-9)
    assert scenario.prices.carbon_usd_per_kg == pytest.approx(0.1)
    assert scenario.prices.tokens[0].output_usd_per_token == pytest.approx(2e-6)
    assert scenario.policy.carbon_max_kg_per_year == pytest.approx(3000)
    assert scenario.site is not None
    assert scenario.site.carbon_kg_per_j == pytest.approx(1e-7)
    assert scenario.site.demand_usd_per_w_month == pytest.approx(0.012)


def test_the_fingerprint_is_of_the_meaning() -> None:
    plain = read_scenario_text(json.dumps(CHAT))
    turned = read_scenario_text(json.dumps(dict(reversed(CHAT.items())), indent=3))
    assert plain.sha256 == turned.sha256
    assert plain == turned
    assert of({"workloads.0.demand.users": 6000.0}).sha256 == plain.sha256
    assert of({"workloads.0.demand.users": 6001}).sha256 != plain.sha256


def test_files_are_found_beside_the_scenario(tmp_path: Path) -> None:
    data = changed({"workloads.0.model": "./config.json", "workloads.0.demand": {"trace": "t.csv"}})
    path = tmp_path / "s.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as caught:
        read_scenario(path)
    assert len(caught.value.problems) == 2
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "t.csv").write_text("")
    scenario = read_scenario(path)
    assert scenario.workloads[0].model is not None
    assert Path(scenario.workloads[0].model.name or "") == tmp_path / "config.json"
    work = scenario.workloads[0].work
    assert isinstance(work, Serving)
    assert work.arrivals.trace == str(tmp_path / "t.csv")
    assert work.arrivals.peak_requests_per_s is None


def test_a_workload_is_found_by_its_name() -> None:
    scenario = of({})
    assert scenario.workload("tune") is scenario.workloads[1]
    assert scenario.workload("nobody") is None


def test_a_cluster_file_asks_for_its_jobs(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text("nodes:\n  - {accelerator: H100, nodes: 2, accelerators_per_node: 8}\n")
    with pytest.raises(InputError, match=r"nodes: is a key of a cluster file; .*--jobs"):
        read_scenario(path)
