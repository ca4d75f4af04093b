"""A server that answers from a list: what it is asked, and what comes of each answer."""

import pytest

from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
from gpuplan.errors import CatalogError, InputError
from gpuplan.observe import prometheus_live

httpx = pytest.importorskip("httpx")


def live(monkeypatch, *answers, matcher: str = ""):
    """What the reader makes of a server that gives these answers in turn; and what it was asked."""
    left, asked = list(answers), []

    def handler(request):
        asked.append(request)
        return left.pop(0)

    def client(_, given: ServerAccess, _deadline: object):
        return httpx.Client(base_url=given.url, transport=httpx.MockTransport(handler))

    monkeypatch.setattr(prometheus_live, "_client", client)
    window = TimeWindow(begin_s=1.7e9, end_s=1.7e9 + 60, step_s=30.0)
    given = ServerAccess(url="http://server:9090", n_tries=2, timeout_s=0.001, matcher=matcher)
    return prometheus_live.read_prometheus(given, window), asked


NAMES = {"status": "success", "data": ["DCGM_FI_DEV_GPU_UTIL", "go_goroutines"]}
SERIES = {
    "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0"},
    "values": [[1.7e9, "25"], [1.7e9 + 30, "75"]],
}
MATRIX = {"status": "success", "data": {"resultType": "matrix", "result": [SERIES]}}


def test_only_known_names_are_asked_for(monkeypatch):
    found, asked = live(
        monkeypatch, httpx.Response(200, json=NAMES), httpx.Response(200, json=MATRIX),
        matcher='cluster="a"',
    )  # fmt: skip
    assert found.of("gpu_util_frac")[0].value.tolist() == [0.25, 0.75]
    assert asked[1].url.params["query"] == 'DCGM_FI_DEV_GPU_UTIL{cluster="a"}'
    assert (asked[1].url.params["step"], len(asked)) == ("30", 2)


def test_a_busy_server_is_asked_again_and_that_is_told(monkeypatch):
    found, asked = live(
        monkeypatch, httpx.Response(503), httpx.Response(200, json=NAMES),
        httpx.Response(200, json=MATRIX),
    )  # fmt: skip
    assert len(asked) == 3
    assert [quirk.what for quirk in found.quirks] == ["the server had to be asked again"]


@pytest.mark.parametrize(
    ("answers", "error", "words"),
    [
        ([httpx.Response(503), httpx.Response(429)], CatalogError, "status 429"),
        ([httpx.Response(401)], InputError, "refused with status 401"),
        ([httpx.Response(200, text="<html>"), httpx.Response(200, text="x")], CatalogError, "JSON"),
        ([httpx.Response(422, json={"error": "too long"})], InputError, "too long"),
    ],
    ids=["busy", "refused", "no JSON", "bad query"],
)
def test_what_a_server_refuses_is_an_error(monkeypatch, answers, error, words):
    with pytest.raises(error, match=words):
        live(monkeypatch, *answers)
