"""`simulate` from the command line: what is written where, and what is refused."""

import contextlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.cli.output import whole_file
from gpuplan.errors import InputError

TRACE = "arrival_s,input_tokens,output_tokens\n0.0,100,20\n0.5,200,1\n0.75,300,30\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def call(*arguments: object):
    given = ["simulate", "--model", "Llama-3.1-8B", "--on", "H100", *map(str, arguments)]
    return CliRunner().invoke(app, given)


def test_json_goes_to_stdout_and_every_request_to_its_file(trace: Path, tmp_path: Path):
    out = tmp_path / "requests.csv"
    found = call("--trace", trace, "--json", "--out", out, "--max-num-seqs", 4)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["n_requests"] == document["n_completed"] == 3
    assert document["max_num_seqs"] == 4
    lines = out.read_text().splitlines()
    assert lines[0].startswith("request_id,arrival_s,ttft_s,tpot_s,e2e_s,n_preemptions,wait_s,")
    assert [line.split(",")[3] == "" for line in lines[1:]] == [False, True, False]
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert [(r["input_tokens"], r["output_tokens"], r["end"]) for r in rows] == [
        ("100", "20", "finished"), ("200", "1", "finished"), ("300", "30", "finished")
    ]  # fmt: skip
    assert {r["session"] for r in rows} == {""}
    assert {r["cached_tokens"] for r in rows} == {"0"}  # vLLM's prefix cache is on, and finds none
    assert sorted(p.name for p in tmp_path.iterdir()) == ["requests.csv", "trace.csv"]


def test_parquet_holds_the_same(trace: Path, tmp_path: Path):
    polars = pytest.importorskip("polars")
    out = tmp_path / "requests.parquet"
    assert call("--trace", trace, "--json", "--out", out).exit_code == 0
    table = polars.read_parquet(out)
    assert table.columns[:6] == [
        "request_id", "arrival_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions"
    ]  # fmt: skip
    assert table["tpot_s"].null_count() == 1
    assert table["session"].null_count() == 3
    assert table["cached_tokens"].to_list() == [0, 0, 0]
    assert table["end"].to_list() == ["finished"] * 3


def test_how_requests_of_a_living_fleet_ended_is_in_their_file(tmp_path: Path):
    polars = pytest.importorskip("polars")
    (tmp_path / "fleet.yaml").write_text(
        "clients: {timeout_s: 1.5}\n"
        "pools: [{name: a, replicas: 1, admission: {max_outstanding: 4, max_queued: 4}}]\n"
    )
    out = tmp_path / "requests.parquet"
    load = ("--rate", 30, "--input-tokens", 300, "--output-tokens", 150, "--requests", 200)
    found = call(*load, "--fleet", tmp_path / "fleet.yaml", "--json", "--out", out)
    assert found.exit_code == 0, found.output
    counted = dict(polars.read_parquet(out)["end"].value_counts().iter_rows())
    ends = json.loads(found.stdout)["fleet"]["ends"]
    assert counted == {name: n for name, n in ends.items() if n}
    assert len(counted) > 1


def test_a_file_that_stood_there_stays_when_a_run_fails(tmp_path: Path):
    out = tmp_path / "requests.csv"
    out.write_text("before")
    with contextlib.suppress(RuntimeError), whole_file(out) as part:
        part.write_text("half")
        raise RuntimeError
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_an_objective_that_is_missed_is_said(trace: Path):
    found = call("--trace", trace, "--json", "--slo-ttft-ms", 0.001)
    document = json.loads(found.stdout)
    assert document["recall"] == 0.0
    assert document["verdict"] == "objective missed"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [(("--out", "rows.xlsx"), "--out"), (("--router", "magic", "--replicas", "2"), "router")],
)
def test_wrong_wishes_are_named(trace: Path, arguments: tuple[str, ...], where: str):
    found = call("--trace", trace, *arguments)
    assert isinstance(found.exception, InputError)
    assert where in str(found.exception)


def drawn(*arguments: object):
    figures = ("--rate", 5, "--input-tokens", 300, "--output-tokens", 50, "--requests", 300)
    return call(*figures, *arguments)


def test_a_drawn_load_is_measured_after_its_warm_up(tmp_path: Path):
    document = json.loads(drawn("--json").stdout)
    assert document["n_requests"] == 300
    assert document["warmup"]["is_automatic"] is True
    assert {a["what"] for a in document["assumptions"]} >= {"arrivals", "input lengths"}
    fixed = json.loads(drawn("--json", "--warmup", "10").stdout)
    assert fixed["warmup"]["cut_s"] == 10.0
    assert fixed["n_measured"] < 300


def test_a_trace_is_measured_whole_unless_asked(trace: Path):
    document = json.loads(call("--trace", trace, "--json").stdout)
    assert document["warmup"]["cut_s"] == 0.0
    assert document["warmup"]["is_automatic"] is False
    assert document["n_measured"] == 3


