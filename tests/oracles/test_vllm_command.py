"""Streams that vLLM's own scheduler served, typed as a command: options reach every regime."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gpuplan.cli.app import app
from oracles.recorded import DRAFTED
from oracles.vllm.runs import text_of

KEPT = json.loads(gzip.decompress(DRAFTED.read_bytes()))
OUT_S = 1e-8  # a file has arrivals and times apart, to a picosecond


def written(case: dict[str, Any], path: Path) -> Path:
    """The stream as a trace: lengths, priorities, and text by block hashes."""
    text = text_of(case) if case["limits"]["caches_prefixes"] else None
    lines = []
    for i, one in enumerate(case["requests"]):
        row = {"arrival_s": one["arrive_s"], "input_tokens": one["n_in"]}
        row |= {"output_tokens": one["n_out"], "priority": one["priority"]}
        if "n_max" in one and not case["ends_by_itself"]:
            row["max_tokens"] = one["n_max"]
        if text is not None:
            row["hash_ids"] = text.block[text.first[i] : text.first[i + 1]].tolist()
            row["block_size"] = case["limits"]["block_tokens"]
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines))
    return path


def typed(case: dict[str, Any], version: str) -> list[str]:
    """Limits and rules of a case as options."""
    limits, steps = case["limits"], ",".join(f"{k}={v}" for k, v in case["cost"].items())
    groups = [kind if not n else f"{kind}:{n}" for kind, n in limits.get("groups", ())]
    given = {
        "--step-time": steps, "--kv-blocks": limits["n_blocks"],
        "--block-size": limits["block_tokens"], "--kv-groups": ",".join(groups),
        "--max-num-seqs": limits["max_sequences"], "--engine-version": version,
        "--max-num-batched-tokens": limits["max_batch_tokens"],
        "--scheduling-policy": limits["scheduling"], "--watermark": limits.get("watermark"),
        "--long-prefill-token-threshold": limits["long_prefill_tokens"], "--pp": limits.get("pp"),
    }  # fmt: skip
    flags = {
        "prefix-caching": limits["caches_prefixes"], "async-scheduling": limits["is_ahead"],
        "ignore-eos": not case["ends_by_itself"], "reserve-full-isl": limits["reserves_prompt"],
        "enable-chunked-prefill": limits.get("chunks", True),
    }  # fmt: skip
    if version == "0.15.1":
        del flags["reserve-full-isl"]  # a rule that it does not have
    options = [word for name, value in given.items() if value for word in (name, str(value))]
    return options + [f"--{name}" if is_on else f"--no-{name}" for name, is_on in flags.items()]


@pytest.mark.parametrize("version", ["0.32.0", "0.15.1"])
@pytest.mark.parametrize("name", ["hybrid 1", "hybrid 3", "hybrid 4", "mix 54", "mix 107"])
def test_a_command_serves_the_stream_as_the_engine_does(name: str, version: str, tmp_path: Path):
    case, answer = KEPT[name]["case"], KEPT[name]["answers"][version]
    out = tmp_path / "times.csv"
    command = ["simulate", "--model", "Llama-3.1-8B", "--on", "H100", "--warmup", "0"]
    command += ["--trace", str(written(case, tmp_path / "stream.jsonl")), "--out", str(out)]
    found = CliRunner().invoke(app, [*command, *typed(case, version)])
    assert found.exit_code in (0, 3, 4), found.output
    rows = list(csv.DictReader(out.read_text().splitlines()))
    at = [float(row["arrival_s"]) for row in rows]
    for column, told in (("ttft_s", "first_s"), ("e2e_s", "end_s")):
        ours = [t + float(row[column]) for t, row in zip(at, rows, strict=True)]
        assert ours == pytest.approx(answer[told], rel=0, abs=OUT_S)
    assert [int(row["n_preemptions"]) for row in rows] == answer["n_preemptions"]
