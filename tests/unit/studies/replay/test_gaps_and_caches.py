"""A prefix cache that finds nothing: single gaps are told, a stream speaks of it once."""

import json
from pathlib import Path

from typer.testing import CliRunner

from gpuplan.cli.app import app

LOAD = ("--rate", "5", "--input-tokens", "300", "--output-tokens", "20", "--requests", "40")


def simulated(*arguments: str) -> dict:
    command = ["simulate", "--model", "Llama-3.1-8B", "--on", "H100", "--json", *arguments]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_gaps_are_the_same_with_an_idle_cache_and_without_one():
    idle = simulated(*LOAD, "--itl")
    without = simulated(*LOAD, "--itl", "--no-prefix-caching")
    assert idle["itl_s"] == without["itl_s"]
    assert idle["prompt_tokens_found"] == 0


def test_a_stream_says_once_whether_a_cache_is_kept(tmp_path: Path):
    path = tmp_path / "trace.jsonl"
    row = {"input_length": 1024, "output_length": 8, "hash_ids": [0, 1]}
    lines = [json.dumps({"timestamp": 100 * k, **row}) for k in range(5)]
    path.write_text("\n".join(lines) + "\n")
    found = simulated("--trace", str(path), "--stream")
    told = [each["value"] for each in found["assumptions"] if each["what"] == "prefix caching"]
    assert told == ["off"]
