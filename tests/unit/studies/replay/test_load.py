"""Loads by figures, traces and scenarios: what is drawn, what is assumed, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpuplan import api
from gpuplan.domain.scenario.demand import TokenLengths
from gpuplan.domain.traffic.drawn import DrawnLoad, LoadTerms, Phase
from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import InputError
from shared_data import shared_file

CHAT = DrawnLoad(
    requests_per_s=5.0,
    input=TokenLengths(shape="fixed", mean_tokens=300),
    output=TokenLengths(shape="lognormal", mean_tokens=100, p95_tokens=250),
    duration_s=2000.0,
)


def gap_cv(load: DrawnLoad, seed: int = 1) -> float:
    gaps = np.diff(api.drawn_load(load, seed=seed).requests.arrive_s)
    return float(gaps.std() / gaps.mean())


def told(load: DrawnLoad) -> dict[str, str]:
    return {a.what: a.value for a in api.drawn_load(load).assumptions}


def test_the_rate_and_lengths_are_those_asked_for():
    requests = api.drawn_load(CHAT, seed=3).requests
    assert len(requests) == pytest.approx(10_000, abs=4 * 100)
    assert set(requests.input_tokens) == {300}
    assert requests.output_tokens.mean() == pytest.approx(100, rel=0.05)
    assert np.percentile(requests.output_tokens, 95) == pytest.approx(250, rel=0.08)


def test_same_seed_same_bytes_and_another_seed_other_draws():
    a, b, c = (api.drawn_load(CHAT, seed=seed).requests for seed in (1, 1, 2))
    assert a.arrive_s.tobytes() == b.arrive_s.tobytes()
    assert a.arrive_s.tobytes() != c.arrive_s[: len(a)].tobytes()


def test_burstiness_chooses_the_law():
    assert gap_cv(CHAT) == pytest.approx(1.0, rel=0.05)
    assert gap_cv(replace(CHAT, burstiness_ratio=3.0)) == pytest.approx(3.0, rel=0.15)
    weibull = replace(CHAT, law="weibull", burstiness_ratio=2.0)
    assert gap_cv(weibull) == pytest.approx(2.0, rel=0.15)
    phases = (Phase(requests_per_s=1.0, stay_s=100), Phase(requests_per_s=20.0, stay_s=20))
    assert gap_cv(replace(CHAT, requests_per_s=None, phases=phases)) > 1.5


def test_what_is_left_out_is_assumed_and_told():
    assert told(CHAT)["arrivals"] == "Poisson"
    assert "input lengths" in told(CHAT)
    assert "output lengths" not in told(CHAT)
    assert told(replace(CHAT, duration_s=None))["duration"] == "1 h"
    assert told(replace(CHAT, law="gamma"))["burstiness"] == "2"
    day = LoadTerms(hourly_profile=(1.0,) * 24)
    assert told(replace(CHAT, duration_s=None, terms=day))["duration"] == "24 h"


@pytest.mark.parametrize("law", ["poisson", "gamma", "weibull", None])
def test_a_number_of_requests_is_exact(law):
    load = replace(CHAT, law=law, duration_s=None, n_requests=777)
    assert len(api.drawn_load(load, seed=5).requests) == 777


def test_a_profile_moves_the_load_and_growth_raises_it():
    day = tuple(0.1 if hour < 12 else 1.9 for hour in range(24))
    load = replace(CHAT, duration_s=86400.0, terms=LoadTerms(hourly_profile=day))
    arrive_s = api.drawn_load(load).requests.arrive_s
    assert (arrive_s < 43200).mean() == pytest.approx(0.05, abs=0.01)
    year_s = 365 * 86400.0
    grown = replace(CHAT, terms=LoadTerms(growth_frac_per_month=0.1, after_s=year_s))
    ratio = len(api.drawn_load(grown).requests) / len(api.drawn_load(CHAT).requests)
    assert ratio == pytest.approx(1.1**12, rel=0.05)


def test_everything_wrong_is_told_at_once():
    bad = DrawnLoad(
        law="poisson", requests_per_s=-1.0, burstiness_ratio=3.0, duration_s=float("nan"),
        n_requests=5, output=TokenLengths(shape="fixed", mean_tokens=0),
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        api.drawn_load(bad)
    places = [problem.where for problem in caught.value.problems]
    for flag in ("--rate", "--duration", "--input-tokens", "--output-tokens", "--burstiness"):
        assert flag in places
    with pytest.raises(InputError, match="--phases"):
        api.drawn_load(replace(CHAT, law="mmpp", requests_per_s=None))
    silent = (Phase(requests_per_s=0.0, stay_s=10.0),)
    with pytest.raises(InputError, match="no phase has a rate"):
        api.drawn_load(replace(CHAT, requests_per_s=None, phases=silent))


def trace(folder: Path, n: int = 400) -> Path:
    path = folder / "trace.csv"
    rows = "".join(f"{k * 0.25},{100 + k},{10 + k % 30}\n" for k in range(n))
    path.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    return path


def test_a_trace_is_taken_as_it_is_or_scaled(tmp_path: Path):
    path = trace(tmp_path)
    plain, double = api.trace_load(path), api.trace_load(path, scale=2.0)
    assert (len(plain.requests), len(double.requests)) == (400, 800)
    assert plain.assumptions == ()
    assert [a.value for a in double.assumptions] == ["x 2"]
    for factor in (0.0, float("nan"), -1.0):
        with pytest.raises(InputError, match="scale"):
            api.trace_load(path, scale=factor)


def test_bad_lines_are_counted_and_shown(tmp_path: Path):
    path = trace(tmp_path)
    with path.open("a") as lines:
        lines.write("x,5,5\n101,-5,5\n")
    found = api.trace_load(path)
    assert any("2 bad lines" in line for line in found.remarks)
    assert sum("line" in line for line in found.remarks) >= 2


def scenario(folder: Path, kind: str = "chat") -> Path:
    path = folder / "scenario.yaml"
    path.write_text(api.scenario_template(kind))
    return path


def test_a_scenario_gives_load_model_precision_and_objective(tmp_path: Path):
    taken = api.scenario_load(scenario(tmp_path), duration_s=600.0)
    assert taken.model == "meta-llama/Llama-3.3-70B-Instruct"
    assert taken.precision == "fp8"
    assert taken.slo is not None
    assert (taken.slo.ttft_s, taken.slo.tpot_s, taken.slo.kept_frac) == (2.0, 0.04, 0.95)
    rate = 6000 * 0.2 * 10 / 3600
    assert len(taken.requests) == pytest.approx(rate * 600, rel=0.1)
    assert all(not a.change.startswith(("site", "budget")) for a in taken.assumptions)


def test_a_workload_must_be_named_where_there_are_several(tmp_path: Path):
    path = scenario(tmp_path, "embeddings")
    with pytest.raises(InputError, match="--workload"):
        api.scenario_load(path)
    with pytest.raises(InputError, match="got 'chat'"):
        api.scenario_load(path, "chat")
    nightly = api.scenario_load(path, "nightly backfill", duration_s=60.0)
    assert nightly.slo is not None
    assert nightly.slo.e2e_s is not None
    with pytest.raises(InputError, match="predict-training"):
        api.scenario_load(scenario(tmp_path, "training"))


def test_conversations_bring_requests_at_the_rate_asked_for():
    load = replace(CHAT, n_turns_mean=4.0, think_s=5.0, duration_s=20_000.0)
    taken = api.drawn_load(load, seed=2)
    requests = taken.requests
    inside = requests.arrive_s < 20_000.0
    assert inside.sum() / 20_000.0 == pytest.approx(5.0, rel=0.05)
    assert len(requests) / len(np.unique(requests.session)) == pytest.approx(4.0, rel=0.05)
    later = requests.prefix_tokens > 0
    assert np.all(requests.input_tokens[later] == requests.prefix_tokens[later] + 300)
    assert {"conversations"} <= {a.what for a in taken.assumptions}


def test_so_many_requests_of_conversations():
    load = replace(CHAT, n_turns_mean=4.0, think_s=5.0, duration_s=None, n_requests=500)
    assert len(api.drawn_load(load).requests) == 500


@pytest.mark.parametrize("n", [0.5, float("nan"), float("inf")])
def test_half_a_turn_is_refused(n: float):
    with pytest.raises(InputError, match="--turns"):
        api.drawn_load(replace(CHAT, n_turns_mean=n))


def test_recorded_clients_are_drawn_from_their_folder(tmp_path: Path):
    (tmp_path / "chunk-0-trace.csv").write_text("0,10.0,1.0,Gamma,1.0,0.1\n600,5.0,1.0,,1.0,0.2\n")
    (tmp_path / "chunk-0-dataset.json").write_text(
        '{"0": {"input_tokens": "{100: 1.0}", "output_tokens": "{5: 1.0}"}}'
    )
    taken = api.clients_load(tmp_path, duration_s=600.0, seed=1)
    assert len(taken.requests) == pytest.approx(6000, rel=0.06)
    assert {a.what for a in taken.assumptions} == {"begin"}
    twice = api.clients_load(tmp_path, duration_s=600.0, scale=2.0, seed=1)
    assert len(twice.requests) == pytest.approx(2 * len(taken.requests), rel=0.05)


def test_of_published_clients_a_model_is_chosen():
    folder = shared_file("traces/servegen")
    pytest.importorskip("polars")
    with pytest.raises(InputError, match="m-small"):
        api.clients_load(folder)
    query = TraceQuery(where=(("model", "mm-image"), ("start_s", "36000")))
    taken = api.clients_load(folder, query=query, duration_s=60.0)
    assert len(taken.requests) > 100
    assert any("clients in windows" in line for line in taken.remarks)
