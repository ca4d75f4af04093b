"""A watch over a real Prometheus: what it publishes, outages, restarts, manifests."""

import json
import shutil
import subprocess
import threading
import time

import pytest
import yaml

httpx = pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families  # noqa: E402

from gpuplan import api  # noqa: E402
from gpuplan.domain.telemetry.monitoring import (  # noqa: E402
    ServerAccess,
    WatchPoint,
    WatchRequest,
)
from gpuplan.errors import InputError  # noqa: E402
from gpuplan.server.state import read_state, write_state  # noqa: E402
from gpuplan.server.watch import STALE_LOOKS, Watch, serve  # noqa: E402
from integration.prometheus_server import Exporter, Prometheus  # noqa: E402


def metrics(n: int) -> str:
    """Two engines: caches at 96 and 40 %, requests wait at the first."""
    lines = []
    for k, (cache, waiting, running) in enumerate([(0.96, 30, 60), (0.40, 0, 30)]):
        labels = f'{{model_name="m",instance_name="e{k}",engine="{k}"}}'
        lines += [
            f"vllm:kv_cache_usage_perc{labels} {cache}",
            f"vllm:num_requests_waiting{labels} {waiting}",
            f"vllm:num_requests_running{labels} {running}",
            f"vllm:num_preemptions_total{labels} {n * (1 - k)}",
        ]
    lines.append('DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="G",Hostname="n1",modelName="NVIDIA L4"} 97')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    exporter = Exporter(metrics)
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), exporter.port)
    prometheus.start()
    prometheus.wait(lambda: prometheus.has("vllm:num_preemptions_total", 12))
    yield prometheus
    prometheus.kill()
    exporter.close()


def request(server, **changes) -> WatchRequest:
    access = ServerAccess(url=server.url, n_tries=1, timeout_s=5.0)
    return WatchRequest(access=access, look_back_s=60.0, step_s=1.0, **changes)


def published(watch: Watch) -> dict[tuple[str, str], float]:
    found = {}
    for family in text_string_to_metric_families(watch.metrics().decode()):
        for sample in family.samples:
            found[sample.name, ",".join(sorted(sample.labels.values()))] = sample.value
    return found


def test_what_a_look_publishes(server):
    watch = Watch(request(server))
    assert watch.look()
    found = published(watch)
    assert found["gpuplan_up", ""] == 1.0
    assert found["gpuplan_replicas", ""] == 2.0
    # The fullest cache asks for 0.96 / 0.80, the queue for 120 / 90 of what runs: three replicas.
    assert found["gpuplan_recommended_replicas", ""] == 3.0
    assert found["gpuplan_utilization_ratio", "GPU utilization,mean"] == pytest.approx(0.97)
    causes = {labels for name, labels in found if name == "gpuplan_verdict_confidence_ratio"}
    assert "kv_thrash,slow" in causes
    assert watch.health()[0] == 200


def test_promtool_finds_nothing_to_blame(server):
    """Names, types and base units, before the first look and after it."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    watch = Watch(request(server))
    for _ in range(2):
        told = subprocess.run(
            [promtool, "check", "metrics"], input=watch.metrics(), capture_output=True, check=False
        )
        assert (told.returncode, told.stderr.decode()) == (0, "")
        watch.look()


def test_endpoints(server):
    watch = Watch(request(server))
    watch.look()
    http = serve(watch, host="127.0.0.1", port=0)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        assert "gpuplan_recommended_replicas 3.0" in httpx.get(f"{base}/metrics").text
        assert httpx.get(f"{base}/healthz").json()["ok"] is True
        assert httpx.get(f"{base}/").status_code == 404
    finally:
        http.shutdown()
        http.server_close()


def test_an_outage_keeps_the_last_reading(server):
    watch = Watch(request(server))
    watch.look()
    server.kill()
    try:
        for _ in range(STALE_LOOKS):
            assert not watch.look()
        found = published(watch)
        assert found["gpuplan_up", ""] == 0.0
        assert found["gpuplan_recommended_replicas", ""] == 3.0
        assert found["gpuplan_look_failures_total", ""] == STALE_LOOKS
        assert watch.health()[0] == 503
    finally:
        server.start()
    server.wait(watch.look)
    assert published(watch)["gpuplan_up", ""] == 1.0
    assert watch.health()[0] == 200


def test_the_past_outlives_a_restart(server, tmp_path):
    state = tmp_path / "state.json"
    first = Watch(request(server), state=state)
    first.look()
    assert state.exists()
    again = Watch(request(server), state=state)
    assert again.points == first.points
    assert len(again.points) == 1


def test_hours_are_kept_once_and_bounded(server):
    clock = [time.time()]
    watch = Watch(request(server), clock=lambda: clock[0])
    watch.look()
    watch.look()
    assert len(watch.points) == 1


def test_a_spoiled_state_is_set_aside(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{"version": 1, "points": [[1,')
    points, trouble = read_state(path)
    assert points == ()
    assert "spoiled" in trouble
    assert (tmp_path / "state.json.spoiled").read_text().startswith('{"version"')
    write_state(path, [WatchPoint(at_s=3600.0, n_demand=2.0, metric="requests_per_s")])
    assert json.loads(path.read_text())["points"] == [[3600.0, 2.0, "requests_per_s"]]


@pytest.mark.parametrize(
    ("kind", "name"), [("keda", "ScaledObject"), ("hpa", "HorizontalPodAutoscaler")]
)
def test_manifests_follow_the_metric(kind, name):
    document = yaml.safe_load(api.autoscaler_manifest(kind, target="chat", server="http://p:9090"))
    assert document["kind"] == name
    assert "gpuplan_recommended_replicas" in json.dumps(document)
    with pytest.raises(InputError, match="keda or hpa"):
        api.autoscaler_manifest("nomad", target="chat", server="")
