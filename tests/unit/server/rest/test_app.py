"""The verbs over HTTP: asked, awaited, followed, cancelled; one shape of errors."""

import base64
import json
import time

import pytest
from fastapi.testclient import TestClient

from gpuplan import api
from gpuplan.server.rest.access import Access, read_tokens
from gpuplan.server.rest.serve import ServeOptions, application

FIT = {"model": "Llama-3.1-8B", "on": "H100"}


def options(path, limit_s=120.0):
    return ServeOptions("127.0.0.1", 8642, path, None, 1, limit_s)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    app = application(options(tmp_path_factory.mktemp("jobs") / "jobs.sqlite"), Access())
    with TestClient(app, base_url="http://localhost") as found:
        yield found


def done(client, verb, body, **params):
    found = client.post(f"/v1/{verb}", json=body, params={"wait": 120, **params})
    assert found.status_code == 200, found.text
    assert found.json()["state"] == "done", found.text
    return found.json()


def test_an_answer_is_that_of_the_verb(client):
    found = done(client, "fit", FIT)["result"]
    assert found == json.loads(json.dumps(api.fit("Llama-3.1-8B", "H100").to_dict()))


def test_the_same_question_is_answered_from_the_store(client):
    first, again = done(client, "fit", FIT), done(client, "fit", FIT)
    assert first == again


def test_a_job_can_be_read_again(client):
    job = done(client, "catalog", {"what": "accelerators"})
    assert client.get(f"/v1/jobs/{job['id']}").json() == job
    listed = client.get("/v1/jobs", params={"limit": 1}).json()
    assert listed["jobs"][0]["id"] == job["id"]
    assert listed["jobs"][0]["result"] is None


def test_events_end_with_the_job(client):
    job = done(client, "fit", FIT)
    text = client.get(f"/v1/jobs/{job['id']}/events").text
    assert text.startswith("event: done\n")


def test_errors_say_where_what_and_how(client):
    found = client.post("/v1/fit", json={**FIT, "on": "H1000"}, params={"wait": 60}).json()
    assert found["state"] == "failed"
    assert found["error"]["code"] == "input"
    assert "H1000" in found["error"]["message"]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("fit", {}),
        ("fit", {**FIT, "colour": "red"}),
        ("fit", {**FIT, "tp": 0}),
        ("fit", {**FIT, "tp": "two"}),
        ("simulate", {**FIT, "requests_per_s": 1e9}),
        ("simulate", {**FIT, "requests_per_s": 100, "duration_s": 7 * 86400}),
        ("plan", {"words": "x" * 5000}),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(client, verb, body):
    found = client.post(f"/v1/{verb}", json=body)
    assert found.status_code == 422
    assert found.json()["error"]["problems"][0]["where"].startswith("body")


@pytest.mark.parametrize("name", ["/etc/passwd", "../config.json", "~/x", "http://x/config.json"])
def test_nothing_that_a_request_names_is_opened(client, name):
    found = client.post("/v1/fit", json={**FIT, "model": name})
    assert found.status_code == 422
    assert "names a file or an address" in found.json()["error"]["message"]


def test_a_trace_of_a_scenario_is_not_opened(client):
    scenario = {"workloads": [{"demand": {"trace": "/etc/passwd"}}]}
    found = client.post("/v1/plan", json={"scenario": scenario})
    assert found.status_code == 422
    assert "scenario" in found.json()["error"]["problems"][0]["where"]


def test_a_key_cannot_name_two_questions(client):
    head = {"Idempotency-Key": "once"}
    first = client.post("/v1/fit", json=FIT, headers=head, params={"wait": 60})
    again = client.post("/v1/fit", json=FIT, headers=head, params={"wait": 60})
    other = client.post("/v1/fit", json={**FIT, "on": "L4"}, headers=head)
    assert first.json()["id"] == again.json()["id"]
    assert other.status_code == 422


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1/jobs/" + "0" * 32])
def test_what_is_not_there_has_the_same_shape(client, path):
    found = client.get(path)
    assert found.status_code == 404
    assert set(found.json()["error"]) == {"code", "message", "problems"}


def test_every_answer_has_the_headers(client):
    found = client.get("/healthz")
    assert found.json() == {"state": "ok"}
    assert found.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in found.headers


