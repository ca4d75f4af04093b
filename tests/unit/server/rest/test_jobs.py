"""Jobs on the disk: nothing acknowledged is lost, nothing is done twice."""

import threading

import pytest

from gpuplan.server.rest.jobs import JobStore, SavedPlan, digest_of

BODY = {"model": "llama", "on": "H100"}
DIGEST = digest_of("fit", BODY, "1")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "jobs.sqlite"


@pytest.fixture
def store(path):
    found = JobStore(path)
    yield found
    found.close()


def test_the_oldest_job_is_taken_first(store):
    first = store.add("ann", "fit", BODY, DIGEST)
    second = store.add("ann", "fit", BODY, digest_of("fit", BODY, "2"))
    assert first.id != second.id
    assert [store.take().id, store.take().id] == [first.id, second.id]
    assert store.take() is None


def test_an_answered_question_is_not_asked_again(store):
    first = store.add("ann", "fit", BODY, DIGEST)
    store.take()
    store.end(first.id, "done", result='{"x": 1}')
    assert store.add("ann", "fit", BODY, DIGEST).id == first.id
    assert store.add("bob", "fit", BODY, DIGEST).id != first.id


def test_a_failed_question_may_be_asked_again(store):
    first = store.add("ann", "fit", BODY, DIGEST)
    store.end(first.id, "failed", error="{}")
    assert store.add("ann", "fit", BODY, DIGEST).state == "queued"


def test_a_key_names_one_job(store):
    first = store.add("ann", "fit", BODY, DIGEST, "k1")
    assert store.add("ann", "fit", BODY, DIGEST, "k1").id == first.id
    assert store.add("bob", "fit", BODY, DIGEST, "k1").id != first.id


def test_an_equal_question_under_a_new_key_is_answered_at_once(store):
    first = store.add("ann", "fit", BODY, DIGEST)
    store.end(first.id, "done", result='{"x": 1}')
    again = store.add("ann", "fit", BODY, DIGEST, "k2")
    assert (again.state, again.result, again.key) == ("done", '{"x": 1}', "k2")
    assert again.id != first.id


def test_a_job_that_ran_when_the_server_ended_runs_again(store, path):
    job = store.add("ann", "fit", BODY, DIGEST)
    store.take()
    reopened = JobStore(path)  # as after a kill: the first store was never closed
    assert reopened.get(job.id).state == "queued"
    assert reopened.take().id == job.id
    reopened.close()


def test_what_has_ended_stays_as_it_is(store):
    job = store.add("ann", "fit", BODY, DIGEST)
    store.end(job.id, "cancelled", error="{}")
    store.end(job.id, "done", result="{}")
    assert store.get(job.id).state == "cancelled"


def test_pages_go_back_in_time(store):
    made = [store.add("ann", "fit", BODY, digest_of("fit", {"n": i}, "1")) for i in range(5)]
    store.add("bob", "fit", BODY, DIGEST)
    first = store.page("ann", None, 2)
    rest = store.page("ann", first[-1].n, 10)
    assert [job.id for job in (*first, *rest)] == [job.id for job in reversed(made)]


def test_two_takers_never_get_the_same_job(store):
    ids = {
        store.add("ann", "fit", {"n": i}, digest_of("fit", {"n": i}, "1")).id for i in range(200)
    }
    taken = []

    def take():
        while (job := store.take()) is not None:
            taken.append(job.id)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(taken) == sorted(ids)


def test_the_digest_knows_the_version():
    assert digest_of("fit", BODY, "1") != digest_of("fit", BODY, "2")
    assert digest_of("fit", BODY, "1") == digest_of("fit", dict(reversed(BODY.items())), "1")


def test_an_equal_question_that_runs_is_not_asked_twice(store):
    first = store.add("ann", "fit", BODY, DIGEST)
    assert store.add("ann", "fit", BODY, DIGEST).id == first.id
    store.take()
    assert store.add("ann", "fit", BODY, DIGEST).id == first.id
    assert store.add("ann", "fit", BODY, DIGEST, "own key").id != first.id
    store.end(first.id, "cancelled", error="{}")
    assert store.add("ann", "fit", BODY, DIGEST).id != first.id


def test_quick_questions_have_a_lane_of_their_own(store):
    slow = store.add("ann", "plan+sheet", {}, "a")
    quick = store.add("ann", "plan+quick", {}, "b")
    assert store.take(is_quick=True).id == quick.id
    assert store.take(is_quick=True) is None
    assert store.take(is_quick=False).id == slow.id
    alone = store.add("ann", "plan+quick", {}, "c")
    assert store.take(is_quick=False) is None
    assert store.take().id == alone.id


def test_progress_tells_who_is_ahead_and_how_long_it_usually_takes(store):
    assert store.usual_s("fit") is None
    first = store.add("ann", "fit", {}, "a")
    second = store.add("bob", "fit", {}, "b")
    assert store.n_ahead(second) == 1
    store.take()
    store.end(first.id, "done", result="{}")
    assert 0 <= store.usual_s("fit") < 10
    assert store.n_ahead(second) == 0


def test_saved_plans_belong_to_their_owner(store, path):
    store.save("ann", SavedPlan("small", "j1", "/?words=a", 1.0))
    store.save("ann", SavedPlan("large", "j2", "/?words=b", 2.0))
    store.save("ann", SavedPlan("small", "j3", "/?words=c", 3.0))
    assert [(each.name, each.job) for each in JobStore(path).saved("ann")] == [
        ("small", "j3"),
        ("large", "j2"),
    ]
    assert store.saved("bob") == []
    store.forget("ann", "small")
    assert [each.name for each in store.saved("ann")] == ["large"]


def test_answers_that_only_pages_show_are_not_kept_for_ever(store, path, monkeypatch):
    verbs = ("plan", "plan+sheet", "plan+sheet", "plan+quick", "plan+quick")
    jobs = [store.add("ann", verb, {}, f"d{i}") for i, verb in enumerate(verbs)]
    for job in jobs[:-1]:
        store.end(job.id, "done", result="{}")
    store.save("ann", SavedPlan("kept", jobs[1].id, "/", 1.0))
    assert all(JobStore(path).get(job.id) for job in jobs)
    monkeypatch.setattr("gpuplan.server.rest.jobs.KEPT_S", {"+quick": -1.0, "+sheet": -1.0})
    after = JobStore(path)
    found = [after.get(job.id) for job in jobs]
    assert [job is not None for job in found] == [True, True, False, False, True]
    assert found[-1].state == "queued"
    after.close()
