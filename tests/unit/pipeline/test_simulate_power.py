"""Power of a run agrees with the power of a prediction, and its energy adds up."""

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation import SimulateRequest, Simulation
from gpuplan.domain.stream import requests_of


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