@pytest.mark.parametrize(
    "moving",
    [
        ("--profile", ",".join(["1", "9"] * 12)), ("--growth", "0.1"),
        ("--fleet", "one.yaml"),
    ],
    ids=["day", "growth", "fleet"],
)  # fmt: skip
def test_what_has_no_steady_part_is_measured_whole(moving: tuple[str, str], tmp_path: Path):
    (tmp_path / "one.yaml").write_text("pools: [{name: a, replicas: 1}]\n")
    flag, value = moving
    given = (flag, tmp_path / value if flag == "--fleet" else value)
    document = json.loads(drawn("--json", *given).stdout)
    assert document["warmup"]["is_automatic"] is False
    assert document["n_measured"] == 300
    asked = json.loads(drawn("--json", *given, "--warmup", "auto").stdout)
    assert asked["warmup"]["is_automatic"] is True


@pytest.mark.parametrize("how", [(), ("--stream",)], ids=["memory", "stream"])
def test_a_warm_up_that_leaves_nothing_is_refused(how: tuple[str, ...]):
    found = drawn("--warmup", "1e6", *how)
    assert isinstance(found.exception, InputError)
    assert "leave no request to measure" in str(found.exception)


def test_percentiles_have_intervals_and_definitions():
    document = json.loads(drawn("--json").stdout)
    for measure in ("ttft_s", "tpot_s", "e2e_s", "wait_s"):
        figures = document[measure]
        assert figures["p50"] <= figures["p99"] <= figures["p999"] <= figures["max"]
        assert figures["intervals"].keys() == {"p50", "p90", "p95", "p99", "p999"}
    assert document["definitions"].keys() >= {"ttft", "tpot", "itl_mean", "precision", "recall"}
    assert document["power"]["energy_kwh"]["value"] > 0
    assert len(document["utilization"]["over_time"]["allocated"]) > 0


def test_overload_says_how_fast_the_queue_grows_and_what_would_hold_it():
    found = call(
        "--rate", 60, "--input-tokens", 800, "--output-tokens", 200, "--duration", "2m", "--json"
    )
    document = json.loads(found.stdout)
    assert document["verdict"] == "overloaded"
    assert document["backlog_growth_requests_per_s"] > 10
    assert document["smallest_fleet"]["replicas"] >= 2


def test_an_overloaded_stream_names_a_fleet_that_holds():
    load = ("--rate", 100, "--input-tokens", 800, "--output-tokens", 200, "--requests", 6000)
    streamed, kept = (json.loads(call(*load, "--json", *how).stdout) for how in (("--stream",), ()))
    assert streamed["verdict"] == kept["verdict"] == "overloaded"
    assert streamed["smallest_fleet"]["replicas"] == kept["smallest_fleet"]["replicas"] > 1


def test_a_stream_writes_what_memory_writes(trace: Path, tmp_path: Path):
    polars = pytest.importorskip("polars")
    kept, passed = tmp_path / "kept.parquet", tmp_path / "passed.parquet"
    assert call("--trace", trace, "--json", "--out", kept).exit_code == 0
    found = call("--trace", trace, "--json", "--out", passed, "--stream")
    assert found.exit_code == 0, found.output
    # A stream keeps no prefix cache: it says nothing of what was found there.
    both = [polars.read_parquet(path).drop("cached_tokens") for path in (kept, passed)]
    assert both[0].equals(both[1])
    assert json.loads(found.stdout)["n_completed"] == 3


def test_a_drawn_stream_is_answered_in_the_same_form():
    one, two = drawn("--json"), drawn("--json", "--stream")
    assert two.exit_code == 0, two.output
    a, b = json.loads(one.stdout), json.loads(two.stdout)
    assert a.keys() == b.keys()
    assert b["n_requests"] == 300


def test_charts_go_where_they_are_sent(tmp_path: Path):
    page, picture = tmp_path / "run.html", tmp_path / "run.png"
    found = drawn("--json", "--chart", "-", "--chart", page, "--chart", picture)
    assert found.exit_code == 0, found.output
    json.loads(found.stdout)  # charts for people go to stderr beside a document
    assert "GPU Utilization (%)" in found.stderr
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "GPU Utilization (%)" in drawn("--chart", "-").stdout


def test_a_curve_names_the_best_size():
    found = drawn("--json", "--sweep-replicas", "1,2", "--cost-waste", 2, "--cost-delay", 0.01,
                  "--workers", 1)  # fmt: skip
    document = json.loads(found.stdout)
    assert [point["replicas"] for point in document["points"]] == [1, 2]
    assert document["best_replicas"] in (1, 2)
    assert document["beta"] > 0


