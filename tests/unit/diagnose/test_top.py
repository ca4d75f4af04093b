"""Frames for a screen: what was known then, nothing stale, busiest first."""

import json

import pytest
from typer.testing import CliRunner

from fakes.telemetry import STEP_S, Scene
from gpuplan.cli.app import app
from gpuplan.diagnose.top import frame_at, moments, until


def scene() -> Scene:
    made = Scene(n_samples=20)
    made.device(0, gpu_util=0.2, sm=0.1, power_w=200.0)
    made.device(
        1, gpu_util=0.97, sm=0.8, tensor=0.5, power_w=650.0, held_bytes=40e9, free_bytes=40e9
    )
    return made.gauge("vllm:num_requests_waiting", 3.0).gauge("vllm:num_requests_running", 9.0)


def test_busiest_first_with_its_band():
    telemetry = scene().telemetry()
    frame = frame_at(telemetry, moments(telemetry, 5)[-1], "x")
    assert [device.name for device in frame.devices] == ["n1 gpu 1", "n1 gpu 0"]
    assert frame.devices[1].band == "waste"
    assert frame.devices[0].memory_frac == pytest.approx(0.5, rel=0.01)
    assert frame.engines[0].n_running == pytest.approx(9.0, rel=0.2)
    assert len(frame.devices[0].trail_frac) == 20


def test_stale_samples_are_missing():
    telemetry = scene().telemetry()
    last = moments(telemetry, 5)[-1]
    assert frame_at(telemetry, last + 10 * STEP_S, "x").devices[0].use_frac is None


def test_the_past_does_not_know_the_future():
    telemetry = scene().telemetry()
    early = moments(telemetry, 20)[3]
    assert all(series.at_s[-1] <= early for series in until(telemetry, early).series)


def test_one_screen_on_the_command_line(tmp_path):
    data = {"resultType": "matrix", "result": scene().result}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"status": "success", "data": data}))
    done = CliRunner().invoke(app, ["top", str(path), "--once", "--frames", "3"])
    assert done.exit_code == 0
    assert "n1 gpu 1" in done.output
    assert "mean utilization 60%, 2 devices" in done.output
