"""Power of a run agrees with the power of a prediction, and its energy adds up."""

from pathlib import Path

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.fleet_file import FleetSimulation
from gpuplan.domain.simulation.simulation import SimulateRequest, Simulation
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import requests_of


def run(rate: float, **asked: object) -> Simulation:
    n = 2000
    arrive_s = np.cumsum(np.random.default_rng(0).exponential(1 / rate, n))
    stream = requests_of(arrive_s, np.full(n, 1000), np.full(n, 200))
    return api.simulate("Llama-3.1-8B", "H100", stream, SimulateRequest(**asked))  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_two_ways_to_the_same_draw(precision: str):
    rate = 8.0
    load = LoadRequest(regime="poisson", input_tokens=1000, output_tokens=200, requests_per_s=rate)
    predicted = api.predict("Llama-3.1-8B", "H100", PredictRequest(precision=precision, load=load))
    expected = api.predict_sheet(predicted).document["power_w"]["value"]
    found = run(rate, precision=precision).power
    assert found is not None
    assert found.mean_power_w.value == pytest.approx(expected, rel=0.10)


def test_energy_is_power_times_time():
    found = run(6.0, n_replicas=2, bin_s=7.0)
    power = found.power
    assert power is not None
    n_whole = len(power.power_w) - 1
    rest_s = found.outcome.totals.span_s - n_whole * power.bin_s
    summed = power.power_w[:-1].sum() * power.bin_s + power.power_w[-1] * rest_s
    assert power.energy_j.value == pytest.approx(summed)
    n_tokens = found.outcome.requests.output_tokens.sum()
    assert power.energy_j_per_output_token is not None
    assert power.energy_j_per_output_token.value == pytest.approx(summed / n_tokens)
    limit_w = found.setup.accelerator.power.limit_w
    assert limit_w is not None
    assert power.power_w.max() <= 2 * limit_w


def test_an_idle_fleet_draws_more_per_token_but_less_in_all():
    busy, idle = run(12.0).power, run(0.5).power
    assert busy is not None
    assert idle is not None
    assert idle.mean_power_w.value < busy.mean_power_w.value
    assert busy.energy_j_per_output_token is not None
    assert idle.energy_j_per_output_token is not None
    assert idle.energy_j_per_output_token.value > 3 * busy.energy_j_per_output_token.value


@pytest.mark.parametrize("rate", [0.5, 12.0])
def test_the_draw_does_not_depend_on_the_width_of_bins(rate: float):
    fine, whole = run(rate, bin_s=1.0).power, run(rate, bin_s=1e5).power
    assert fine is not None
    assert whole is not None
    assert len(whole.power_w) == 1
    assert whole.mean_power_w.value == pytest.approx(fine.mean_power_w.value, rel=0.03)


def living(folder: Path, fleet: str, *, rate: float, n: int = 1500) -> FleetSimulation:
    path = folder / "fleet.yaml"
    path.write_text(fleet)
    arrive_s = np.cumsum(np.random.default_rng(0).exponential(1 / rate, n))
    requests = requests_of(arrive_s, np.full(n, 1000), np.full(n, 200))
    taken = LoadSource(requests=requests, source="trace")
    asked = SimulateRequest(bin_s=10.0)
    return api.simulate_fleet(path, taken, asked, served=("Llama-3.1-8B", "H100"))


def watts(found: FleetSimulation) -> float:
    assert found.simulation.power is not None
    return found.simulation.power.mean_power_w.value


def test_a_fleet_at_rest_draws_what_equal_engines_draw(tmp_path: Path):
    found = living(tmp_path, "pools: [{name: a, replicas: 2}]\n", rate=8.0)
    requests = found.simulation.outcome.requests
    asked = SimulateRequest(n_replicas=2, bin_s=10.0)
    equal = api.simulate("Llama-3.1-8B", "H100", requests, asked).power
    assert equal is not None
    assert watts(found) == pytest.approx(equal.mean_power_w.value, rel=1e-6)


def test_what_is_off_draws_nothing(tmp_path: Path):
    """One of two replicas is gone for most of the run; what stays is busier, not doubled."""
    outage = "failures: {outages: [{at_s: 1, replica: 1, lasts_s: 100000}]}"
    whole = living(tmp_path, "pools: [{name: a, replicas: 2}]\n", rate=2.0)
    broken = living(tmp_path, f"pools: [{{name: a, replicas: 2, {outage}}}]\n", rate=2.0)
    alone = living(tmp_path, "pools: [{name: a, replicas: 1}]\n", rate=2.0)
    assert watts(broken) == pytest.approx(watts(alone), rel=0.02)
    assert watts(broken) < 0.75 * watts(whole)


def test_pools_of_several_kinds_add_up(tmp_path: Path):
    """A pool that is never asked draws its idle power beside the other."""
    services = "services: [{name: s, pools: [{pool: a}]}]\n"
    one = living(tmp_path, "pools: [{name: a, replicas: 1}]\n", rate=4.0)
    idle = "{name: b, on: L40S, replicas: 3}"
    both = living(tmp_path, f"pools: [{{name: a, replicas: 1}}, {idle}]\n{services}", rate=4.0)
    limit_w = 350.0
    assert 3 * 15.0 < watts(both) - watts(one) < 3 * 0.5 * limit_w
    power = both.simulation.power
    assert power is not None
    span_s, bin_s = both.simulation.outcome.totals.span_s, power.bin_s
    last_s = span_s - bin_s * (len(power.power_w) - 1)
    summed = power.power_w[:-1].sum() * bin_s + power.power_w[-1] * last_s
    assert power.energy_j.value == pytest.approx(summed)
    titles = [chart.title for chart in api.fleet_charts(both)]
    assert "Power of the accelerators" in titles