def test_same_seed_same_document_and_another_seed_another():
    def answer(seed: int) -> dict[str, object]:
        document = json.loads(drawn("--json", "--seed", seed).stdout)
        return {k: v for k, v in document.items() if "wall_s" not in k}

    assert answer(1) == answer(1)
    assert answer(1)["e2e_s"] != answer(2)["e2e_s"]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ((), "load"),
        (("--rate", "5", "--users", "3"), "load"),
        (("--rate", "nan", "--input-tokens", "5", "--output-tokens", "5"), "--rate"),
        (("--rate", "5"), "--input-tokens"),
        (("--rate", "5", "--duration", "soon"), "--duration"),
        (("--rate", "5", "--profile", "1,2,x"), "--profile"),
        (("--phases", "5 for 3"), "--phases"),
        (("--rate", "5", "--scale", "2"), "--scale"),
        (("--rate", "5", "--warmup", "-3"), "--warmup"),
        (("--rate", "5", "--chart", "run.pdf"), "--chart"),
        (("--rate", "5", "--out", "no/such/folder/rows.csv"), "rows.csv: cannot be written"),
        (("--scenario", "s.yaml", "--stream"), "--stream"),
    ],
)
def test_wrong_loads_are_named(arguments: tuple[str, ...], where: str):
    found = call(*arguments)
    assert isinstance(found.exception, InputError), found.output
    assert where in str(found.exception)


BAD_TRACES = {
    "no requests": ("", "holds no request|empty"),
    "negative times": ("-1.0,5,5\n-0.5,5,5\n", None),
    "not a number": ("nan,5,5\n1.0,nan,5\n2.0,5,5\n", None),
    "no tokens": ("0.0,0,5\n1.0,5,0\n", None),
    "unsorted": ("5.0,9,9\n1.0,9,9\n", None),
    "one request": ("0.0,9,9\n", None),
    "longer than any context": ("0.0,900000,5\n1.0,5,5\n", None),
}


@pytest.mark.parametrize("name", sorted(BAD_TRACES))
def test_odd_traces_are_an_error_or_a_defined_result(name: str, tmp_path: Path):
    rows, error = BAD_TRACES[name]
    path = tmp_path / "odd.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n" + rows)
    found = call("--trace", path, "--json")
    if error is not None:
        assert isinstance(found.exception, InputError)
        return
    if found.exit_code:
        assert isinstance(found.exception, InputError), found.output
        return
    document = json.loads(found.stdout)
    assert document["n_completed"] + document["n_refused"] == document["n_requests"]
    json.dumps(document, allow_nan=False)


def test_nothing_that_can_be_served_is_a_verdict(tmp_path: Path):
    path = tmp_path / "odd.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n0.0,0,5\n1.0,5,0\n")
    document = json.loads(call("--trace", path, "--json").stdout)
    assert document["verdict"] == "nothing served"
    assert document["ttft_s"] is None
    assert document["n_refused"] == 2


def test_single_gaps_are_told_when_asked():
    document = json.loads(drawn("--json", "--itl", "--length-distribution", "fixed").stdout)
    assert document["itl_s"]["n"] == 300 * 49
    assert document["itl_s"]["mean"] == pytest.approx(document["itl_mean_s"], rel=0.02)
    assert json.loads(drawn("--json").stdout)["itl_s"] is None
    found = drawn("--itl", "--stream")
    assert isinstance(found.exception, InputError)


def test_a_plan_names_fleet_and_load_itself(tmp_path: Path):
    beside = CliRunner().invoke(app, ["simulate", str(tmp_path / "plan.yaml"), "--on", "H100"])
    assert isinstance(beside.exception, InputError)
    assert "--on: conflicts with a plan file" in str(beside.exception)
    missing = CliRunner().invoke(app, ["simulate", "--model", "Llama-3.1-8B", "--rate", "1"])
    assert isinstance(missing.exception, InputError)
    assert "or give a plan file" in str(missing.exception)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenario = Path(__file__).parents[3] / "examples" / "chat.yaml"
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    made = CliRunner().invoke(app, ["plan", str(scenario), "--out", str(path)])
    assert made.exit_code == 0, made.output
    return path


def planned(*arguments: object):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def test_a_plan_file_is_simulated_with_nothing_typed_again(plan: Path, tmp_path: Path):
    out = tmp_path / "requests.csv"
    found = planned(plan, "--json", "--out", out, "--duration", "600s")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["n_requests"] == document["n_completed"]
    assert len(out.read_text().splitlines()) == document["n_requests"] + 1
    assert 0.01 < document["ttft_s"]["p95"] < 2.0


def test_a_table_and_a_chart_of_a_plan(plan: Path, tmp_path: Path):
    chart = tmp_path / "load.html"
    found = planned(plan, "--chart", chart, "--duration", "300s", "--seed", 3)
    assert found.exit_code == 0, found.output
    assert "TTFT" in found.stdout
    assert chart.exists()


def test_a_scenario_is_no_plan(tmp_path: Path):
    path = tmp_path / "scenario.yaml"
    path.write_text("version: 1\nname: x\n")
    found = planned(path)
    assert isinstance(found.exception, InputError)
    assert "is no plan" in str(found.exception)


def test_a_disk_that_fills_up_costs_the_file_not_the_result(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_):
        yield "request_id\n"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpuplan.api.requests_csv", full, raising=False)
    found = call("--trace", trace, "--json", "--out", tmp_path / "requests.csv")
    assert isinstance(found.exception, InputError)  # which ends with 2
    assert "No space left" in str(found.exception)
    assert json.loads(found.stdout)["n_completed"] == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["trace.csv"]
