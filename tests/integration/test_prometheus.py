"""Reading a live Prometheus: units, counters, paging, death and return."""

import threading
import time

import pytest

pytest.importorskip("httpx")

from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
from gpuplan.errors import CatalogError, InputError
from gpuplan.observe import prometheus_live
from gpuplan.observe.prometheus_live import read_prometheus
from integration.prometheus_server import Exporter, Prometheus


def metrics(n: int) -> str:
    """Two devices, one in each generation of names; an engine that writes 10 tokens a scrape."""
    return (
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",Hostname="n1"} 90\n'
        'DCGM_FI_DEV_GPU_UTIL_RATIO{gpu="1",UUID="GPU-1",hostname="n1"} 0.5\n'
        f"vllm:generation_tokens_total {10 * n}\n"
        f'vllm:time_to_first_token_seconds_bucket{{le="0.1"}} {n}\n'
        f'vllm:time_to_first_token_seconds_bucket{{le="+Inf"}} {2 * n}\n'
        f"vllm:time_to_first_token_seconds_sum {n}\n"
        "go_goroutines 7\n"
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    exporter = Exporter(metrics)
    prometheus = Prometheus(tmp_path_factory.mktemp("prometheus"), exporter.port)
    prometheus.start()
    prometheus.wait(lambda: prometheus.has("vllm:generation_tokens_total", 12))
    yield prometheus
    prometheus.kill()
    exporter.close()


def last_seconds(step_s: float = 1.0) -> TimeWindow:
    now_s = time.time()
    return TimeWindow(begin_s=now_s - 60.0, end_s=now_s, step_s=step_s)


def test_live_metrics_are_read(server):
    telemetry = read_prometheus(ServerAccess(url=server.url), last_seconds())
    util = {
        telemetry.subjects[series.subject].device: series.mean()
        for series in telemetry.of("gpu_util_frac")
    }
    assert util == pytest.approx({"0": 0.9, "1": 0.5})
    (tokens,) = telemetry.of("output_tokens_per_s")
    # Ten tokens a scrape, four scrapes a second; the machine may be late now and then.
    assert 10.0 < tokens.mean() < 80.0
    (ttft,) = telemetry.histograms
    assert ttft.count.sum(axis=0)[0] == pytest.approx(ttft.count.sum() / 2, rel=0.1)
    assert telemetry.is_dated


def test_paging_gives_the_same(server, monkeypatch):
    window = last_seconds()
    whole = read_prometheus(ServerAccess(url=server.url), window)
    monkeypatch.setattr(prometheus_live, "MAX_POINTS", 7)
    parts = read_prometheus(ServerAccess(url=server.url), window)
    assert {(s.metric, tuple(s.at_s), tuple(s.value)) for s in whole.series} == {
        (s.metric, tuple(s.at_s), tuple(s.value)) for s in parts.series
    }


def test_matcher_narrows(server):
    access = ServerAccess(url=server.url, matcher='UUID="GPU-1"')
    telemetry = read_prometheus(access, last_seconds())
    assert [subject.uuid for subject in telemetry.subjects] == ["GPU-1"]


def test_a_bad_matcher_is_told_in_the_servers_words(server):
    with pytest.raises(InputError, match="parse error"):
        read_prometheus(ServerAccess(url=server.url, matcher="=="), last_seconds())


def test_death_and_return_are_survived(server):
    server.kill()
    back = threading.Timer(1.0, server.start)
    back.start()
    try:
        access = ServerAccess(url=server.url, n_tries=8, timeout_s=5.0)
        telemetry = read_prometheus(access, last_seconds())
    finally:
        back.join()
    assert telemetry.of("gpu_util_frac")
    assert "the server had to be asked again" in {quirk.what for quirk in telemetry.quirks}


def test_a_dead_server_is_told():
    with pytest.raises(CatalogError, match="is it running"):
        read_prometheus(
            ServerAccess(url="http://127.0.0.1:9", n_tries=2, timeout_s=0.5), last_seconds()
        )


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host", "nonsense"])
def test_only_web_addresses_are_taken(url):
    with pytest.raises(InputError, match="http"):
        read_prometheus(ServerAccess(url=url), last_seconds())
