"""Names and requests in, a run out; keys that other programs read."""

import json

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.inference.performance import InferencePrediction
from gpuplan.domain.requests.requests import LoadRequest, PredictRequest
from gpuplan.domain.simulation.outcome import SloTargets
from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest, Simulation
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.stream import Requests, no_requests, requests_of
from gpuplan.errors import InputError

KEYS = {
    "n_requests", "n_completed", "wall_s", "requests_per_wall_s", "ttft_s", "tpot_s", "e2e_s",
    "wait_s", "output_tokens_per_s", "utilization", "precision", "recall", "verdict",
}  # fmt: skip


def chat(n: int = 400, rate: float = 5.0) -> Requests:
    draw = np.random.default_rng(0)
    arrive_s = np.cumsum(draw.exponential(1 / rate, n))
    return requests_of(arrive_s, draw.integers(50, 1500, n), draw.integers(10, 400, n))


def run(requests: Requests | None = None, **asked: object) -> Simulation:
    stream = chat() if requests is None else requests
    return api.simulate("Llama-3.1-8B", "H100", stream, SimulateRequest(**asked))  # type: ignore[arg-type]


def test_document_has_the_keys_that_are_promised():
    found = run(slo=SloTargets(ttft_s=0.5))
    document = api.simulate_sheet(found).document
    assert document.keys() >= KEYS
    for measure in ("ttft_s", "tpot_s", "e2e_s", "wait_s"):
        assert document[measure].keys() >= {"mean", "p50", "p90", "p95", "p99"}
    json.dumps(document, allow_nan=False)
    assert document["verdict"] == "within limits"


def test_more_replicas_never_wait_longer_here():
    one, two = run(chat(rate=60.0)), run(chat(rate=60.0), n_replicas=2)
    assert two.outcome.times.ttft_s.mean() < one.outcome.times.ttft_s.mean()
    assert two.fleet.router == "least_outstanding"


def test_limits_that_are_given_are_used():
    scheduler = EngineRequest(max_sequences=7, max_batch_tokens=512, n_blocks=900)
    found = run(scheduler=scheduler)
    limits = found.fleet.limits
    assert (limits.max_sequences, limits.max_batch_tokens, limits.n_blocks) == (7, 512, 900)
    assert all(a.what != "scheduler" for a in found.outcome.assumptions)
    assert any(a.what == "scheduler" for a in run().outcome.assumptions)


def test_a_trickle_costs_what_is_predicted_for_one_request():
    """Two ways to one number: requests that never meet take the step times one by one."""
    n = 20
    alone = requests_of(np.arange(n) * 100.0, np.full(n, 1000), np.full(n, 200))
    # A server in front, as the simulator has: a batch without one takes less of the host's time.
    load = LoadRequest(
        regime="fixed_concurrency", input_tokens=1000, output_tokens=200, n_concurrent=1
    )
    predicted: InferencePrediction = api.predict(
        "Llama-3.1-8B", "H100", PredictRequest(load=load)
    ).served
    found = run(alone).statistics
    assert found.tpot is not None
    assert found.tpot.mean_s == pytest.approx(predicted.tpot_mean_s.value, rel=0.01)


def test_a_run_that_tells_its_progress_is_the_same_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gpuplan.simulation.serving.stream.N_BLOCK", 64)
    requests, heard = chat(), list[int]()
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", requests, SimulateRequest())
    taken = LoadSource(requests=requests, source="trace")
    told = api.simulate_load(ready, taken, SimulateRequest(), on_progress=heard.append)
    silent = api.simulate_load(ready, taken, SimulateRequest())
    assert heard == [64, 128, 192, 256, 320, 384, 400]
    assert told.outcome.times.e2e_s.tobytes() == silent.outcome.times.e2e_s.tobytes()
    assert told.outcome.totals == silent.outcome.totals
    assert told.statistics == silent.statistics


def test_an_empty_trace_and_a_model_too_large_are_told():
    with pytest.raises(InputError, match="holds no request"):
        run(no_requests())
    with pytest.raises(InputError, match="no room"):
        api.simulate("Llama-3.1-70B", "H100", chat(), SimulateRequest())


def test_rows_leave_out_what_never_was():
    stream = requests_of([0.0, 1.0, 2.0], [10, 10, 0], [5, 1, 5])
    outcome = run(stream).outcome
    columns = api.request_columns(outcome)
    assert [value is None for value in columns["tpot_s"]] == [False, True, True]
    assert [value is None for value in columns["ttft_s"]] == [False, False, True]
    lines = list(api.requests_csv(outcome))
    assert lines[0].startswith("request_id,arrival_s,ttft_s,tpot_s,e2e_s,n_preemptions,")
    assert lines[3] == "2,2.0,,,,0,,0,5,0,,0,unservable\n"


def test_the_load_is_told_as_it_came():
    even = requests_of(np.arange(600) * 0.5, np.full(600, 50), np.full(600, 10))
    found = run(even)
    document = api.simulate_sheet(found).document["load"]
    assert document["requests_per_s"] == pytest.approx(2.0)
    assert document["gap_cv"] == pytest.approx(0.0, abs=1e-9)
    assert document["dispersion_per_minute"] == pytest.approx(0.0, abs=1e-9)
    drawn = api.simulate_sheet(run(chat(2000, 5.0))).document["load"]
    assert drawn["gap_cv"] == pytest.approx(1.0, abs=0.1)


def test_an_engine_that_nobody_measured_is_told():
    told = {a.what: a for a in run(engine="homemade").outcome.assumptions}
    assert told["engine"].value == "homemade"
    assert "no measurement covers" in told["engine"].why
