"""`simulate` from the command line: what is written where, and what is refused."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from gpuplan.cli.simulate import simulate
from gpuplan.errors import InputError

TRACE = "arrival_s,input_tokens,output_tokens\n0.0,100,20\n0.5,200,1\n0.75,300,30\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return path


def call(*arguments: object):
    app = typer.Typer()
    app.command()(simulate)
    given = ["--model", "Llama-3.1-8B", "--on", "H100", *map(str, arguments)]
    return CliRunner().invoke(app, given)


def test_json_goes_to_stdout_and_every_request_to_its_file(trace: Path, tmp_path: Path):
    out = tmp_path / "requests.csv"
    found = call("--trace", trace, "--json", "--out", out, "--max-num-seqs", 4)
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert document["n_requests"] == document["n_completed"] == 3
    assert document["max_num_seqs"] == 4
    lines = out.read_text().splitlines()
    assert lines[0] == "request_id,arrival_s,ttft_s,tpot_s,e2e_s,n_preemptions"
    assert [line.split(",")[3] == "" for line in lines[1:]] == [False, True, False]


def test_parquet_holds_the_same(trace: Path, tmp_path: Path):
    polars = pytest.importorskip("polars")
    out = tmp_path / "requests.parquet"
    assert call("--trace", trace, "--json", "--out", out).exit_code == 0
    table = polars.read_parquet(out)
    assert table.columns == [
        "request_id", "arrival_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions"
    ]  # fmt: skip
    assert table["tpot_s"].null_count() == 1


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