def test_another_host_name_is_refused(client):
    for host in ("evil.example", "localhost.evil.example", "evil.example:80", "", "localhost@evil"):
        found = client.get("/healthz", headers={"Host": host})
        assert found.status_code == 400
        assert found.json()["error"]["code"] == "host"
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:80", "[::1]"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200, host


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"model": "Qwen3-8B", "on": "H100", "on": "L4"}', "body.on"),
        ('{"model": "Qwen3-8B", "on": "H100", "tp": true}', "body"),
        ('{"model": "Qwen3-8B", "on": "H100", "concurrency": false}', "body"),
    ],
)
def test_a_key_twice_and_truth_for_a_number_are_refused(client, text, where):
    found = client.post("/v1/fit", content=text, headers={"Content-Type": "application/json"})
    assert found.status_code == 422
    (problem,) = found.json()["error"]["problems"]
    assert problem["where"] == where
    assert "twice" in problem["what"] or "true or false" in problem["what"]


def test_deep_bodies_are_refused(client):
    text = '{"scenario": ' + "[" * 100_000 + "]" * 100_000 + "}"
    found = client.post("/v1/plan", content=text, headers={"Content-Type": "application/json"})
    assert found.status_code in (400, 422)


def test_openapi_names_every_verb(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/plan", "/v1/fit", "/v1/simulate", "/v1/render", "/v1/jobs"} <= set(paths)


@pytest.fixture(scope="module")
def plan(client):
    scenario = {
        "version": 1,
        "name": "shop",
        "workloads": [
            {
                "name": "chat",
                "kind": "online_inference",
                "model": "meta-llama/Llama-3.1-8B-Instruct",
                "demand": {"requests_per_s": 4},
                "request": {"input_tokens": 500, "output_tokens": 100},
                "slo": {"ttft_p95_ms": 2000, "tpot_p95_ms": 60},
            }
        ],
        "policy": {"accelerators": {"allowed": ["L40S"]}},
    }
    return done(client, "plan", {"scenario": scenario, "samples": 0})["result"]


def test_a_plan_goes_on_to_the_other_verbs(client, plan):
    assert plan["feasible"] is True
    assert done(client, "verify", {"plan": plan})["result"]
    files = done(client, "render", {"plan": plan, "to": "bom"})["result"]["files"]
    assert b"l40s" in base64.b64decode(files[0]["base64"])
    assert done(client, "diff", {"plan": plan, "other": plan})["result"] is not None


def test_a_running_job_is_cancelled(client):
    body = {**FIT, "requests_per_s": 100, "duration_s": 86400}
    job = client.post("/v1/simulate", json=body, params={"wait": 0})
    assert job.status_code == 202
    name = job.json()["id"]
    deadline = time.monotonic() + 60
    while client.get(f"/v1/jobs/{name}").json()["state"] == "queued":
        assert time.monotonic() < deadline
    client.delete(f"/v1/jobs/{name}")
    ended = client.get(f"/v1/jobs/{name}", params={"wait": 60}).json()
    assert ended["state"] == "cancelled", ended
    assert done(client, "fit", {**FIT, "concurrency": 3})


def test_tokens_part_their_owners(tmp_path):
    (tmp_path / "tokens").write_text("ann a-secret\nbob b-secret\n", encoding="utf-8")
    from_file = ServeOptions("0.0.0.0", 1, tmp_path / "j.sqlite", tmp_path / "tokens", 1, 60.0)
    access = Access(owners=read_tokens(tmp_path / "tokens"), max_body_bytes=1000)
    with TestClient(application(from_file, access), base_url="http://localhost") as client:
        ann, bob = ({"Authorization": f"Bearer {name}-secret"} for name in "ab")
        assert client.post("/v1/fit", json=FIT).status_code == 401
        job = client.post("/v1/fit", json=FIT, headers=ann, params={"wait": 60}).json()
        assert client.get(f"/v1/jobs/{job['id']}", headers=ann).status_code == 200
        assert client.get(f"/v1/jobs/{job['id']}", headers=bob).status_code == 404
        assert client.get("/v1/jobs", headers=bob).json()["jobs"] == []
        long = {"text": "x" * 2000}
        assert client.post("/v1/diagnose", json=long, headers=ann).status_code == 413
        assert client.get("/healthz").status_code == 200
