"""Rules and dashboards: Prometheus itself reads them, limits are the plan's."""

import json
import shutil
import subprocess

import pytest
import yaml

from fakes.deployed import deployed, deployed_pool, promise, served_model
from gpuplan.render.monitoring.grafana import grafana_files
from gpuplan.render.monitoring.prometheus import prometheus_files, quantile_of


def rules(one):
    (file,) = prometheus_files(deployed(one))
    (group,) = yaml.safe_load(file.content)["groups"]
    return file, group["rules"]


def test_every_promise_is_recorded_and_guarded():
    _, found = rules(deployed_pool())
    records = {each["record"] for each in found if "record" in each}
    assert {"gpuplan:chat:ttft_seconds:p95", "gpuplan:chat:tpot_seconds:p95"} <= records
    alerts = {each["alert"]: each["expr"] for each in found if "alert" in each}
    assert alerts["chat-ttft-slo"] == "gpuplan:chat:ttft_seconds:p95 > 2"
    assert alerts["chat-tpot-slo"] == "gpuplan:chat:tpot_seconds:p95 > 0.04"
    assert alerts["chat-past-planned-peak"].endswith("> 3.4")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_prometheus_reads_the_rules(tmp_path, engine):
    file, _ = rules(deployed_pool(served=served_model(engine, "1.0")))
    path = tmp_path / file.path
    path.write_bytes(file.content)
    checked = subprocess.run(
        ["promtool", "check", "rules", path], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("ttft p95", ("ttft", 0.95)),
        ("tpot p99", ("tpot", 0.99)),
        ("deadline", None),
        ("e2e p95", None),
    ],
)
def test_only_what_engines_publish_is_asked_for(what, found):
    assert quantile_of(promise(what)) == found


def test_the_dashboard_draws_each_limit_beside_its_series():
    (file,) = grafana_files(deployed(deployed_pool()))
    found = json.loads(file.content)
    panels = {panel["title"]: panel for panel in found["panels"]}
    ttft = panels["chat: ttft p95"]["targets"]
    assert [each["expr"] for each in ttft] == ["gpuplan:chat:ttft_seconds:p95", "2"]
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    places = {(p["gridPos"]["x"], p["gridPos"]["y"]) for p in found["panels"]}
    assert len(places) == len(found["panels"])
