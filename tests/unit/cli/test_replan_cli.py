"""`gpuplan replan` from the command line: exit code 6 beyond the tolerance, 0 within it."""

import json

import pytest
from typer.testing import CliRunner

from fakes.telemetry import Scene
from gpuplan.cli.app import app
from gpuplan.errors import DriftError

SCENARIO = """
version: 1
name: small chat
workloads:
  - name: chat
    kind: online_inference
    model: meta-llama/Llama-3.1-8B-Instruct
    demand: {requests_per_s: 4}
    request: {input_tokens: 1000, output_tokens: 200}
    slo: {ttft_p95_ms: 2000, tpot_p95_ms: 60}
prices:
  offers:
    - {accelerator: L40S, usd_per_accelerator_h: 1.60}
policy: {accelerators: {allowed: [L40S]}}
"""
UPPER_S = (0.01, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A plan in production, beside telemetry of its service as planned and twice too slow."""
    path = tmp_path_factory.mktemp("replan")
    (path / "chat.yaml").write_text(SCENARIO)
    plan = ["plan", str(path / "chat.yaml"), "--samples", "0", "--json"]
    done = CliRunner().invoke(app, [*plan, "--out", str(path / "plan.yaml")])
    assert done.exit_code == 0, done.output
    n_replicas = json.loads(done.stdout)["plan"]["pools"][0]["n_replicas"]
    for name, ttft_s in (("planned", 0.1), ("slow", 5.0)):
        data = {"resultType": "matrix", "result": served(n_replicas, ttft_s).result}
        text = json.dumps({"status": "success", "data": data})
        (path / f"{name}.json").write_text(text)
    return path


def served(n_replicas: int, ttft_s: float) -> Scene:
    scene, rate = Scene(n_samples=120), 4.0 / n_replicas
    name = "vllm:time_to_first_token_seconds_bucket"
    for k in range(n_replicas):
        labels = {"model_name": "m", "instance": f"r{k}"}
        scene.counter("vllm:request_success_total", rate, **labels)
        scene.gauge("vllm:num_requests_running", 5.0, **labels)
        for upper_s in UPPER_S:
            scene.counter(name, rate * (upper_s >= ttft_s), le=str(upper_s), **labels)
        scene.counter(name, rate, le="+Inf", **labels)
    return scene


def replan(folder, name: str, *arguments: str):
    files = [str(folder / "plan.yaml"), str(folder / name)]
    return CliRunner().invoke(app, ["replan", *files, "--json", *arguments])


def test_within_the_tolerance_it_ends_well(folder):
    done = replan(folder, "planned.json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["drifted"] is False


def test_drift_is_named_and_the_document_still_printed(folder, tmp_path):
    done = replan(folder, "slow.json", "--out", str(tmp_path / "new.yaml"))
    assert isinstance(done.exception, DriftError)
    assert done.exception.exit_code == 6
    assert any(problem.where.startswith("ttft") for problem in done.exception.problems)
    assert json.loads(done.stdout)["drifted"] is True
    assert (tmp_path / "new.yaml").exists()
