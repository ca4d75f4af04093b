"""An autoscaled fleet from a file: engines of every pool, a run, and what it says."""

from pathlib import Path

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.simulation.simulation import SimulateRequest
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import requests_of
from gpuplan.errors import InputError

FILE = """
pools:
  - {name: fast, replicas: 1, failures: {outages: [{at_s: 5, replica: 0, lasts_s: 3}]}}
  - {name: slow, on: L40S, replicas: 1, start: {load_s: 7}}
"""


def load(n: int = 200) -> LoadSource:
    draw = np.random.default_rng(0)
    arrive_s = np.cumsum(draw.exponential(0.1, n))
    requests = requests_of(arrive_s, draw.integers(50, 500, n), draw.integers(20, 200, n))
    return LoadSource(requests=requests, source="drawn")


def fleet_file(tmp_path: Path, text: str = FILE) -> Path:
    file = tmp_path / "fleet.yaml"
    file.write_text(text)
    return file


def test_a_file_gives_a_run_and_its_sheet(tmp_path: Path):
    served = ("Llama-3.1-8B", "H100")
    run = api.simulate_fleet(fleet_file(tmp_path), load(), SimulateRequest(), served=served)
    sheet = api.fleet_sheet(run)
    found = sheet.document["fleet"]
    assert sum(found["ends"].values()) == 200
    assert found["ends"]["finished"] == 200
    assert found["counts"]["n_failures"] == 1
    assert [pool["name"] for pool in found["pools"]] == ["fast", "slow"]
    assert found["pools"][1]["cold_start_s"]["total"] == 7
    assert found["pools"][0]["cold_start_s"]["total"] > 10  # predicted
    assert found["timeline"]["failed"][:3] == [0, 0, 1]
    assert sheet.head.startswith("pools fast (1), slow (1): 200 of 200 requests served")
    assert "cold start" in [assumed.what for assumed in run.simulation.outcome.assumptions]


def test_a_pool_without_a_model_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="serves no model"):
        api.simulate_fleet(fleet_file(tmp_path), load(5), SimulateRequest(), served=(None, "H100"))


def test_paid_time_is_that_of_accelerators(tmp_path: Path):
    """A replica of four that idles weighs four times one that is busy."""
    path = tmp_path / "fleet.yaml"
    path.write_text(
        "pools: [{name: small, replicas: 1}, {name: wide, on: 4xH100, replicas: 1}]\n"
        "services: [{name: chat, pools: [{pool: small}]}]\n"
    )
    n = 400
    requests = requests_of(np.arange(n) * 0.1, np.full(n, 300), np.full(n, 50))
    taken = LoadSource(requests=requests, source="trace")
    found = api.simulate_fleet(path, taken, SimulateRequest(), served=("Llama-3.1-8B", "H100"))
    small, wide = found.found.pools
    assert wide.busy_s == 0.0
    expected = small.busy_s / (small.paid_s + 4 * wide.paid_s)
    assert found.simulation.statistics.busy_frac == pytest.approx(expected)
    assert found.simulation.statistics.precision_frac == pytest.approx(expected)
    document = api.fleet_sheet(found).document["fleet"]
    assert document["paid_gpu_hours"] == pytest.approx(5 * small.paid_s / 3600)
    use = found.simulation.outcome.use
    assert use.busy_frac.max() <= 0.21


def test_a_fleet_that_turns_requests_away_names_one_that_serves_them(tmp_path: Path):
    """20 a second of which one replica of four seats serves a few: its queue cannot grow."""
    text = "pools: [{name: a, replicas: 1, admission: {max_outstanding: 4, max_queued: 4}}]\n"
    path = fleet_file(tmp_path, text)
    n = 1200
    arrive_s = np.cumsum(np.random.default_rng(0).exponential(0.05, n))
    requests = requests_of(arrive_s, np.full(n, 300), np.full(n, 100))
    taken = LoadSource(requests=requests, source="trace")
    found = api.simulate_fleet(path, taken, SimulateRequest(), served=("Llama-3.1-8B", "H100"))
    simulation = found.simulation
    assert not simulation.statistics.is_overloaded
    assert simulation.statistics.recall_frac < 0.6
    held = simulation.holding
    assert held is not None
    assert held.n_replicas is not None
    recall = {point.n_replicas: point.recall_frac for point in held.tried}
    assert recall[held.n_replicas] >= 0.99 > recall[held.n_replicas - 1]
    sheet = api.fleet_sheet(found)
    told = dict(sheet.remarks)["Too small:"]
    assert f"{held.n_replicas} replicas would carry the load" in told[1]


def test_no_fleet_is_sought_for_requests_that_none_can_hold(tmp_path: Path):
    path = fleet_file(tmp_path, "pools: [{name: a, replicas: 1}]\n")
    requests = requests_of([0.0, 1.0, 2.0], [100, 10**8, 10**8], [5, 5, 5])
    taken = LoadSource(requests=requests, source="trace")
    found = api.simulate_fleet(path, taken, SimulateRequest(), served=("Llama-3.1-8B", "H100"))
    assert found.simulation.holding is None
