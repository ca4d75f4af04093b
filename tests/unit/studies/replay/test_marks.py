"""Priorities and recorded lengths beside a load, and what each class of requests feels."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpuplan import api
from gpuplan.cli.app import app
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.simulation.simulation import EngineRequest, SimulateRequest
from gpuplan.domain.traffic.drawn import DrawnLoad, LoadSource
from gpuplan.errors import InputError

FIXED = TokenLengths(shape="fixed", mean_tokens=500)
MIX = ((0, 0.25), (5, 0.75))


def load(rate: float = 30.0, n: int = 2000) -> LoadSource:
    answer = replace(FIXED, mean_tokens=100)
    return api.drawn_load(
        DrawnLoad(requests_per_s=rate, n_requests=n, input=FIXED, output=answer), seed=3
    )


def call(*arguments: object):
    given = ["simulate", "--model", "Llama-3.1-8B", "--on", "H100", *map(str, arguments)]
    return CliRunner().invoke(app, given)


def test_urgencies_have_the_shares_asked_for():
    marked = api.with_priorities(load(), MIX, seed=1).requests
    share = float((marked.priority == 0).mean())
    assert set(np.unique(marked.priority)) == {0, 5}
    assert share == pytest.approx(0.25, abs=4 * np.sqrt(0.25 * 0.75 / 2000))
    assert marked.arrive_s.tobytes() == load().requests.arrive_s.tobytes()
    again = api.with_priorities(load(), MIX, seed=1).requests
    assert again.priority.tobytes() == marked.priority.tobytes()


@pytest.mark.parametrize(
    "mix", [((0, 0.5), (1, 0.4)), ((0, 0.5), (0, 0.5)), ((0, -1.0), (1, 2.0)), ((0, np.nan),)],
    ids=["sum", "twice", "negative", "nan"],
)  # fmt: skip
def test_shares_that_are_none_are_refused(mix: tuple[tuple[int, float], ...]):
    with pytest.raises(InputError, match="--priorities"):
        api.with_priorities(load(), mix)


def test_the_urgent_wait_less_where_there_is_a_queue():
    taken = api.with_priorities(load(60.0), MIX, seed=1)
    scheduler = EngineRequest(scheduling="priority", max_sequences=16)
    asked = SimulateRequest(scheduler=scheduler)
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", taken.requests, asked)
    urgent, patient = api.simulate_load(ready, taken, asked).classes
    assert (urgent.name, patient.name) == ("priority 0", "priority 5")
    assert urgent.n_requests + patient.n_requests == 2000
    assert urgent.ttft is not None
    assert patient.ttft is not None
    assert urgent.ttft.p99_s < 0.1 * patient.ttft.p50_s


def test_urgency_among_equals_is_told():
    taken, asked = load(), SimulateRequest(scheduler=EngineRequest(scheduling="priority"))
    found = api.simulate("Llama-3.1-8B", "H100", taken.requests, asked)
    assert found.classes == ()
    told = {a.what: a.value for a in found.outcome.assumptions}
    assert told["priority"] == "first come, first served"


def test_services_of_a_fleet_are_told_apart(tmp_path: Path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "pools: [{name: fast, replicas: 1}, {name: slow, on: L4, replicas: 1}]\n"
        "services:\n"
        "  - {name: chat, share_frac: 0.9, pools: [{pool: fast}]}\n"
        "  - {name: batch, share_frac: 0.1, pools: [{pool: slow}]}\n"
    )
    asked = SimulateRequest()
    found = api.simulate_fleet(fleet, load(5.0), asked, served=("Llama-3.1-8B", "H100"))
    chat, batch = found.simulation.classes
    assert (chat.name, batch.name) == ("chat", "batch")
    assert [chat.n_completed, batch.n_completed] == [p.n_served for p in found.found.pools]
    assert chat.tpot is not None
    assert batch.tpot is not None
    assert batch.tpot.mean_s > 3 * chat.tpot.mean_s
    both = api.fleet_sheet(found).document["classes"]
    assert [each["name"] for each in both] == ["chat", "batch"]


def test_a_system_prompt_is_read_once():
    """All prompts of 500 tokens begin with 320: 20 blocks of 16 are found by all but the first."""
    taken = api.with_shared_prefix(load(2.0, 300), 320)
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", taken.requests, SimulateRequest())
    assert ready.fleet.limits.caches_prefixes
    totals = api.simulate_load(ready, taken, SimulateRequest()).outcome.totals
    assert totals.n_asked_tokens == 300 * 500
    assert totals.n_hit_tokens == 299 * 320


@pytest.mark.parametrize(
    "typed", [("--turns", 4), ("--stream",), ("--users", 4)], ids=["turns", "stream", "users"]
)
def test_a_system_prompt_beside_other_text_is_refused(typed: tuple[object, ...]):
    rate = () if "--users" in typed else ("--rate", 5)
    lengths = ("--input-tokens", 500, "--output-tokens", 50, "--requests", 40)
    found = call(*rate, *lengths, "--shared-prefix", 200, *typed)
    assert isinstance(found.exception, InputError)
    assert "--shared-prefix" in str(found.exception)


def test_lengths_of_a_recording_keep_prompt_and_answer_together(tmp_path: Path):
    path = tmp_path / "lengths.csv"
    path.write_text("num_prefill_tokens,num_decode_tokens\n100,7\n2000,90\n0,5\n")
    found = api.with_lengths(load(), path, seed=2)
    pairs = set(zip(found.requests.input_tokens, found.requests.output_tokens, strict=True))
    assert pairs == {(100, 7), (2000, 90)}
    share = float((found.requests.input_tokens == 100).mean())
    assert share == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 2000))
    assert any("without tokens" in line for line in found.remarks)
    told = {a.what for a in found.assumptions}
    assert "lengths" in told
    assert "input lengths" not in told


def test_lengths_of_a_file_from_the_command_line(tmp_path: Path):
    path = tmp_path / "lengths.csv"
    path.write_text("num_prefill_tokens,num_decode_tokens\n100,7\n2000,90\n")
    found = call("--rate", 5, "--requests", 200, "--lengths-from", path, "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["n_completed"] == 200
    users = call("--users", 5, "--requests", 50, "--lengths-from", path, "--json")
    assert json.loads(users.stdout)["n_completed"] == 50
    both = call("--rate", 5, "--lengths-from", path, "--input-tokens", 9)
    assert isinstance(both.exception, InputError)
    assert "--input-tokens: conflicts with --lengths-from" in str(both.exception)


def test_an_overloaded_run_is_measured_whole():
    taken = load(200.0, 3000)
    asked = SimulateRequest(warmup_s=None)
    ready = api.prepare_fleet("Llama-3.1-8B", "H100", taken.requests, asked)
    found = api.simulate_load(ready, taken, asked).statistics
    assert found.is_overloaded
    assert found.delivery.warmup.n_requests == 0
    assert "overloaded" in found.delivery.warmup.note
