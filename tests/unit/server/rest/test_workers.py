"""Workers: bounded in time, mended after a crash, and frank about what went wrong."""

import json
import os
import signal
import time

import pytest

from gpuplan.errors import InfeasibleError, InputError, Problem
from gpuplan.server.rest.jobs import JobStore, digest_of
from gpuplan.server.rest.workers import Workers, error_body

FIT = {"model": "Llama-3.1-8B", "on": "H100"}
LONG = {**FIT, "requests_per_s": 100, "duration_s": 86400}


@pytest.fixture
def store(tmp_path):
    found = JobStore(tmp_path / "jobs.sqlite")
    yield found
    found.close()


def ended(store, job, within_s=120.0):
    end_s = time.monotonic() + within_s
    while not (now := store.get(job.id)).is_ended:
        assert time.monotonic() < end_s, now
        time.sleep(0.02)
    return now


def add(store, verb, body):
    return store.add("ann", verb, body, digest_of(verb, body, "1"))


def test_a_job_that_takes_too_long_is_ended_and_the_next_is_answered(store):
    workers = Workers(store, 1, limit_s=20.0)
    workers.start()
    first = ended(store, add(store, "fit", FIT))
    workers._all[0].limit_s = 0.2
    late = ended(store, add(store, "simulate", LONG))
    workers._all[0].limit_s = 60.0
    after = ended(store, add(store, "fit", {**FIT, "concurrency": 2}))
    workers.stop()
    assert [first.state, late.state, after.state] == ["done", "failed", "done"]
    assert json.loads(late.error)["code"] == "time"


def test_a_process_that_dies_takes_only_its_job_along(store):
    workers = Workers(store, 1, limit_s=120.0)
    workers.start()
    ended(store, add(store, "fit", FIT))
    job = add(store, "simulate", LONG)
    while store.get(job.id).state == "queued":
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(workers._all[0]._process.pid, signal.SIGKILL)
    lost = ended(store, job)
    after = ended(store, add(store, "fit", {**FIT, "concurrency": 3}))
    workers.stop()
    assert (lost.state, after.state) == ("failed", "done")
    assert json.loads(lost.error)["code"] == "ended"


def test_a_stop_leaves_the_job_for_the_next_start(store):
    workers = Workers(store, 1, limit_s=120.0)
    workers.start()
    job = add(store, "simulate", LONG)
    while store.get(job.id).state == "queued":
        time.sleep(0.01)
    workers.stop()
    assert store.get(job.id).state in ("running", "done")


@pytest.mark.parametrize(
    ("error", "code"), [(InputError, "input"), (InfeasibleError, "infeasible")]
)
def test_errors_keep_where_what_and_fix(error, code):
    found = error_body(error("plan", [Problem("slo", "is too low", "raise it")]))
    assert found["code"] == code
    assert found["problems"] == [{"where": "slo", "what": "is too low", "fix": "raise it"}]


def test_our_own_faults_show_nothing_from_inside():
    found = error_body(KeyError("secret"))
    assert found["code"] == "internal"
    assert "secret" not in found["message"]


def test_the_stage_of_a_running_job_is_known_and_forgotten_when_it_ends(store):
    workers = Workers(store, 1, limit_s=120.0)
    workers.start()
    job = add(store, "plan", {"words": "Llama-3.1-8B chat, 4 requests/s, on L40S"})
    seen = set()
    while not store.get(job.id).is_ended:
        seen |= set(filter(None, [store.stages.get(job.id)]))
        time.sleep(0.001)
    workers.stop()
    assert store.get(job.id).state == "done"
    assert any(stage.startswith("sizing") for stage in seen)
    assert job.id not in store.stages


def test_a_process_that_has_grown_is_replaced_after_its_job(store, monkeypatch):
    monkeypatch.setattr("gpuplan.server.rest.workers.MOST_BYTES", 1)
    workers = Workers(store, 1, limit_s=120.0)
    (worker,) = workers._all
    before = worker._process.pid
    workers.start()
    try:
        assert ended(store, add(store, "fit", FIT)).state == "done"
        until_s = time.monotonic() + 60.0
        while worker._process.pid == before and time.monotonic() < until_s:
            time.sleep(0.01)  # it is replaced after the answer is there
        assert worker._process.pid != before
        assert ended(store, add(store, "fit", {**FIT, "concurrency": 3})).state == "done"
    finally:
        workers.stop()
