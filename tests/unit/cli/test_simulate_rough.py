"""`simulate` with bad or odd input: a clear error or a defined result, never a hang."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import InputError

HEAD = "arrived_at,num_prefill_tokens,num_decode_tokens\n"
COSTS = ("--cost-waste", "1", "--cost-delay", "1")
ONE_POOL = "pools: [{name: a, replicas: 1}]\n"
ROWS = "0,100,10\n1,100,10\n3,50,5\n"


def call(*arguments: object):
    given = ["simulate", "--model", "Llama-3.1-8B", "--on", "H100", *map(str, arguments)]
    return CliRunner().invoke(app, given)


def traced(tmp_path: Path, rows: str, *arguments: object, fleet: str | None = None):
    path = tmp_path / "trace.csv"
    path.write_text(HEAD + rows)
    if fleet is not None:
        (tmp_path / "fleet.yaml").write_text(fleet)
        arguments = (*arguments, "--fleet", tmp_path / "fleet.yaml")
    return call("--trace", path, "--json", *arguments)


@pytest.mark.parametrize("fleet", [None, ONE_POOL], ids=["equal", "living"])
@pytest.mark.parametrize(
    ("rows", "n_requests", "n_completed", "told"),
    [
        ("0,100,10\n", 1, 1, "times are in seconds"),
        ("0,100,10\nnan,100,10\n1,100,5\n", 2, 2, "line 3: time is nan"),
        ("5,100,10\n1,100,10\n3,50,5\n", 3, 3, "rows out of order: 1"),
        ("-5,100,10\n1,100,10\n3,50,5\n", 3, 3, "at -5.000000 s"),
        ("0,0,10\n1,100,0\n3,50,5\n", 3, 1, "have 0 tokens"),
        ("0,200000,10\n1,100,10\n3,50,5\n", 3, 2, "times are in seconds"),
        ("0,-4,10\n1,100,10\n2,10,inf\n3,50,5\n", 2, 2, "2 bad lines excluded"),
    ],
    ids=["one", "nan", "unsorted", "negative time", "no tokens", "too long", "bad tokens"],
)
def test_odd_traces_have_a_defined_result(
    tmp_path: Path, rows: str, n_requests: int, n_completed: int, told: str, fleet: str | None
):
    found = traced(tmp_path, rows, fleet=fleet)
    assert found.exit_code == 0, found.output
    assert told in found.stderr
    document = json.loads(found.stdout)
    assert (document["n_requests"], document["n_completed"]) == (n_requests, n_completed)
    verdict = "within limits" if n_completed == n_requests else "not all served"
    assert document["verdict"] == verdict


@pytest.mark.parametrize("fleet", [None, ONE_POOL], ids=["equal", "living"])
def test_nothing_that_can_be_served(tmp_path: Path, fleet: str | None):
    found = traced(tmp_path, "0,200000,10\n", fleet=fleet)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["verdict"] == "nothing served"


@pytest.mark.parametrize(
    ("rows", "fix"),
    [
        ("", "at least one request"),
        ("1e300,10,10\n1,100,10\n2,4,5\n", "at most 40 days"),
    ],
    ids=["none", "for ever"],
)
def test_traces_that_cannot_be_run_are_refused(tmp_path: Path, rows: str, fix: str):
    found = traced(tmp_path, rows)
    assert isinstance(found.exception, InputError)
    assert fix in str(found.exception)


def test_ten_pools_of_zero_are_refused(tmp_path: Path):
    pools = "".join(f"  - {{name: p{at}, replicas: 0}}\n" for at in range(10))
    found = traced(tmp_path, ROWS, fleet="pools:\n" + pools)
    assert isinstance(found.exception, InputError)
    assert "no replica" in str(found.exception)


def test_ten_pools_that_start_from_zero_serve(tmp_path: Path):
    """A queue scaler that would let eight wait still starts for one."""
    one = "replicas: 0, min_replicas: 0, max_replicas: 1"
    scaler = "autoscaling: {metric: queue, target_requests: 8}"
    start = "start: {boot_s: 20, load_s: 10}"
    pools = "".join(f"  - {{name: p{at}, {one}, {scaler}, {start}}}\n" for at in range(10))
    found = traced(tmp_path, ROWS, fleet="pools:\n" + pools)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["n_completed"] == 3
    # Looked at every 15 s, then 30 s of start.
    assert 40.0 < document["fleet"]["timeline"]["at_s"][-1] < 60.0


def test_an_overloaded_living_fleet_names_one_that_holds(tmp_path: Path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(ONE_POOL)
    load = ("--rate", 60, "--input-tokens", 1000, "--output-tokens", 200, "--duration", "2m")
    found = call(*load, "--fleet", fleet, "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["verdict"] == "overloaded"
    assert document["backlog_growth_requests_per_s"] > 10
    assert document["smallest_fleet"]["replicas"] == 3


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (("--turns", "4"), "--turns"),
        (("--requests", "4"), "--requests"),
        (("--duration", "10m"), "--duration"),
        (("--where", "run"), "--where"),
        (("--columns", "input"), "columns"),
    ],
    ids=["turns", "requests", "duration", "where", "columns"],
)
def test_options_without_effect_or_sense_are_refused(
    tmp_path: Path, typed: tuple[str, ...], named: str
):
    found = traced(tmp_path, ROWS, *typed)
    assert isinstance(found.exception, InputError)
    assert named in str(found.exception)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (("--bin-s", "inf"), "--bin-s"),
        (("--replicas", "100000000"), "--replicas"),
        (("--router", "foo"), "--router"),
        (("--turns", "1e9"), "--turns"),
        (("--cost-waste", "1"), "--cost-waste"),
        (("--cost-delay", "1"), "--cost-delay"),
        (("--workers", "2"), "--workers"),
        (("--months", "12"), "--months"),
        (("--slo-percentile", "95"), "--slo-percentile"),
        (("--draw-acceptance",), "--draw-acceptance"),
        (("--loras", "4"), "--loras"),
        (("--max-loras", "4"), "--max-loras"),
        (("--workload", "chat"), "--workload"),
        (("--sweep-replicas", "1..100000000", *COSTS), "--sweep-replicas"),
        (("--sweep-replicas", "1..3", "--out", "x.csv", *COSTS), "--out"),
        (("--sweep-replicas", "1..3", "--replicas", "2", *COSTS), "--replicas"),
        (("--sweep-replicas", "1..3", "--stream", *COSTS), "--stream"),
        (("--stream", "--replicas", "2", "--router", "session"), "--router"),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else "",
)
def test_figures_that_no_run_could_have_are_refused_at_once(typed: tuple[str, ...], named: str):
    found = call("--rate", 5, "--input-tokens", 300, "--output-tokens", 50, *typed)
    assert isinstance(found.exception, InputError), found.output
    assert f" {named}: " in str(found.exception)


@pytest.mark.parametrize(
    ("typed", "named"),
    [
        (("--users", "1000000000"), "--users"),
        (("--users", "5", "--think-time-s", "1e12"), "--think-time-s"),
        (("--users", "5", "--sweep-replicas", "1..3", *COSTS), "--users"),
        (("--phases", "5x0,3x10"), "--phases"),
        (("--phases", "-5x1,9x10"), "--phases"),
        (("--phases", "0x1,0x10"), "--phases"),
    ],
    ids=["users", "think", "curve", "no stay", "no rate", "silent"],
)
def test_loops_and_phases_that_could_not_be_are_refused(typed: tuple[str, ...], named: str):
    found = call("--input-tokens", 300, "--output-tokens", 50, *typed)
    assert isinstance(found.exception, InputError), found.output
    assert f" {named}: " in str(found.exception)


@pytest.mark.parametrize("how", [(), ("--stream",)], ids=["memory", "stream"])
def test_bad_lines_are_counted_and_shown_however_a_file_is_read(
    tmp_path: Path, how: tuple[str, ...]
):
    found = traced(tmp_path, "0,100,10\n1,x,10\n2,100,10\n3,100,5\n", *how)
    assert found.exit_code == 0, found.output
    assert "trace.csv: 1 bad lines excluded" in found.stderr
    assert "line 3: input tokens is x" in found.stderr
    document = json.loads(found.stdout)
    assert document["n_requests"] == 3
    told = {a["what"]: a["value"] for a in document["assumptions"]}
    assert told["bad lines"] == "1 excluded"


@pytest.mark.parametrize("how", [(), ("--stream",)], ids=["memory", "stream"])
def test_a_file_of_bad_lines_is_refused(tmp_path: Path, how: tuple[str, ...]):
    found = traced(tmp_path, "0,100,10\n1,x,10\n2,y,10\n", *how)
    assert isinstance(found.exception, InputError)
    assert "2 lines are bad, 1 are good" in str(found.exception)


def test_binary_data_is_named_before_its_columns_are(tmp_path: Path):
    path = tmp_path / "noise.csv"
    path.write_bytes(bytes(range(1, 200)) * 3 + b"\n\x00\x01")
    found = call("--trace", path)
    assert "holds binary data" in str(found.exception)


def test_a_stream_of_prompts_with_text_says_that_it_keeps_none(tmp_path: Path):
    path = tmp_path / "trace.jsonl"
    rows = (
        {"timestamp": 100 * k, "input_length": 1024, "output_length": 8, "hash_ids": [0, k + 1]}
        for k in range(20)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    kept = json.loads(call("--trace", path, "--json").stdout)
    streamed = json.loads(call("--trace", path, "--json", "--stream").stdout)
    told = [{a["what"]: a["value"] for a in run["assumptions"]} for run in (kept, streamed)]
    assert [assumed["prefix caching"] for assumed in told] == ["on", "off"]
    assert kept["prompt_tokens_found"] == 19 * 512
    assert streamed["prompt_tokens_found"] == 0


def test_gaps_behind_a_router_that_knows_sessions_are_refused():
    load = ("--rate", 5, "--input-tokens", 300, "--output-tokens", 50, "--requests", 40)
    found = call(*load, "--replicas", 2, "--router", "session", "--itl")
    assert "--itl: with router session" in str(found.exception)


def test_columns_and_rows_of_a_plain_file(tmp_path: Path):
    path = tmp_path / "log.csv"
    path.write_text("run,when,q,a\nx,0,100,10\ny,5,100,10\nx,1000,50,5\n")
    columns = "arrive=when,input=q,output=a,unit=ms"
    found = call("--trace", path, "--columns", columns, "--where", "run=x", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["n_requests"] == 2


def test_users_who_talk_on_find_what_was_said(tmp_path: Path):
    load = ("--users", 4, "--turns", 5, "--input-tokens", 100, "--output-tokens", 60, "--requests")
    found = call(*load, 80, "--json")
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["prompt_tokens_found"] > 0.4 * document["prompt_tokens_looked_up"] > 0
